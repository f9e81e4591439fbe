#include "serve/scraper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>

#include "serve/local_exporters.h"
#include "net/test_http_server.h"
#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kMetrics = "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1500\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 50\n";

TestReply text(const std::string& body) {
  TestReply reply;
  reply.body = body;
  return reply;
}

// What the sink was given, and a way to wait for it without sleeping.
struct Sink {
  struct Seen {
    std::string target, text, content_type;
    std::vector<std::pair<std::string, std::string>> labels;
    units::Instant time;
  };
  std::mutex mutex;
  std::condition_variable more;
  std::vector<Seen> seen;
  base::Status answer;

  ScrapeSink function() {
    return [this](const Scrape& scrape) -> base::Status {
      const std::scoped_lock guard(mutex);
      Seen one{std::string(scrape.target), std::string(scrape.text), std::string(scrape.content_type), {}, scrape.time};
      for (const wire::Label& label : scrape.labels) one.labels.emplace_back(label.name, label.value);
      seen.push_back(std::move(one));
      more.notify_all();
      return answer;
    };
  }
  std::vector<Seen> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    more.wait_for(lock, std::chrono::seconds(20), [&] { return seen.size() >= count; });
    return seen;
  }
};

// Until the condition holds or 20 s have gone by.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    never.wait_for(lock, milliseconds(5));
  }
  return true;
}

ScraperOptions options_for(std::vector<std::string> targets) {
  ScraperOptions options;
  options.discovery.targets = std::move(targets);
  options.interval = milliseconds(100);
  options.timeout = milliseconds(100);
  options.discovery.file_refresh = milliseconds(10);
  options.discovery.dns_refresh = milliseconds(20);
  return options;
}

std::unique_ptr<Scraper> start(ScraperOptions options, Sink& sink) {
  auto scraper = Scraper::start(std::move(options), sink.function(), [] { return units::Instant{1'000'000}; });
  EXPECT_TRUE(scraper.ok()) << scraper.error().message;
  return std::move(scraper).value();
}

TEST(Scraper, lines_that_cannot_be_read_and_a_missing_end_are_told_of_their_target) {
  const auto health_of = [](const std::string& body, const std::string& type) {
    TestHttpServer server([&](const TestRequest&) {
      TestReply reply = text(body);
      reply.headers = {{"Content-Type", type}};
      return reply;
    });
    Sink sink;
    const auto scraper = start(options_for({server.url("/metrics")}), sink);
    EXPECT_TRUE(eventually([&] { return scraper->health().size() == 1 && scraper->health()[0].scraped; }));
    const TargetHealth health = scraper->health()[0];
    EXPECT_TRUE(health.up);
    EXPECT_EQ(health.samples, 2U);
    EXPECT_EQ(scraper->counters().cut > 0, health.error.find("was cut") != std::string::npos);
    return std::pair(health.malformed_lines, health.error);
  };
  const std::string open_metrics = "application/openmetrics-text; version=1.0.0";
  EXPECT_EQ(health_of(kMetrics, "text/plain"), std::pair(std::uint64_t{0}, std::string()));
  EXPECT_EQ(health_of(kMetrics + "# EOF\n", open_metrics), std::pair(std::uint64_t{0}, std::string()));
  EXPECT_EQ(health_of(kMetrics, open_metrics), std::pair(std::uint64_t{0}, std::string("OpenMetrics without '# EOF' at the end: the answer was cut")));
  const auto [lines, error] = health_of(kMetrics + "a{b} 1\na{c\n", "text/plain");
  EXPECT_EQ(lines, 2U);
  EXPECT_THAT(error, HasSubstr("2 lines that cannot be read, the first of them line 3: expected "));
}

