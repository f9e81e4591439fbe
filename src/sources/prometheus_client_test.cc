#include "sources/prometheus_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/text.h"
#include "net/test_http_server.h"

namespace flopsight::sources {
namespace {

using base::ErrorCode;
using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using units::Instant;
using units::Seconds;
using units::Window;

constexpr std::int64_t kStart = 1'700'000'000'000;

Window window(std::int64_t length_milliseconds) {
  return {Instant{kStart}, Instant{kStart + length_milliseconds}};
}

TestReply json(const std::string& body, const std::string& status = "200 OK") {
  TestReply reply;
  reply.status = status;
  reply.body = body;
  reply.headers = {{"Content-Type", "application/json"}};
  return reply;
}

TestReply api_error(const std::string& status, const std::string& type, const std::string& text) {
  return json(R"({"status":"error","errorType":")" + type + R"(","error":")" + text + "\"}",
              status);
}

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
    i += 2;
  }
  return out;
}

std::map<std::string, std::string> fields(const std::string& form) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : base::split(form, '&')) {
    const std::size_t equals = pair.find('=');
    out[decoded(pair.substr(0, equals))] = decoded(pair.substr(equals + 1));
  }
  return out;
}

std::int64_t milliseconds(const std::string& seconds) {
  return static_cast<std::int64_t>(std::strtod(seconds.c_str(), nullptr) * 1000.0 + 0.5);
}

std::string matrix(const std::vector<std::int64_t>& times) {
  std::string values;
  for (const std::int64_t t : times) {
    const std::string text =
        std::to_string(t / 1000) + "." + std::to_string(1000 + t % 1000).substr(1);
    values += (values.empty() ? "[" : ",[") + text + ",\"" + std::to_string(t - kStart) + "\"]";
  }
  return R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[)" +
         values + "]}]}}";
}

// A server with a sample at every `interval` (a second), whose value is the milliseconds since
// kStart.
struct FakePrometheus {
  bool closed_in_front = true;          // as Prometheus 2.x; false as VictoriaMetrics
  std::int64_t points_max = 1'000'000;  // more are refused
  std::int64_t interval = 1000;
  TestReply refusal = api_error("422 Unprocessable Entity", "execution",
                                "query processing would load too many samples into memory");

  TestReply operator()(const TestRequest& request) const {
    auto form = fields(request.body);
    std::vector<std::int64_t> times;
    if (request.target == "/api/v1/query_range") {
      const std::int64_t step = milliseconds(form["step"]);
      for (std::int64_t t = milliseconds(form["start"]); t <= milliseconds(form["end"]);
           t += step) {
        times.push_back(t);
      }
    } else {
      const std::string& query = form["query"];
      const std::int64_t range = std::strtoll(query.c_str() + query.find('[') + 1, nullptr, 10);
      const std::int64_t last = milliseconds(form["time"]);
      const std::int64_t first = last - range + (closed_in_front ? 0 : 1);
      for (std::int64_t t = (first + interval - 1) / interval * interval; t <= last;
           t += interval) {
        times.push_back(t);
      }
    }
    if (static_cast<std::int64_t>(times.size()) > points_max) return refusal;
    return json(matrix(times));
  }
};

PrometheusOptions options_for(const std::string& url) {
  PrometheusOptions options;
  options.url = url;
  options.http.retry_backoff = std::chrono::milliseconds(1);
  return options;
}

PrometheusClient client_of(const PrometheusOptions& options) {
  auto client = PrometheusClient::create(options);
  FLOPSIGHT_CHECK(client.ok());
  return std::move(client).value();
}

// What a split query has handed over: the values of all points, and how many at a time.
struct Collected {
  std::vector<double> values;
  std::vector<std::size_t> sizes;

  base::Status operator()(const wire::ApiAnswer& answer) {
    std::size_t size = 0;
    for (const wire::ApiSeries& series : answer.series) {
      for (const wire::ApiPoint& point : series.points) values.push_back(point.value);
      size += series.points.size();
    }
    sizes.push_back(size);
    return {};
  }
};

std::vector<double> every(std::int64_t step, std::int64_t begin, std::int64_t end) {
  std::vector<double> out;
  for (std::int64_t t = begin; t < end; t += step) out.push_back(static_cast<double>(t));
  return out;
}

// ---- Single requests

