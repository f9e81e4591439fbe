// The client against real servers, started and filled by tests/e2e/test_prometheus_client.py, which
// names them in the environment. Their history, which both sides must agree on: metric
// "flopsight_e2e", gpu "0" to "3", a sample every 15 s over the 3 hours before
// FLOPSIGHT_E2E_HISTORY_END_MS, number i of GPU g with the value 1000 * g + i, and GPU 2 without
// the numbers 300 to 399.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "sources/prometheus_client.h"

namespace flopsight::sources {
namespace {

using base::ErrorCode;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using units::Instant;
using units::Seconds;
using units::Window;

constexpr std::int64_t kInterval = 15'000;
constexpr std::int64_t kSamples = 720;

struct RealServer {
  const char* variable;  // of the environment, with the URL
  const char* name;      // what server_name() must say
};

std::string name_of(const testing::TestParamInfo<RealServer>& info) { return info.param.variable; }

class PrometheusRealServer : public testing::TestWithParam<RealServer> {
 protected:
  void SetUp() override {
    const char* url = std::getenv(GetParam().variable);
    const char* end = std::getenv("FLOPSIGHT_E2E_HISTORY_END_MS");
    if (url == nullptr || end == nullptr) {
      GTEST_SKIP() << GetParam().variable
                   << " is not set: no real server; run tests/e2e/test_prometheus_client.py";
    }
    url_ = url;
    end_ = Instant{std::strtoll(end, nullptr, 10)};
    start_ = end_ - Seconds(3 * 3600);
  }

  PrometheusClient client(PrometheusOptions options = {}, const std::string& path = "") const {
    options.url = url_ + path;
    auto client = PrometheusClient::create(options);
    FLOPSIGHT_CHECK(client.ok());
    return std::move(client).value();
  }
  std::int64_t time_of(std::int64_t sample) const {
    return start_.unix_milliseconds + sample * kInterval;
  }
  static bool in_gap(const std::string& gpu, std::int64_t sample) {
    return gpu == "2" && sample >= 300 && sample < 400;
  }

  std::string url_;
  Instant start_, end_;
};

// Points by GPU in the order they were handed over, each checked to come after the one before.
struct ByGpu {
  std::map<std::string, std::vector<wire::ApiPoint>> points;
  std::size_t pieces = 0;

