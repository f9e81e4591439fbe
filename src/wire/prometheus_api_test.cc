#include "wire/prometheus_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace flopsight::wire {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ApiAnswer parsed(std::string_view json) {
  auto answer = parse_api_query(json);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? *answer : ApiAnswer{};
}

base::Error refused(std::string_view json) {
  auto answer = parse_api_query(json);
  EXPECT_FALSE(answer.ok()) << json;
  return answer.ok() ? base::Error{} : answer.error();
}

std::string matrix(const std::string& values) {
  return R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":)" +
         values + "}]}}";
}

std::vector<std::int64_t> times(const ApiSeries& series) {
  std::vector<std::int64_t> out;
  for (const ApiPoint& point : series.points) out.push_back(point.unix_milliseconds);
  return out;
}

std::vector<double> values(const ApiSeries& series) {
  std::vector<double> out;
  for (const ApiPoint& point : series.points) out.push_back(point.value);
  return out;
}

// ---- Results of queries

TEST(ApiQuery, reads_a_vector_of_prometheus) {
  const ApiAnswer answer = parsed(R"({"status":"success","data":{"resultType":"vector","result":[
      {"metric":{"__name__":"up","job":"node"},"value":[1435781451.781,"1"]},
      {"metric":{"job":"a\"b\u00e9"},"value":[1435781451.781,"1.5e+06"]}]}})");
  ASSERT_EQ(answer.series.size(), 2U);
  EXPECT_THAT(answer.series[0].labels, ElementsAre(Pair("__name__", "up"), Pair("job", "node")));
  EXPECT_THAT(times(answer.series[0]), ElementsAre(1435781451781));
  EXPECT_THAT(values(answer.series[0]), ElementsAre(1.0));
  EXPECT_THAT(answer.series[1].labels, ElementsAre(Pair("job", "a\"b\xC3\xA9")));
  EXPECT_THAT(values(answer.series[1]), ElementsAre(1.5e6));
  EXPECT_FALSE(answer.is_partial);
  EXPECT_THAT(answer.warnings, IsEmpty());
}

TEST(ApiQuery, reads_a_matrix_of_victoriametrics_with_stats_and_partial) {
  const ApiAnswer answer = parsed(
      R"({"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[{"metric":{"gpu":"0"},)"
      R"("values":[[1700000000,"0.1"],[1700000015.5,"2"]]}]},"stats":{"seriesFetched":"1"}})");
  EXPECT_TRUE(answer.is_partial);
  ASSERT_EQ(answer.series.size(), 1U);
  EXPECT_THAT(times(answer.series[0]), ElementsAre(1700000000000, 1700000015500));
  EXPECT_THAT(values(answer.series[0]), ElementsAre(0.1, 2.0));
}

TEST(ApiQuery, reads_numbers_that_are_not_finite) {
  const ApiAnswer answer =
      parsed(matrix(R"([[1,"NaN"],[2,"+Inf"],[3,"-Inf"],[4,"Inf"],[5,"+1"],[6,"1e-300"]])"));
  const std::vector<double> read = values(answer.series.at(0));
  ASSERT_EQ(read.size(), 6U);
  EXPECT_TRUE(std::isnan(read[0]));
  EXPECT_EQ(read[1], kInfinity);
  EXPECT_EQ(read[2], -kInfinity);
  EXPECT_EQ(read[3], kInfinity);
  EXPECT_EQ(read[4], 1.0);
  EXPECT_EQ(read[5], 1e-300);
}

TEST(ApiQuery, keeps_every_millisecond_of_a_time) {
  const ApiAnswer answer =
      parsed(matrix(R"([[-0.001,"1"],[0,"1"],[1.7e9,"1"],[1790000000.001,"1"],)"
                    R"([1790000000.999,"1"],[4102444799.123,"1"]])"));
  EXPECT_THAT(times(answer.series.at(0)),
              ElementsAre(-1, 0, 1700000000000, 1790000000001, 1790000000999, 4102444799123));
}

TEST(ApiQuery, reads_a_scalar_as_one_series_without_labels) {
  const ApiAnswer answer = parsed(
      R"({"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"3"]}})");
  ASSERT_EQ(answer.series.size(), 1U);
  EXPECT_THAT(answer.series[0].labels, IsEmpty());
  EXPECT_THAT(times(answer.series[0]), ElementsAre(1435781451781));
  EXPECT_THAT(values(answer.series[0]), ElementsAre(3.0));
}

TEST(ApiQuery, refuses_a_text_result_wherever_its_type_stands) {
  for (const char* json :
       {R"({"status":"success","data":{"resultType":"string","result":[1435781451.781,"foo"]}})",
        R"({"data":{"result":[1435781451.781,"3"],"resultType":"string"},"status":"success"})"}) {
    const base::Error error = refused(json);
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_EQ(error.message, "the query's result is a text, expected numbers");
  }
}