TEST(PrometheusClient, posts_a_query_with_its_time_and_without_cache) {
  TestHttpServer server([](const TestRequest&) {
    return json(R"({"status":"success","isPartial":true,"warnings":["slow store"],)"
                R"("data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}})");
  });
  PrometheusClient client = client_of(options_for(server.url("/prefix/")));
  const auto answer = client.query("up{a=\"b c\"} + 1", Instant{kStart + 50});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_TRUE(answer->is_partial);
  EXPECT_THAT(answer->warnings, ElementsAre("slow store"));
  const TestRequest seen = server.requests()[0];
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/prefix/api/v1/query");
  auto form = fields(seen.body);
  EXPECT_EQ(form["query"], "up{a=\"b c\"} + 1");
  EXPECT_EQ(form["time"], "1700000000.050");
  EXPECT_EQ(form["nocache"], "1");
}

TEST(PrometheusClient, asks_for_label_values_and_series_of_a_window) {
  TestHttpServer server([](const TestRequest& request) {
    if (request.method == "GET") return json(R"({"status":"success","data":["a","b"]})");
    return json(R"({"status":"success","data":[{"__name__":"up"}]})");
  });
  PrometheusClient client = client_of(options_for(server.url()));
  const auto values = client.label_values("__name__", window(10'000));
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_THAT(*values, ElementsAre("a", "b"));
  EXPECT_EQ(server.requests()[0].target,
            "/api/v1/label/__name__/values?start=1700000000&end=1700000009.999");
  const auto series = client.series("{job=~\".+\"}", window(10'000));
  ASSERT_TRUE(series.ok()) << series.error().message;
  EXPECT_EQ(series->size(), 1U);
  EXPECT_EQ(fields(server.requests()[1].body)["match[]"], "{job=~\".+\"}");
}

TEST(PrometheusClient, names_the_server) {
  const auto name = [](const std::string& buildinfo, bool knows_now) {
    TestHttpServer server([&](const TestRequest& request) {
      if (request.target == "/api/v1/status/buildinfo") return json(buildinfo);
      if (fields(request.body)["query"] == "now()" && !knows_now) {
        return api_error("400 Bad Request", "bad_data", "unknown function");
      }
      return json(R"({"status":"success","data":{"resultType":"vector","result":[]}})");
    });
    const auto result = client_of(options_for(server.url())).server_name();
    return result.ok() ? *result : result.error().message;
  };
  EXPECT_EQ(name(R"({"status":"success","data":{"version":"2.42.0+ds","revision":"r"}})", false),
            "Prometheus 2.42.0");
  EXPECT_EQ(name(R"({"status":"success","data":{}})", true), "VictoriaMetrics");
  EXPECT_EQ(name(R"({"status":"success","data":{"version":"2.24.0"}})", true), "VictoriaMetrics");
  EXPECT_EQ(name(R"({"status":"success","data":{}})", false), "unknown");
}

// ---- Errors

TEST(PrometheusClient, explains_an_error_of_the_server_without_credentials) {
  TestHttpServer server([](const TestRequest&) {
    return api_error("400 Bad Request", "bad_data", "1:3: parse error: no");
  });
  const std::string port = std::to_string(server.port());
  PrometheusClient client = client_of(options_for("http://user:secret@127.0.0.1:" + port));
  const auto answer = client.query("up{\n", Instant{kStart});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(answer.error().message,
            server.url("/api/v1/query") + ": up{: bad_data: 1:3: parse error: no");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(PrometheusClient, says_what_came_instead_of_an_api) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply;
    reply.headers = {{"Content-Type", "text/html"}};
    reply.body = "<html>\n<title>Grafana</title>";
    if (request.target.starts_with("/gone")) reply.status = "404 Not Found";
    return reply;
  });
  const auto message = [&](const std::string& path) {
    const auto answer = client_of(options_for(server.url(path))).query("up", Instant{kStart});
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
    return answer.error().message;
  };
  EXPECT_EQ(
      message("/gone"),
      server.url("/gone/api/v1/query") +
          ": HTTP 404 Not Found (text/html): <html> <title>Grafana</title>; expected a Prometheus "
          "HTTP API at " +
          server.url("/gone/api/v1/query") + " (1 attempt)");
  EXPECT_THAT(message("/page"), HasSubstr(": HTTP 200 OK (text/html): <html>"));
  EXPECT_THAT(message("/page"), HasSubstr("expected a Prometheus HTTP API at "));
}

TEST(PrometheusClient, tells_missing_credentials_and_a_gateway_from_a_wrong_url) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply;
    reply.status = request.target.starts_with("/private") ? "401 Unauthorized" : "502 Bad Gateway";
    reply.body = "no";
    return reply;
  });
  const auto refused = client_of(options_for(server.url("/private"))).query("up", Instant{kStart});
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("expected credentials"));
  const auto later = client_of(options_for(server.url())).query("up", Instant{kStart});
  EXPECT_EQ(later.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(later.error().message,
            server.url("/api/v1/query") + ": HTTP 502 Bad Gateway: no (3 attempts)");
}