TEST(Scraper, hands_over_text_target_labels_and_time_again_and_again) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply = text(kMetrics);
    reply.headers = {{"Content-Type", "text/plain; version=0.0.4"}};
    EXPECT_THAT(request.header("accept"), HasSubstr("openmetrics"));
    return reply;
  });
  const test::TempFolder folder;
  ScraperOptions options = options_for({});
  options.discovery.file_sd = {folder.write("t.json", "[{\"targets\": [\"127.0.0.1:" + std::to_string(server.port()) +
                                                          "\"], \"labels\": {\"cluster\": \"a\", \"__metrics_path__\": \"/m\"}}]")};
  Sink sink;
  const auto scraper = start(options, sink);
  const auto seen = sink.wait_for(3);
  ASSERT_GE(seen.size(), 3U);
  EXPECT_EQ(seen[0].target, server.url("/m"));
  EXPECT_EQ(seen[0].text, kMetrics);
  EXPECT_EQ(seen[0].content_type, "text/plain; version=0.0.4");
  EXPECT_THAT(seen[0].labels, ElementsAre(Pair("cluster", "a")));
  EXPECT_EQ(seen[0].time.unix_milliseconds, 1'000'000);
  const auto health = scraper->health();
  ASSERT_EQ(health.size(), 1U);
  EXPECT_TRUE(health[0].up);
  EXPECT_EQ(health[0].samples, 2U);
  EXPECT_EQ(health[0].error, "");
  EXPECT_GE(scraper->counters().samples, 4U);
}

TEST(Scraper, a_gzip_body_is_inflated_and_a_torn_one_is_a_failure) {
  const std::string whole = wire::gzip(kMetrics);
  std::atomic<bool> torn = false;
  TestHttpServer server([&](const TestRequest&) {
    TestReply reply = text(torn ? whole.substr(0, whole.size() - 9) : whole);
    reply.headers = {{"Content-Encoding", "gzip"}};
    return reply;
  });
  Sink sink;
  const auto scraper = start(options_for({server.url()}), sink);
  EXPECT_EQ(sink.wait_for(1).at(0).text, kMetrics);
  torn = true;
  EXPECT_TRUE(eventually([&] { return scraper->counters().failures > 0; }));
  EXPECT_THAT(scraper->health()[0].error, HasSubstr("at byte"));
}

TEST(Scraper, open_metrics_with_fractions_of_a_second_are_samples) {
  constexpr std::string_view kOpenMetrics =
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1755 1790000040.123\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 97 1790000040.123\n# EOF\n";
  TestHttpServer server([&](const TestRequest&) {
    TestReply reply = text(std::string(kOpenMetrics));
    reply.headers = {{"Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8"}};
    return reply;
  });
  Sink sink;
  const auto scraper = start(options_for({server.url()}), sink);
  ASSERT_GE(sink.wait_for(1).size(), 1U);
  EXPECT_TRUE(eventually([&] { return scraper->health()[0].samples == 2; }));
  EXPECT_TRUE(scraper->health()[0].up);
}

TEST(Scraper, an_answer_without_samples_is_counted_and_is_no_failure) {
  std::atomic<bool> empty = true;
  TestHttpServer server([&](const TestRequest&) { return text(empty ? "# HELP x y\n" : kMetrics); });
  Sink sink;
  const auto scraper = start(options_for({server.url()}), sink);
  EXPECT_TRUE(eventually([&] { return scraper->counters().empty >= 2; }));
  EXPECT_TRUE(scraper->health()[0].up);
  EXPECT_EQ(scraper->health()[0].error, "answered without a sample");
  EXPECT_EQ(scraper->counters().failures, 0U);
  empty = false;
  EXPECT_GE(sink.wait_for(1).size(), 1U);
}

TEST(Scraper, a_page_that_is_no_metrics_is_a_failure_that_names_its_type) {
  TestHttpServer server([](const TestRequest&) {
    TestReply reply = text("<html><body>Sign in</body></html>\n");
    reply.headers = {{"Content-Type", "text/html"}};
    return reply;
  });
  Sink sink;
  const auto scraper = start(options_for({server.url()}), sink);
  EXPECT_TRUE(eventually([&] { return scraper->counters().failures > 0; }));
  EXPECT_EQ(scraper->health()[0].error, "line 1: expected Prometheus text or OpenMetrics, found text/html");
}