TEST(ApiQuery, ignores_histograms_and_unknown_fields_in_any_order) {
  const ApiAnswer answer = parsed(R"({"later":{"deep":[1,{"x":null}]},"data":{"result":[
      {"histograms":[[1,{"count":"2","buckets":[[1,"0","1","2"]]}]],"values":[[1,"5"]],"metric":{"a":"b"}},
      {"metric":{},"histogram":[1,{"count":"2"}]}],"resultType":"matrix","stats":{"timings":{"a":0.1}}},
      "status":"success"})");
  ASSERT_EQ(answer.series.size(), 2U);
  EXPECT_THAT(values(answer.series[0]), ElementsAre(5.0));
  EXPECT_THAT(answer.series[1].points, IsEmpty());
}

TEST(ApiQuery, takes_null_for_nothing) {
  for (const char* json : {R"({"status":"success","data":null})", R"({"status":"success"})",
                           R"({"status":"success","data":{"resultType":"vector","result":null}})",
                           R"({"status":"success","data":{"resultType":"vector","result":[]}})",
                           R"({"status":"success","isPartial":null,"warnings":null,"data":{}})"}) {
    EXPECT_THAT(parsed(json).series, IsEmpty()) << json;
  }
  EXPECT_THAT(times(parsed(matrix(R"([[1,null],null,[2,"1"]])")).series.at(0)), ElementsAre(2000));
  EXPECT_THAT(parsed(matrix("null")).series.at(0).points, IsEmpty());
}

TEST(ApiQuery, hands_on_warnings_and_infos_as_single_lines) {
  const ApiAnswer answer = parsed(R"({"status":"success","data":{"resultType":"vector","result":[]},
      "warnings":["one\ntwo"],"infos":["three"]})");
  EXPECT_THAT(answer.warnings, ElementsAre("one?two", "three"));
}

TEST(ApiQuery, sorts_points_and_lets_the_last_of_one_time_stand) {
  const ApiAnswer answer =
      parsed(matrix(R"([[30,"3"],[10,"1"],[20,"2"],[10,"1.5"],[30,"3.5"],[30,"3.75"]])"));
  EXPECT_THAT(times(answer.series.at(0)), ElementsAre(10000, 20000, 30000));
  EXPECT_THAT(values(answer.series.at(0)), ElementsAre(1.5, 2, 3.75));
}

TEST(ApiQuery, reads_values_that_a_proxy_has_turned_into_numbers) {
  EXPECT_THAT(values(parsed(matrix("[[1,2.5],[2,3]]")).series.at(0)), ElementsAre(2.5, 3.0));
}

// ---- The server's errors

std::string error_json(const std::string& type, const std::string& text) {
  return R"({"status":"error","errorType":")" + type + R"(","error":")" + text + "\"}";
}

TEST(ApiError, carries_the_type_and_text_of_the_server) {
  const base::Error error = refused(error_json(
      "bad_data", R"(invalid parameter \"query\": 1:5: parse error: unexpected \u007f)"));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.message, "bad_data: invalid parameter \"query\": 1:5: parse error: unexpected ?");
}

TEST(ApiError, tells_what_may_succeed_later) {
  for (const char* type : {"timeout", "unavailable", "internal", "503", "429"}) {
    EXPECT_EQ(refused(error_json(type, "x")).code, ErrorCode::kUnavailable) << type;
  }
  EXPECT_EQ(refused(error_json("execution", "x")).code, ErrorCode::kInvalid);
  EXPECT_EQ(refused(error_json("422", "unknown func")).code, ErrorCode::kInvalid);
  EXPECT_EQ(
      refused(error_json("503", "cannot handle more than -search.maxConcurrentRequests=4")).code,
      ErrorCode::kUnavailable);
  EXPECT_EQ(refused(error_json("", "too many outstanding requests")).code, ErrorCode::kUnavailable);
}

TEST(ApiError, tells_what_was_too_large) {
  for (const char* text :
       {"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query "
        "resolution",
        "query processing would load too many samples into memory in query execution",
        "too many points for the given step=1; cannot exceed -search.maxPointsPerTimeseries=30000",
        "cannot select more than -search.maxSamplesPerQuery=1000000000 samples",
        "the query exceeded the maximum number of series (err-mimir-max-series-per-query)"}) {
    EXPECT_EQ(refused(error_json("422", text)).code, ErrorCode::kLimit) << text;
  }
  EXPECT_EQ(refused(error_json("bad_data", "parse error: too many of them")).code,
            ErrorCode::kInvalid);
}

// ---- What is no answer

