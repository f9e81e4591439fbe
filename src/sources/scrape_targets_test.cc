#include "sources/scrape_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace flopsight::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<ScrapeTarget> targets_of(std::string_view text) {
  const auto targets = parse_file_sd(text, "t.yml", 1000);
  EXPECT_TRUE(targets.ok()) << targets.error().message;
  return targets.ok() ? *targets : std::vector<ScrapeTarget>{};
}

std::string error_of(std::string_view text, std::size_t targets_max = 1000) {
  const auto targets = parse_file_sd(text, "t.yml", targets_max);
  return targets.ok() ? "" : targets.error().message;
}

std::string url_of(std::string_view entry) {
  const auto target = parse_scrape_target(entry);
  return target.ok() ? target->url : "error: " + target.error().message;
}

TEST(FileSd, json_and_yaml_say_the_same) {
  const auto json = targets_of(R"([{"targets": ["n1:9400", "n2:9400"],
    "labels": {"cluster": "a", "rack": "7"}}, {"targets": ["n3:9400"]}])");
  const auto yaml = targets_of("- targets: ['n1:9400', n2:9400]\n  labels: {rack: 7, cluster: a}\n- targets:\n  - n3:9400\n");
  ASSERT_EQ(json.size(), 3U);
  ASSERT_EQ(yaml.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json[i].url, yaml[i].url);
    EXPECT_EQ(json[i].labels, yaml[i].labels);
  }
  EXPECT_EQ(json[0].url, "http://n1:9400/metrics");
  EXPECT_THAT(json[1].labels, ElementsAre(Pair("cluster", "a"), Pair("rack", "7")));
  EXPECT_TRUE(json[2].labels.empty());
}

TEST(FileSd, json_indented_with_tabs_is_read) {
  const auto targets = targets_of("[\n\t{\n\t\t\"targets\": [\n\t\t\t\"n1:9400\"\n\t\t],\n\t\t\"labels\": {\n\t\t\t\"a\": \"b\"\n\t\t}\n\t}\n]\n");
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(targets[0].url, "http://n1:9400/metrics");
}

TEST(FileSd, labels_with_two_underscores_shape_the_scrape_and_are_not_attached) {
  const auto targets = targets_of(R"([{"targets": ["[2001:db8::1]:9400"], "labels": {"__scheme__": "https",
    "__metrics_path__": "/gpu/metrics", "__param_collect": "a b", "__param_x": "1", "__scrape_interval__": "30s",
    "__scrape_timeout__": "5s", "__meta_zone": "z", "host": "n9"}}])");
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(targets[0].url, "https://[2001:db8::1]:9400/gpu/metrics?collect=a%20b&x=1");
  EXPECT_THAT(targets[0].labels, ElementsAre(Pair("host", "n9")));
  EXPECT_EQ(targets[0].interval->value, 30);
  EXPECT_EQ(targets[0].timeout->value, 5);
}

TEST(FileSd, an_address_label_stands_instead_of_the_target) {
  EXPECT_EQ(targets_of(R"([{"targets": ["n1"], "labels": {"__address__": "10.0.0.1:9400"}}])")[0].url,
            "http://10.0.0.1:9400/metrics");
}

TEST(FileSd, a_target_named_twice_counts_once_and_the_first_stands) {
  const auto targets = targets_of(R"([{"targets": ["n1:9400", "n1:9400"], "labels": {"a": "1"}},
                                      {"targets": ["n1:9400"], "labels": {"a": "2"}}])");
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(targets[0].labels[0].second, "1");
}

TEST(FileSd, nothing_is_no_targets) {
  EXPECT_TRUE(targets_of("").empty());
  EXPECT_TRUE(targets_of("[]").empty());
  EXPECT_TRUE(targets_of("- targets: []\n").empty());
}

