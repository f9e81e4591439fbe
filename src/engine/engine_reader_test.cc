#include "engine/engine_reader.h"
#include "jobs/job_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/test_http_server.h"

namespace flopsight::engine {
namespace {

using base::ErrorCode;
using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using rollups::CellField;
using testing::HasSubstr;
using testing::Not;
using units::Instant;
using units::Seconds;
using units::Window;

constexpr std::int64_t kHour = 1'790'035'200'000;
constexpr Window kTenMinutes{{kHour}, {kHour + 600'000}};

std::string decoded(const std::string& form) {
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '%') {
      out.push_back(static_cast<char>(std::stoi(form.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(form[i] == '+' ? ' ' : form[i]);
    }
  }
  return out;
}

std::string answer(const std::string& result) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}
std::string sample(const std::string& labels, const std::string& value) {
  return "{\"metric\":{" + labels + "},\"value\":[1790035800,\"" + value + "\"]}";
}

std::unique_ptr<EngineReader> reader_of(const TestHttpServer& server, bool gpu_cells = true) {
  EngineReaderOptions options;
  options.url = server.url();
  options.http.retries = 0;
  options.gpu_cells = gpu_cells;
  options.now = Instant{kHour};
  auto reader = EngineReader::create(options);
  FLOPSIGHT_CHECK(reader.ok());
  return std::move(reader).value();
}

TEST(EngineReader, makes_cells_and_names_of_what_the_engine_says) {
  TestHttpServer server([](const TestRequest& request) {
    const std::string query = decoded(request.body);
    if (query.find("flopsight_job_info") != std::string::npos) {
      return TestReply{"200 OK", {}, answer(sample(R"("job":"train","namespace":"r","user":"alice")", "1") + "," +
                                            sample(R"("job":"train","namespace":"r","team":"ml")", "1"))};
    }
    if (query.find("hours_until") != std::string::npos) {
      return TestReply{"200 OK", {}, answer(sample(R"("shard":"0-ab","simulated":"true")", "1790035200"))};
    }
    const std::string job = R"("job":"train","namespace":"r","model":"H100",)";
    return TestReply{"200 OK", {}, answer(sample(job + R"("field":"measured_microseconds")", "1.2e+08") + "," +
                                          sample(job + R"("field":"cell_count")", "2") + "," +
                                          sample(job + R"("field":"ofu_min_millionths")", "250000") + "," +
                                          sample(job + R"("field":"ofu_bin_61")", "120000000") + "," +
                                          sample(job + R"("field":"of_a_newer_version")", "3") + "," +
                                          sample(R"("model":"H100","field":"cell_count")", "7"))};
  });
  const auto reader = reader_of(server);
  const auto totals = reader->job_totals(kTenMinutes, std::nullopt);
  ASSERT_TRUE(totals.ok()) << totals.error().message;
  ASSERT_EQ(totals->size(), 2U);
  EXPECT_EQ(totals->at(0).job, 0U);
  EXPECT_EQ(totals->at(0).cell[CellField::kCellCount], 7);
  const store::JobTotal& train = totals->at(1);
  EXPECT_EQ(train.cell[CellField::kMeasured], 120'000'000);
  EXPECT_EQ(train.cell[CellField::kOfuMin], 250'000);
  EXPECT_FALSE(train.cell.has(CellField::kOfuMax));
  EXPECT_EQ(train.spread.bins().front().bin, 61);
  EXPECT_EQ(reader->model_name(train.model), "H100");
  EXPECT_EQ(reader->holder(train.job).user, "alice");
  EXPECT_EQ(reader->holder(train.job).team, "ml");
  EXPECT_EQ(jobs::job_text(reader->holder(train.job)), "train@r");
  EXPECT_TRUE(reader->simulated());
}

TEST(EngineReader, whatever_the_engine_does_instead_of_answering_is_one_line_and_no_number) {
  const std::vector<std::pair<TestReply, ErrorCode>> kReplies = {
      {{"503 Service Unavailable", {}, "no\n"}, ErrorCode::kUnavailable},
      {{"400 Bad Request", {}, R"({"status":"error","errorType":"bad_data","error":"parse error"})"}, ErrorCode::kUnavailable},
      {{"401 Unauthorized"}, ErrorCode::kUnavailable},
      {{"200 OK", {}, "<html>hello</html>"}, ErrorCode::kUnavailable},
      {{"200 OK", {}, R"({"status":"success","data":)"}, ErrorCode::kUnavailable},
      {{"200 OK", {}, answer(sample(R"("field":"cell_count")", "NaN"))}, ErrorCode::kUnavailable},
      {{"200 OK", {}, answer(sample(R"("field":"cell_count")", "-1"))}, ErrorCode::kUnavailable},
      {{"200 OK", {}, answer(sample(R"("field":"cell_count")", "+Inf"))}, ErrorCode::kUnavailable},
      {{"200 OK", {}, R"({"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}})"}, ErrorCode::kUnavailable},
      {{"422 Unprocessable Entity", {}, R"({"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"})"},
       ErrorCode::kLimit}};
  for (const auto& [reply, code] : kReplies) {
    TestHttpServer server([reply = reply](const TestRequest&) { return reply; });
    const auto reader = reader_of(server);
    for (const base::Error& error :
         {reader->job_totals(kTenMinutes, std::nullopt).error(), reader->gpu_totals(kTenMinutes, std::nullopt).error()}) {
      EXPECT_EQ(error.code, code) << reply.body << error.message;
      EXPECT_THAT(error.message, testing::StartsWith("engine: "));
      EXPECT_EQ(error.message.find('\n'), std::string::npos);
    }
  }
}

TEST(EngineReader, a_window_that_is_too_much_is_halved) {
  std::atomic<int> refused = 0;
  TestHttpServer server([&](const TestRequest& request) {
    const std::string query = decoded(request.body);
    if (query.find("flopsight_job_sum") == std::string::npos) return TestReply{"200 OK", {}, answer("")};
    const std::size_t range = query.find("ms]))");
    const std::size_t open = query.rfind('[', query.find("ms:"));
    const long length = std::stol(query.substr(open + 1));
    if (length > 150'000) {
      ++refused;
      return TestReply{"422 Unprocessable Entity", {}, R"({"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"})"};
    }
    EXPECT_NE(range, std::string::npos);
    // As many cells as minutes.
    return TestReply{"200 OK", {}, answer(sample(R"("field":"cell_count")", std::to_string((length + 1) / 60'000)))};
  });
  const auto totals = reader_of(server)->job_totals(kTenMinutes, std::nullopt);
  ASSERT_TRUE(totals.ok()) << totals.error().message;
  ASSERT_EQ(totals->size(), 1U);
  EXPECT_EQ(totals->front().cell[CellField::kCellCount], 10);
  EXPECT_GT(refused, 0);
}

TEST(EngineReader, names_from_outside_stay_inside_their_quotes) {
  TestHttpServer server([](const TestRequest&) { return TestReply{"200 OK", {}, answer("")}; });
  samples::Holder evil;
  evil.job = "a\"} or vector(1) #\\";
  evil.name_space = "b\nc";
  const auto found = reader_of(server)->find_job(jobs::job_text(evil));
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(decoded(server.requests().front().body), HasSubstr(R"(,job="a\"} or vector(1) #\\",namespace="b\x0ac"})"));
}

TEST(EngineReader, cells_of_gpus_that_are_not_written_are_not_asked_for) {
  TestHttpServer server([](const TestRequest&) { return TestReply{"200 OK", {}, answer("")}; });
  const auto totals = reader_of(server, false)->gpu_totals(kTenMinutes, std::nullopt);
  EXPECT_EQ(totals.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(totals.error().message, HasSubstr("engine.gpu-cells"));
  EXPECT_TRUE(server.requests().empty());
}

// ---- Which slots a question is made of

std::vector<std::string> texts(const std::vector<Piece>& pieces) {
  std::vector<std::string> out;
  for (const Piece& piece : pieces) {
    out.push_back((piece.level == Level::kHour ? "hours " : "slots ") +
                  std::to_string((piece.window.start.unix_milliseconds - kHour) / 60'000) + "-" +
                  std::to_string((piece.window.end.unix_milliseconds - kHour) / 60'000) + piece.matchers);
  }
  return out;
}
Window minutes(std::int64_t from, std::int64_t to) { return {{kHour + from * 60'000}, {kHour + to * 60'000}}; }

TEST(Pieces, hours_where_each_process_has_written_them) {
  const std::vector<Shard> shards = {{"0-a", kHour + 5 * kHourMilliseconds}, {"1-b", kHour + 5 * kHourMilliseconds}, {"2-c", kHour}};
  EXPECT_THAT(texts(pieces_of(minutes(30, 390), shards, 0)),
              testing::ElementsAre("slots 30-390,shard!~\"0-a|1-b|2-c\"", "slots 30-60,shard=~\"2-c\"", "slots 60-390,shard=~\"2-c\"",
                                   "slots 30-60,shard=~\"0-a|1-b\"", "hours 60-300,shard=~\"0-a|1-b\"",
                                   "slots 300-390,shard=~\"0-a|1-b\""));
  EXPECT_THAT(texts(pieces_of(minutes(0, 180), shards, 0)), testing::ElementsAre("slots 0-180"));
  EXPECT_THAT(texts(pieces_of(minutes(0, 600), {}, 0)), testing::ElementsAre("slots 0-600"));
  // Steps that hours do not fit into; edges that steps do not cross.
  EXPECT_THAT(texts(pieces_of(minutes(0, 600), shards, 600'000)), testing::ElementsAre("slots 0-600"));
  const std::vector<Shard> one = {{"0-a", kHour + 5 * kHourMilliseconds}};
  EXPECT_THAT(texts(pieces_of(minutes(0, 600), one, 2 * kHourMilliseconds)),
              testing::ElementsAre("slots 0-600,shard!~\"0-a\"", "hours 0-240,shard=~\"0-a\"", "slots 240-600,shard=~\"0-a\""));
  // What another has written under the name of a process stays text.
  const std::vector<Shard> evil = {{"\"} or x{", kHour + 5 * kHourMilliseconds}};
  EXPECT_THAT(texts(pieces_of(minutes(0, 600), evil, 0)), testing::ElementsAre("slots 0-600"));
}

}  // namespace
}  // namespace flopsight::engine