TEST(ApiBroken, says_where) {
  EXPECT_EQ(refused("").message, "JSON at byte 0: empty, expected an object");
  EXPECT_THAT(refused("<!DOCTYPE html><html></html>").message,
              StartsWith("JSON at byte 0: expected an object"));
  EXPECT_THAT(refused("[]").message, StartsWith("JSON at byte 0: expected an object"));
  EXPECT_THAT(refused(R"({"status":"success","data":7})").message,
              StartsWith("JSON at byte 27: expected the answer's data"));
  EXPECT_EQ(refused(R"({"status":"success"} x)").message,
            "JSON at byte 22: expected '}' as the last byte");
  EXPECT_EQ(refused(R"({"status":"success"} {})").message, "JSON at byte 21: text after the end");
  EXPECT_THAT(refused("{\"status\":\"\xFF\"}").message, StartsWith("JSON at byte 11: "));
  EXPECT_EQ(refused("{}").message, "JSON without the \"status\" of a Prometheus HTTP API");
}

TEST(ApiBroken, refuses_every_truncation_of_an_answer) {
  const std::string whole =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2"]]}]}})";
  EXPECT_TRUE(parse_api_query(whole).ok());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(refused(whole.substr(0, length)).code, ErrorCode::kInvalid) << length;
  }
}

TEST(ApiBroken, refuses_points_that_are_none) {
  for (const char* points :
       {"[[1]]", "[[1,\"2\",3]]", "[[\"1\",\"2\"]]", "[[1,\"two\"]]", "[[1,\"\"]]",
        "[[1,\"0x10\"]]", "[[1e300,\"1\"]]", "[7]", "{}", "\"x\""}) {
    EXPECT_EQ(refused(matrix(points)).code, ErrorCode::kInvalid) << points;
  }
  EXPECT_THAT(refused(matrix("[[1,\"two\"]]")).message,
              HasSubstr("expected a number in text form, found \"two\""));
}

TEST(ApiBroken, refuses_a_mixture_of_series_and_scalar) {
  EXPECT_FALSE(
      parse_api_query(
          R"({"status":"success","data":{"result":[{"metric":{},"value":[1,"1"]},1,"2"]}})")
          .ok());
  EXPECT_FALSE(parse_api_query(R"({"status":"success","data":{"result":[1,"2","3"]}})").ok());
}

// ---- Labels and series

TEST(ApiStrings, reads_label_values) {
  const auto values = parse_api_strings(R"({"status":"success","data":["node","pr\u00f6m"]})");
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_THAT(*values, ElementsAre("node", "pr\xC3\xB6m"));
  EXPECT_THAT(*parse_api_strings(R"({"status":"success","data":null})"), IsEmpty());
  EXPECT_FALSE(parse_api_strings(R"({"status":"success","data":[1]})").ok());
  EXPECT_EQ(parse_api_strings(error_json("bad_data", "no")).error().message, "bad_data: no");
}

TEST(ApiSeries, reads_label_objects) {
  const auto series = parse_api_series(
      R"({"status":"success","data":[{"__name__":"up","job":"a"},{"__name__":"up","job":"b"}]})");
  ASSERT_TRUE(series.ok()) << series.error().message;
  ASSERT_EQ(series->size(), 2U);
  EXPECT_THAT((*series)[1].labels, ElementsAre(Pair("__name__", "up"), Pair("job", "b")));
  EXPECT_FALSE(parse_api_series(R"({"status":"success","data":["up"]})").ok());
  EXPECT_FALSE(parse_api_series(R"({"status":"success","data":[{"job":1}]})").ok());
}

TEST(ExportLine, values_and_times_become_points_in_order) {
  const auto series = parse_export_line(
      R"({"metric":{"__name__":"m","gpu":"0"},"values":[2,null,"Infinity",1.5],"timestamps":[3000,4000,5000,1000]})");
  ASSERT_TRUE(series.ok()) << series.error().message;
  ASSERT_EQ(series->points.size(), 3U);
  EXPECT_EQ(series->points[0].unix_milliseconds, 1000);
  EXPECT_EQ(series->points[0].value, 1.5);
  EXPECT_TRUE(std::isinf(series->points[2].value));
  EXPECT_EQ(series->labels[1], (std::pair<std::string, std::string>{"gpu", "0"}));
}

TEST(ExportLine, more_values_than_times_is_an_error) {
  const auto series = parse_export_line(R"({"metric":{},"values":[1,2],"timestamps":[3000]})");
  ASSERT_FALSE(series.ok());
  EXPECT_NE(series.error().message.find("found 2 and 1"), std::string::npos);
  EXPECT_FALSE(parse_export_line("{\"metric\":{},\"values\":[1],\"timestamps\":[\"x\"]}").ok());
  EXPECT_FALSE(parse_export_line("").ok());
}

}  // namespace
}  // namespace flopsight::wire