TEST(FileSd, a_mistake_is_one_line_with_file_and_line) {
  EXPECT_THAT(error_of("targets: [n1:9400]"), HasSubstr("t.yml:1: expected a list of groups"));
  EXPECT_THAT(error_of("- targets: [n1:9400]\n- targets:\n  - http://n2:9400/metrics\n"),
              HasSubstr("t.yml:3: target \"http://n2:9400/metrics\": expected host:port"));
  EXPECT_THAT(error_of("- targets: [n1]\n"), HasSubstr("t.yml:1: target \"n1\": expected host:port"));
  EXPECT_THAT(error_of("- targets: ['n1:99999']\n"), HasSubstr("t.yml:1: target \"n1:99999\": expected host:port"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  labels:\n    a-b: x\n"), HasSubstr("t.yml:3: label \"a-b\": expected a label name"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  labels:\n    a: [x]\n"), HasSubstr("t.yml:3: label a: expected a value"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  labels: {a: \"x\\ny\"}\n"), HasSubstr("label a: expected a value of one line"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  labels: {__scheme__: ftp}\n"), HasSubstr("__scheme__ ftp: expected http or https"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  labels: {__scrape_interval__: 5s, __scrape_timeout__: 6s}\n"),
              HasSubstr("__scrape_timeout__: expected no more than __scrape_interval__"));
  EXPECT_THAT(error_of("- targets: [n1:1]\n  label: {a: b}\n"), HasSubstr("\"label\": expected targets or labels"));
  EXPECT_THAT(error_of("[{\"targets\": [\"n1:1\"]"), HasSubstr("t.yml"));
}

TEST(FileSd, nothing_is_no_json_and_what_follows_a_list_is_no_part_of_it) {
  for (const std::string_view text : {"", " \n", "null"}) {
    const auto targets = parse_file_sd(text, "t.json", 10);
    ASSERT_FALSE(targets.ok()) << text;
    EXPECT_THAT(targets.error().message, HasSubstr("t.json:1: found nothing, expected a list of groups"));
  }
  EXPECT_TRUE(parse_file_sd("[]", "t.json", 10)->empty());
  EXPECT_FALSE(parse_file_sd("[{\"targets\": [\"n1:1\"]}] x", "t.json", 10).ok());
  EXPECT_FALSE(parse_file_sd("[{\"targets\": [\"n1:1\"]}]\n[]\n", "t.json", 10).ok());
}

TEST(FileSd, more_targets_than_allowed_is_an_error) {
  EXPECT_THAT(error_of("- targets: [n1:1, n2:1, n3:1]\n", 2), HasSubstr("t.yml:1: more than 2 targets"));
  EXPECT_EQ(error_of("- targets: [n1:1, n2:1]\n", 2), "");
}

TEST(PlainTarget, host_and_port_or_a_whole_url) {
  EXPECT_EQ(url_of("n1:9400"), "http://n1:9400/metrics");
  EXPECT_EQ(url_of(" n1:80 "), "http://n1:80/metrics");
  EXPECT_EQ(url_of("http://n1/"), "http://n1/");
  EXPECT_EQ(url_of("[::1]:9400"), "http://[::1]:9400/metrics");
  EXPECT_EQ(url_of("https://n1:9400"), "https://n1:9400/metrics");
  EXPECT_EQ(url_of("https://n1:9400?a=b"), "https://n1:9400/metrics?a=b");
  EXPECT_EQ(url_of("https://n1:9400/"), "https://n1:9400/");
  EXPECT_EQ(url_of("http://user:word@n1:9400/probe?x=1#top"), "http://user:word@n1:9400/probe?x=1");
}

TEST(PlainTarget, what_is_no_target_is_refused_without_its_password) {
  for (const std::string_view entry : {"", "n1", "[::1]", "n1:", "n1:0", "n1:9400/metrics", "ftp://n1/", "http://", "n1 n2:1", "[::1", "a@b:1"}) {
    EXPECT_THAT(url_of(entry), HasSubstr("expected host:port or an http:// or https:// URL")) << entry;
  }
  EXPECT_THAT(url_of("http://user:secret@n1:x/"), testing::Not(HasSubstr("secret")));
}

TEST(TargetHash, neighbours_share_the_work_evenly) {
  std::array<int, 4> shards{};
  for (int i = 0; i < 4000; ++i) ++shards[target_hash("http://node-" + std::to_string(i) + ":9400/metrics") % 4];
  for (const int count : shards) EXPECT_NEAR(count, 1000, 120);
  EXPECT_EQ(target_hash("http://n1:9400/metrics"), target_hash("http://n1:9400/metrics"));
}

}  // namespace
}  // namespace flopsight::sources