  base::Status operator()(const wire::ApiAnswer& answer) {
    ++pieces;
    for (const wire::ApiSeries& series : answer.series) {
      std::string gpu;
      for (const auto& [name, value] : series.labels) {
        if (name == "gpu") gpu = value;
      }
      for (const wire::ApiPoint& point : series.points) {
        auto& all = points[gpu];
        EXPECT_TRUE(all.empty() || all.back().unix_milliseconds < point.unix_milliseconds) << gpu;
        all.push_back(point);
      }
    }
    return {};
  }
};

TEST_P(PrometheusRealServer, hands_over_every_raw_sample_once) {
  for (const double chunk_seconds : {3600.0, 600.0, 97.0}) {  // edges on samples, and beside them
    PrometheusOptions options;
    options.raw_chunk = Seconds(chunk_seconds);
    ByGpu seen;
    const auto status = client(options).raw("flopsight_e2e", {start_, end_}, std::ref(seen));
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(seen.points.size(), 4U);
    for (const auto& [gpu, points] : seen.points) {
      std::size_t next = 0;
      for (std::int64_t i = 0; i < kSamples; ++i) {
        if (in_gap(gpu, i)) continue;
        ASSERT_LT(next, points.size()) << "GPU " << gpu << " sample " << i;
        EXPECT_EQ(points[next].unix_milliseconds, time_of(i));
        EXPECT_EQ(points[next].value, 1000 * std::stod(gpu) + static_cast<double>(i));
        ++next;
      }
      EXPECT_EQ(next, points.size()) << "GPU " << gpu;
    }
  }
}

TEST_P(PrometheusRealServer, keeps_raw_samples_to_the_half_open_window) {
  ByGpu seen;
  const Window window{Instant{time_of(10)}, Instant{time_of(20)}};
  ASSERT_TRUE(client().raw("flopsight_e2e{gpu=\"1\"}", window, std::ref(seen)).ok());
  ASSERT_EQ(seen.points["1"].size(), 10U);
  EXPECT_EQ(seen.points["1"].front().value, 1010);
  EXPECT_EQ(seen.points["1"].back().value, 1019);
}

TEST_P(PrometheusRealServer, hands_over_samples_at_both_sides_of_every_edge) {
  PrometheusOptions options;
  options.raw_chunk = Seconds(0.010);
  ByGpu seen;
  const Window window{start_, start_ + Seconds(0.095)};
  const auto status = client(options).raw("flopsight_e2e_dense", window, std::ref(seen));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(seen.pieces, 10U);
  ASSERT_EQ(seen.points[""].size(), 95U);
  for (std::size_t i = 0; i < 95; ++i) {
    EXPECT_EQ(seen.points[""][i].unix_milliseconds,
              start_.unix_milliseconds + static_cast<std::int64_t>(i));
    EXPECT_EQ(seen.points[""][i].value, static_cast<double>(i));
  }
}

TEST_P(PrometheusRealServer, sees_the_newest_sample_at_an_instant) {
  const auto answer = client().query("flopsight_e2e{gpu=\"0\"}", Instant{time_of(kSamples - 1)});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_EQ(answer->series.size(), 1U);
  EXPECT_EQ(answer->series[0].points.at(0).value, kSamples - 1);
}

TEST_P(PrometheusRealServer, answers_a_split_range_as_if_it_were_one) {
  PrometheusOptions options;
  options.points_per_request_max = 50;
  ByGpu seen;
  const auto status = client(options).query_range("flopsight_e2e{gpu!=\"2\"}", {start_, end_},
                                                  Seconds(15), std::ref(seen));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_GE(seen.pieces, 15U);
  ASSERT_EQ(seen.points.size(), 3U);
  for (const auto& [gpu, points] : seen.points) {
    ASSERT_EQ(points.size(), static_cast<std::size_t>(kSamples)) << gpu;
    // VictoriaMetrics repeats a value at steps younger than its latency offset of 30 s.
    for (std::size_t i = 0; i + 4 < points.size(); ++i) {
      EXPECT_EQ(points[i].unix_milliseconds, time_of(static_cast<std::int64_t>(i)));
      EXPECT_EQ(points[i].value, 1000 * std::stod(gpu) + static_cast<double>(i));
    }
  }
}

TEST_P(PrometheusRealServer, halves_a_range_that_the_server_refuses) {
  PrometheusOptions options;
  options.points_per_request_max = 1'000'000;
  ByGpu seen;
  const auto status = client(options).query_range("flopsight_e2e{gpu=\"0\"}", {start_, end_},
                                                  Seconds(0.25), std::ref(seen));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_GT(seen.pieces, 1U);
  const std::vector<wire::ApiPoint>& points = seen.points["0"];
  ASSERT_EQ(points.size(), 3U * 3600 * 4);
  for (std::size_t i = 0; i < points.size(); i += 60) {
    EXPECT_EQ(points[i].unix_milliseconds,
              start_.unix_milliseconds + static_cast<std::int64_t>(i) * 250);
    // The last minute is left out for VictoriaMetrics, as above.
    EXPECT_TRUE(i + 240 >= points.size() || points[i].value == static_cast<double>(i / 60)) << i;
  }
}

TEST_P(PrometheusRealServer, sees_the_gap_at_an_instant) {
  PrometheusClient prometheus = client();
  const auto count = [&](std::int64_t sample) {
    const auto answer = prometheus.query("count(flopsight_e2e)", Instant{time_of(sample)});
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() && answer->series.size() == 1 ? answer->series[0].points.at(0).value : -1;
  };
  EXPECT_EQ(count(200), 4);
  EXPECT_EQ(count(390), 3);
  EXPECT_EQ(count(400), 4);
}

TEST_P(PrometheusRealServer, reads_scalars_and_numbers_that_are_not_finite) {
  PrometheusClient prometheus = client();
  const auto value = [&](const char* promql) {
    const auto answer = prometheus.query(promql, Instant{time_of(100)});
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() && answer->series.size() == 1 ? answer->series[0].points.at(0).value : -1;
  };
  EXPECT_EQ(value("1 + 2"), 3);
  EXPECT_EQ(value("vector(1e300) * 1e300"), INFINITY);
  EXPECT_EQ(value("-1 * vector(1e300) * 1e300"), -INFINITY);
  EXPECT_EQ(value("flopsight_e2e{gpu=\"3\"}"), 3100);
}

TEST_P(PrometheusRealServer, lists_label_values_and_series) {
  PrometheusClient prometheus = client();
  const auto gpus = prometheus.label_values("gpu", {start_, end_});
  ASSERT_TRUE(gpus.ok()) << gpus.error().message;
  EXPECT_THAT(*gpus, UnorderedElementsAre("0", "1", "2", "3"));
  const auto series = prometheus.series("flopsight_e2e{gpu=~\"[01]\"}", {start_, end_});
  ASSERT_TRUE(series.ok()) << series.error().message;
  EXPECT_EQ(series->size(), 2U);
}

TEST_P(PrometheusRealServer, is_named) {
  const auto name = client().server_name();
  ASSERT_TRUE(name.ok()) << name.error().message;
  EXPECT_THAT(*name, testing::StartsWith(GetParam().name));
}

TEST_P(PrometheusRealServer, explains_a_bad_query_in_one_line) {
  const auto answer = client().query("flopsight_e2e{", end_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(answer.error().message, HasSubstr(url_ + "/api/v1/query: flopsight_e2e{: "));
  EXPECT_THAT(answer.error().message, testing::Not(HasSubstr("\n")));
}

TEST_P(PrometheusRealServer, names_the_api_it_expected_behind_a_wrong_url) {
  const auto answer = client({}, "/no/such/prefix").query("up", end_);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("expected a Prometheus HTTP API at " + url_ +
                                                "/no/such/prefix/api/v1/query"));
}

INSTANTIATE_TEST_SUITE_P(
    Servers, PrometheusRealServer,
    testing::Values(RealServer{"FLOPSIGHT_E2E_PROMETHEUS_URL", "Prometheus 2."},
                    RealServer{"FLOPSIGHT_E2E_VICTORIA_URL", "VictoriaMetrics"},
                    // The same with small limits, so that the servers refuse most first requests.
                    RealServer{"FLOPSIGHT_E2E_SMALL_PROMETHEUS_URL", "Prometheus 2."},
                    RealServer{"FLOPSIGHT_E2E_SMALL_VICTORIA_URL", "VictoriaMetrics"}),
    name_of);

}  // namespace
}  // namespace flopsight::sources