TEST(Scraper, a_target_that_keeps_failing_is_asked_less_often) {
  std::atomic<int> good = 0, bad = 0;
  TestHttpServer server([&](const TestRequest& request) {
    const bool is_good = request.target == "/good";
    ++(is_good ? good : bad);
    TestReply reply = text(kMetrics);
    if (!is_good) reply.status = "503 Service Unavailable";
    return reply;
  });
  Sink sink;
  const auto scraper = start(options_for({server.url("/good"), server.url("/bad")}), sink);
  sink.wait_for(18);
  // One after another: 0, 1, 2, then after 2, 4 and 8 intervals more.
  EXPECT_LE(bad, 6);
  EXPECT_GE(bad, 3);
  const auto health = scraper->health();
  EXPECT_THAT(health[0].error, HasSubstr("503"));
  EXPECT_FALSE(health[0].up);
  EXPECT_GE(health[0].failures, 3U);
  EXPECT_TRUE(health[1].up);
}

TEST(Scraper, what_the_sink_does_not_take_is_said_and_the_target_stays_up) {
  TestHttpServer server([](const TestRequest&) { return text(kMetrics); });
  Sink sink;
  sink.answer = base::Error{base::ErrorCode::kLimit, "disk full"};
  const auto scraper = start(options_for({server.url()}), sink);
  EXPECT_TRUE(eventually([&] { return scraper->counters().sink_failures > 0; }));
  EXPECT_TRUE(scraper->health()[0].up);
  EXPECT_EQ(scraper->health()[0].error, "not taken: disk full");
}

TEST(Scraper, a_file_that_changes_changes_the_targets_and_a_broken_one_keeps_them) {
  TestHttpServer server([](const TestRequest&) { return text(kMetrics); });
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const test::TempFolder folder;
  folder.write("a.yml", "- targets: [" + address + "]\n  labels: {__metrics_path__: /one}\n");
  ScraperOptions options = options_for({});
  options.discovery.file_sd = {folder.path() + "/*.yml"};
  Sink sink;
  const auto scraper = start(options, sink);
  sink.wait_for(1);
  folder.write("b.yml", "- targets: [" + address + "]\n  labels: {__metrics_path__: /two}\n");
  EXPECT_TRUE(eventually([&] { return scraper->health().size() == 2; }));
  folder.write("a.yml", "- targets: [no good\n");
  EXPECT_TRUE(eventually([&] { return scraper->problems().size() == 1; }));
  EXPECT_THAT(scraper->problems()[0], HasSubstr("a.yml"));
  EXPECT_THAT(scraper->problems()[0], HasSubstr("1 targets of before are kept"));
  EXPECT_EQ(scraper->health().size(), 2U);
  std::filesystem::remove(folder.path() + "/a.yml");
  EXPECT_TRUE(eventually([&] { return scraper->health().size() == 1 && scraper->problems().empty(); }));
  EXPECT_EQ(scraper->health()[0].url, server.url("/two"));
}

TEST(Scraper, every_address_of_a_name_is_a_target_and_a_failed_lookup_keeps_them) {
  TestHttpServer server([](const TestRequest&) { return text(kMetrics); });
  std::atomic<bool> fails = false;
  ScraperOptions options = options_for({});
  options.discovery.dns = {"exporters.example:" + std::to_string(server.port())};
  options.discovery.resolve = [&](const std::string& name) -> base::Result<std::vector<std::string>> {
    EXPECT_EQ(name, "exporters.example");
    if (fails) return base::Error{base::ErrorCode::kUnavailable, "no name server"};
    return std::vector<std::string>{"127.0.0.1", "::1"};
  };
  Sink sink;
  const auto scraper = start(options, sink);
  EXPECT_TRUE(eventually([&] { return scraper->health().size() == 2; }));
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(scraper->health()[0].url, "http://127.0.0.1:" + port + "/metrics");
  EXPECT_EQ(scraper->health()[1].url, "http://[::1]:" + port + "/metrics");
  fails = true;
  EXPECT_TRUE(eventually([&] { return !scraper->problems().empty(); }));
  EXPECT_THAT(scraper->problems(), ElementsAre("dns exporters.example: no name server"));
  EXPECT_EQ(scraper->health().size(), 2U);
  scraper->stop();
}