TEST(PrometheusClient, refuses_a_url_that_cannot_work) {
  for (const char* url :
       {"", "prom:9090", "file:///x", "http://prom:9090/?a=b", "http://prom/#x"}) {
    const auto client = PrometheusClient::create(options_for(url));
    ASSERT_FALSE(client.ok()) << url;
    EXPECT_EQ(client.error().code, ErrorCode::kInvalid);
  }
  EXPECT_THAT(PrometheusClient::create(options_for("htp://user:secret@prom")).error().message,
              testing::Not(HasSubstr("secret")));
}

// ---- Ranges

TEST(PrometheusClientRange, splits_by_points_and_covers_the_half_open_window_once) {
  TestHttpServer server(FakePrometheus{});
  PrometheusOptions options = options_for(server.url());
  options.points_per_request_max = 4;
  Collected collected;
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  const auto status = client_of(options).query_range(
      "m", window(150'001), Seconds(15), std::ref(collected),
      [&](PrometheusProgress p) { progress.emplace_back(p.done, p.total); });
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(collected.values, every(15'000, 0, 150'001));
  EXPECT_THAT(collected.sizes, ElementsAre(4, 4, 3));
  EXPECT_THAT(progress, ElementsAre(std::pair(1, 3), std::pair(2, 3), std::pair(3, 3)));
}

TEST(PrometheusClientRange, leaves_out_the_end_of_the_window) {
  TestHttpServer server(FakePrometheus{});
  Collected collected;
  const auto status = client_of(options_for(server.url()))
                          .query_range("m", window(30'000), Seconds(15), std::ref(collected));
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(collected.values, ElementsAre(0, 15'000));
  auto form = fields(server.requests()[0].body);
  EXPECT_EQ(form["start"], "1700000000");
  EXPECT_EQ(form["end"], "1700000015");
  EXPECT_EQ(form["step"], "15");
}

TEST(PrometheusClientRange, asks_for_nothing_in_an_empty_window) {
  TestHttpServer server(FakePrometheus{});
  Collected collected;
  EXPECT_TRUE(client_of(options_for(server.url()))
                  .query_range("m", window(0), Seconds(15), std::ref(collected))
                  .ok());
  EXPECT_THAT(collected.sizes, IsEmpty());
  EXPECT_THAT(server.requests(), IsEmpty());
  EXPECT_FALSE(client_of(options_for(server.url()))
                   .query_range("m", window(1), Seconds(0), std::ref(collected))
                   .ok());
}

TEST(PrometheusClientRange, halves_what_is_refused_for_its_size_and_stays_small) {
  const std::vector<TestReply> refusals = {
      FakePrometheus{}.refusal,
      api_error("400 Bad Request", "bad_data",
                "exceeded maximum resolution of 11,000 points per timeseries"),
      api_error("422 Unprocessable Entity", "422",
                "cannot exceed -search.maxPointsPerTimeseries=5"),
      api_error("503 Service Unavailable", "timeout", "query timed out in expression evaluation"),
      json("<html>too large</html>", "413 Request Entity Too Large"),
  };
  for (const TestReply& refusal : refusals) {
    FakePrometheus fake;
    fake.points_max = 5;
    fake.refusal = refusal;
    TestHttpServer server(fake);
    PrometheusOptions options = options_for(server.url());
    options.http.retries = 0;
    options.points_per_request_max = 32;
    options.parallel_max = 1;
    Collected collected;
    const auto status =
        client_of(options).query_range("m", window(64'000), Seconds(1), std::ref(collected));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(collected.values, every(1000, 0, 64'000));
    EXPECT_THAT(collected.sizes, testing::Each(4));
    EXPECT_EQ(server.requests().size(), 16U + 3U);  // 32, 16 and 8 were refused once each
  }
}

TEST(PrometheusClientRange, halves_a_body_over_its_own_limit) {
  TestHttpServer server(FakePrometheus{});
  PrometheusOptions options = options_for(server.url());
  options.http.body_bytes_max = 1000;
  Collected collected;
  const auto status =
      client_of(options).query_range("m", window(200'000), Seconds(1), std::ref(collected));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(collected.values, every(1000, 0, 200'000));
}

TEST(PrometheusClientRange, gives_up_when_one_step_is_too_large) {
  FakePrometheus fake;
  fake.points_max = 0;
  TestHttpServer server(fake);
  Collected collected;
  const auto status = client_of(options_for(server.url()))
                          .query_range("m", window(8'000), Seconds(1), std::ref(collected));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kLimit);
  EXPECT_THAT(status.error().message, HasSubstr("would load too many samples"));
  EXPECT_THAT(collected.sizes, IsEmpty());
}

TEST(PrometheusClientRange, does_not_halve_other_errors) {
  TestHttpServer server(
      [](const TestRequest&) { return api_error("400 Bad Request", "bad_data", "parse error"); });
  Collected collected;
  EXPECT_FALSE(client_of(options_for(server.url()))
                   .query_range("m{", window(8'000), Seconds(1), std::ref(collected))
                   .ok());
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(PrometheusClientRange, stops_when_the_caller_has_had_enough) {
  TestHttpServer server(FakePrometheus{});
  PrometheusOptions options = options_for(server.url());
  options.points_per_request_max = 1;
  options.parallel_max = 2;
  int pieces = 0;
  const auto status = client_of(options).query_range(
      "m", window(100'000), Seconds(1), [&](const wire::ApiAnswer&) -> base::Status {
        if (++pieces == 3) return base::Error{ErrorCode::kIo, "disk full"};
        return {};
      });
  EXPECT_EQ(status.error().message, "disk full");
  EXPECT_EQ(server.requests().size(), 4U);
}

// ---- Raw samples

TEST(PrometheusClientRaw, hands_over_each_sample_once_whichever_end_the_server_leaves_open) {
  for (const bool closed : {true, false}) {
    FakePrometheus fake;
    fake.closed_in_front = closed;
    TestHttpServer server(fake);
    PrometheusOptions options = options_for(server.url());
    options.raw_chunk = Seconds(10);
    Collected collected;
    const auto status = client_of(options).raw("m", window(35'000), std::ref(collected));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(collected.values, every(1000, 0, 35'000)) << closed;
    EXPECT_THAT(collected.sizes, ElementsAre(10, 10, 10, 5));
  }
}

TEST(PrometheusClientRaw, hands_over_each_of_samples_a_millisecond_apart_once) {
  for (const bool closed : {true, false}) {
    FakePrometheus fake;
    fake.closed_in_front = closed;
    fake.interval = 1;
    TestHttpServer server(fake);
    PrometheusOptions options = options_for(server.url());
    options.raw_chunk = Seconds(0.010);
    Collected collected;
    const auto status = client_of(options).raw("m", window(35), std::ref(collected));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(collected.values, every(1, 0, 35)) << closed;
    EXPECT_THAT(collected.sizes, ElementsAre(10, 10, 10, 5));
  }
}

TEST(PrometheusClientRaw, asks_up_to_the_last_millisecond_inside) {
  TestHttpServer server(FakePrometheus{});
  Collected collected;
  ASSERT_TRUE(client_of(options_for(server.url()))
                  .raw("m{a=\"b\"}", window(2'500), std::ref(collected))
                  .ok());
  auto form = fields(server.requests()[0].body);
  EXPECT_EQ(form["query"], "m{a=\"b\"}[2500ms]");
  EXPECT_EQ(form["time"], "1700000002.499");
  EXPECT_THAT(collected.values, ElementsAre(0, 1000, 2000));
}

TEST(PrometheusClientRaw, halves_down_to_a_second) {
  FakePrometheus fake;
  fake.closed_in_front = false;
  fake.points_max = 3;
  TestHttpServer server(fake);
  PrometheusOptions options = options_for(server.url());
  options.raw_chunk = Seconds(16);
  Collected collected;
  const auto status = client_of(options).raw("m", window(40'500), std::ref(collected));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(collected.values, every(1000, 0, 40'500));
  EXPECT_THAT(collected.sizes, testing::Each(testing::Le(2U)));
}

}  // namespace
}  // namespace flopsight::sources
