#include "serve/scrape_service.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "net/test_http_server.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

class Scrapes : public testing::Test, public test::IngestHarness {};

TEST_F(Scrapes, hosts_are_down_whose_exporters_failed_three_times_in_a_row_by_url_and_by_label) {
  net::TestHttpServer server([](const net::TestRequest&) {
    net::TestReply reply;
    reply.body = "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",Hostname=\"n1\"} 1500\n";
    return reply;
  });
  const std::string file = folder_.path() + "/targets.json";
  // Nothing listens on port 1. The exporter that answers is on the same address, and known by its label.
  std::ofstream(file) << R"([{"targets": ["localhost:1"], "labels": {"Hostname": "n7"}}, {"targets": [")" << server.url("").substr(7)
                      << R"("], "labels": {"Hostname": "n1"}}])";
  ServeConfig config;
  config.scrape_files = {file};
  config.scrape_interval = units::Seconds(0.1);
  config.scrape_timeout = units::Seconds(0.1);
  auto service = ScrapeService::start(config, *ingest_, [this] { return now_; }, false);
  ASSERT_TRUE(service.ok()) << service.error().message;
  EXPECT_TRUE((*service)->hosts_down(rules_).empty());
  std::set<std::string> down;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (down.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    down = (*service)->hosts_down(rules_);
  }
  EXPECT_EQ(down, (std::set<std::string>{"localhost", "n7"}));
}

}  // namespace
}  // namespace flopsight::app