TEST(Scraper, stops_at_once_while_a_target_and_a_name_server_hang) {
  TestHttpServer server([](const TestRequest&) {
    TestReply reply = text(kMetrics);
    reply.hold_after = 1;
    return reply;
  });
  // Outlives the lookup that nobody waits for.
  static std::mutex held;
  static std::atomic<bool> asked = false;
  held.lock();
  ScraperOptions options = options_for({server.url()});
  options.interval = options.timeout = std::chrono::seconds(30);
  options.interval = milliseconds(30'000);
  options.discovery.dns = {"exporters.example:1"};
  options.discovery.resolve = [](const std::string&) -> base::Result<std::vector<std::string>> {
    asked = true;
    const std::scoped_lock guard(held);
    return std::vector<std::string>{};
  };
  Sink sink;
  const auto scraper = start(options, sink);
  EXPECT_TRUE(eventually([] { return asked.load(); }));
  const auto before = std::chrono::steady_clock::now();
  scraper->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  held.unlock();
}

TEST(Scraper, settings_that_cannot_be_meant_are_refused) {
  const auto error_of = [](ScraperOptions options) {
    const auto scraper = Scraper::start(std::move(options), [](const Scrape&) { return base::Status(); },
                                        [] { return units::Instant{}; });
    return scraper.ok() ? "" : scraper.error().message;
  };
  EXPECT_THAT(error_of(options_for({"n1:x"})), HasSubstr("expected host:port"));
  ScraperOptions shard = options_for({});
  shard.discovery.shard_index = shard.discovery.shard_count = 2;
  EXPECT_THAT(error_of(shard), HasSubstr("shard 2 of 2"));
  ScraperOptions interval = options_for({});
  interval.interval = milliseconds(0);
  EXPECT_THAT(error_of(interval), HasSubstr("scrape interval"));
}

TEST(TargetDiscovery, shards_have_every_target_once_between_them) {
  std::vector<std::string> entries;
  for (int i = 0; i < 300; ++i) entries.push_back("n" + std::to_string(i) + ":9400");
  std::map<std::string, int> seen;
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    DiscoveryOptions options;
    options.targets = entries;
    options.shard_index = shard;
    options.shard_count = 3;
    auto discovery = TargetDiscovery::create(options);
    ASSERT_TRUE(discovery.ok());
    discovery->refresh(TargetDiscovery::Clock::now());
    for (const auto& target : discovery->targets()) ++seen[target.url];
    EXPECT_GT(discovery->targets().size(), 60U);
  }
  EXPECT_EQ(seen.size(), 300U);
  for (const auto& [url, count] : seen) EXPECT_EQ(count, 1) << url;
}

TEST(TargetDiscovery, targets_over_the_limit_are_left_out_and_said) {
  DiscoveryOptions options;
  options.targets = {"n1:1", "n2:1", "n3:1", "n1:1"};
  options.targets_max = 2;
  auto discovery = TargetDiscovery::create(options);
  ASSERT_TRUE(discovery.ok());
  EXPECT_EQ(discovery->targets().size(), 2U);
  EXPECT_THAT(discovery->problems(), ElementsAre("1 targets left out, over the limit of 2"));
}

TEST(LocalExporters, keeps_ports_with_a_gpu_metric) {
  TestHttpServer gpu([](const TestRequest&) { return text(kMetrics); });
  TestHttpServer node([](const TestRequest&) { return text("node_load1 0.5\n"); });
  const std::vector<ExporterPort> ports = {{static_cast<std::uint16_t>(node.port()), "node", ""},
                                           {static_cast<std::uint16_t>(gpu.port()), "gpu", ""}};
  const auto found = discover_local(ports);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].url, gpu.url("/metrics"));
  EXPECT_EQ(found[0].exporter, "gpu");
  EXPECT_EQ(found[0].gpu_samples, 2U);
}

}  // namespace
}  // namespace flopsight::app
