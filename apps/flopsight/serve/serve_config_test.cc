#include "serve/serve_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test_support.h"

namespace flopsight::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using units::Seconds;

class Config : public testing::Test {
 protected:
  base::Result<ServeConfig> read(std::string_view yaml, const std::vector<Setting>& flags = {}) {
    return read_config(folder_.write("f.yml", yaml), flags);
  }
  // The complaint without the folder; "" when there is none.
  std::string mistake(std::string_view yaml, const std::vector<Setting>& flags = {}) {
    const auto config = read(yaml, flags);
    std::string message = config.ok() ? "" : config.error().message;
    if (message.starts_with(folder_.path())) message.erase(0, folder_.path().size() + 1);
    return message;
  }
  static std::string check(const std::function<void(ServeConfig&)>& change) {
    ServeConfig config;
    change(config);
    const base::Status checked = check_config(config);
    return checked.ok() ? "" : checked.error().message;
  }
  test::TempFolder folder_;
};

TEST_F(Config, nothing_is_the_defaults_and_they_are_right) {
  for (const char* empty : {"", "\n", "# a comment\n", "scrape:\n"}) {
    const auto config = read(empty);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->listen, "127.0.0.1:9890");
    EXPECT_TRUE(check_config(*config).ok());
  }
}

TEST_F(Config, every_kind_of_value) {
  const auto config = read(
      "listen: \"[::1]:1\"\n"
      "scrape:\n  targets: [n0:9400, 'n1:9400']\n  files:\n    - /etc/*.json\n  dns: one:9400\n  interval: 1m30s\n  discover: true\n"
      "rollup: {slot: 30s}\nlimits:\n  body-bytes: 3 MiB\n  log-bytes: 1TiB\n  bodies-bytes: 17\n  decompressed-bytes: 5B\n  page: 7\n"
      "metrics:\n  per-gpu: false\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->listen, "[::1]:1");
  EXPECT_THAT(config->scrape_targets, ElementsAre("n0:9400", "n1:9400"));
  EXPECT_THAT(config->scrape_files, ElementsAre("/etc/*.json"));
  EXPECT_THAT(config->scrape_dns, ElementsAre("one:9400"));
  EXPECT_EQ(config->scrape_interval, Seconds(90));
  EXPECT_TRUE(config->scrape_discover);
  EXPECT_EQ(config->rollup_slot, Seconds(30));
  EXPECT_EQ(config->limits_body_bytes, 3U << 20);
  EXPECT_EQ(config->limits_log_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(config->limits_bodies_bytes, 17U);
  EXPECT_EQ(config->limits_decompressed_bytes, 5U);
  EXPECT_EQ(config->limits_page, 7U);
  EXPECT_FALSE(config->metrics_per_gpu);
}

TEST_F(Config, flags_win_and_a_list_of_flags_replaces_the_files) {
  const auto config = read("listen: a:1\nscrape:\n  targets: [x:1, y:2]\n  files: [f]\nlimits:\n  page: 5\n",
                           {{"listen", "b:2"}, {"scrape.targets", "z:3"}, {"scrape.targets", "w:4"}, {"limits.page", "6"}});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->listen, "b:2");
  EXPECT_THAT(config->scrape_targets, ElementsAre("z:3", "w:4"));
  EXPECT_THAT(config->scrape_files, ElementsAre("f"));
  EXPECT_EQ(config->limits_page, 6U);
}

TEST_F(Config, what_needs_a_restart_stays_and_is_named_and_all_else_is_taken) {
  ServeConfig running;
  running.engine_headers = {"A: 1"};
  ServeConfig next = running;
  EXPECT_THAT(keep_until_restart(running, next), IsEmpty());
  next.listen = "127.0.0.1:1";
  next.rollup_late = Seconds(7);
  next.engine_headers = {"A: 2"};
  next.limits_gpus = 5;
  next.slurm_interval = Seconds(9);
  next.limits_page = 3;
  next.training_logs = "logs.yml";
  EXPECT_THAT(keep_until_restart(running, next), ElementsAre("listen", "rollup.late", "engine.headers", "limits.gpus"));
  EXPECT_EQ(next.listen, running.listen);
  EXPECT_EQ(next.rollup_late, running.rollup_late);
  EXPECT_THAT(next.engine_headers, ElementsAre("A: 1"));
  EXPECT_EQ(next.limits_gpus, running.limits_gpus);
  EXPECT_EQ(next.slurm_interval, Seconds(9));
  EXPECT_EQ(next.limits_page, 3U);
  EXPECT_EQ(next.training_logs, "logs.yml");
}

TEST_F(Config, every_mistake_is_one_line_with_file_and_line) {
  EXPECT_EQ(mistake("listen: a\nlisten_on: b\n"), "f.yml:2: listen_on: no such key (docs/configuration.md has all)");
  EXPECT_EQ(mistake("scrape:\n  intervall: 15s\n"), "f.yml:2: scrape.intervall: no such key (docs/configuration.md has all)");
  EXPECT_EQ(mistake("scrape:\n  interval: 15\n"), "f.yml:2: scrape.interval: found \"15\", expected a duration such as 15s or 7d");
  EXPECT_EQ(mistake("\n\nlimits:\n  page: many\n"), "f.yml:4: limits.page: found \"many\", expected a whole number");
  EXPECT_EQ(mistake("limits:\n  page: -1\n"), "f.yml:2: limits.page: found \"-1\", expected a whole number");
  EXPECT_EQ(mistake("limits:\n  page: 1.5\n"), "f.yml:2: limits.page: found \"1.5\", expected a whole number");
  EXPECT_EQ(mistake("limits:\n  body-bytes: 1 parsec\n"),
            "f.yml:2: limits.body-bytes: found \"1 parsec\", expected a number of bytes, also with KiB, MiB, GiB or TiB");
  EXPECT_EQ(mistake("limits:\n  log-bytes: 9000000TiB\n"),
            "f.yml:2: limits.log-bytes: found \"9000000TiB\", expected a number of bytes, also with KiB, MiB, GiB or TiB");
  EXPECT_EQ(mistake("metrics:\n  per-gpu: yes\n"), "f.yml:2: metrics.per-gpu: found \"yes\", expected true or false");
  EXPECT_EQ(mistake("scrape: 15s\n"), "f.yml:1: scrape: expected keys under it");
  EXPECT_EQ(mistake("listen:\n  - a\n"), "f.yml:2: listen: found a list, expected ADDRESS:PORT");
  EXPECT_EQ(mistake("scrape:\n  targets:\n    - a:1\n    - b: 2\n"), "f.yml:4: scrape.targets: expected a list of HOST:PORT or a URL");
  EXPECT_EQ(mistake("scrape:\n  targets: {a: 1}\n"), "f.yml:2: scrape.targets: found a mapping, expected HOST:PORT or a URL");
  EXPECT_EQ(mistake("store:\n"), "f.yml:1: store: found nothing, expected a folder");
  EXPECT_EQ(mistake("scrape:\n  targets: ['']\n"), "f.yml:2: scrape.targets: found \"\", expected HOST:PORT or a URL");
  EXPECT_EQ(mistake("- a\n- b\n"), "f.yml: found a list, expected keys");
  EXPECT_EQ(mistake("", {{"limits.page", "x"}}), "--limits-page: limits.page: found \"x\", expected a whole number");
  EXPECT_THAT(mistake("listen: a\nlisten: b\n"), HasSubstr("f.yml: line 2"));
  EXPECT_THAT(mistake("listen: [a\n"), HasSubstr("f.yml: line"));
  EXPECT_THAT(mistake(std::string("listen: a\0b\n", 12)), testing::Not(HasSubstr(std::string(1, '\0'))));
  for (const char* bad : {"a: \"x\ny\"\n", "\x1b[31m: 1\n", "? [1]\n: 2\n"}) {
    const std::string message = mistake(bad);
    EXPECT_NE(message, "") << bad;
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos) << message;
  }
  EXPECT_THAT(read_config(folder_.path() + "/none.yml", {}).error().message, HasSubstr("none.yml"));
}

TEST_F(Config, what_does_not_fit_together) {
  EXPECT_EQ(check([](ServeConfig&) {}), "");
  EXPECT_THAT(check([](ServeConfig& c) { c.listen = "nowhere"; }), HasSubstr("expected ADDRESS:PORT"));
  EXPECT_THAT(check([](ServeConfig& c) { c.listen = "0.0.0.0:1"; }), HasSubstr("is not loopback"));
  EXPECT_THAT(check([](ServeConfig& c) { c.listen = ":1"; }), HasSubstr("is not loopback"));
  EXPECT_EQ(check([](ServeConfig& c) { c.listen = ":1", c.allow_insecure = true; }), "");
  for (const double slot : {9.0, 601.0, 70.0, 10.5}) {
    EXPECT_THAT(check([&](ServeConfig& c) { c.rollup_slot = Seconds(slot); }), HasSubstr("rollup.slot")) << slot;
  }
  for (const double slot : {10.0, 30.0, 60.0, 600.0}) {
    EXPECT_EQ(check([&](ServeConfig& c) { c.rollup_slot = Seconds(slot); }), "") << slot;
  }
  EXPECT_THAT(check([](ServeConfig& c) { c.scrape_timeout = Seconds(16); }), HasSubstr("scrape.timeout"));
  EXPECT_THAT(check([](ServeConfig& c) { c.scrape_shards = 0; }), HasSubstr("scrape.shard"));
  EXPECT_THAT(check([](ServeConfig& c) { c.scrape_shard = 1; }), HasSubstr("scrape.shard"));
  EXPECT_EQ(check([](ServeConfig& c) { c.scrape_shard = 1, c.scrape_shards = 2; }), "");
  EXPECT_THAT(check([](ServeConfig& c) { c.retention_fine = Seconds(1e9); }), HasSubstr("retention"));
  EXPECT_THAT(check([](ServeConfig& c) { c.scrape_targets = {"http://[::1"}; }), HasSubstr("scrape.targets: target"));
  EXPECT_THAT(check([](ServeConfig& c) { c.scrape_dns = {"[::1]:9400"}; }), HasSubstr("scrape.dns: dns [::1]:9400: expected a name"));
  EXPECT_EQ(check([](ServeConfig& c) { c.scrape_dns = {"exporters.example:9400"}, c.allowed_hosts = {"Ofu.example"}; }), "");
  for (const char* host : {"http://x", "x:9890", "x/y", "x y"}) {
    EXPECT_THAT(check([&](ServeConfig& c) { c.allowed_hosts = {host}; }), HasSubstr("allowed-hosts: found")) << host;
  }
  EXPECT_THAT(check([](ServeConfig& c) { c.limits_page = 0; }), HasSubstr("limits.page"));
  EXPECT_THAT(check([](ServeConfig& c) { c.rules = "/nowhere/rules"; }), HasSubstr("/nowhere/rules"));
}

TEST_F(Config, an_engine_is_an_address_and_how_to_speak_to_it) {
  const auto config = read("engine:\n  url: https://vm:8428/select/0/prometheus\n  headers: ['X-Scope-OrgID: gpus']\n  gpu-cells: false\n"
                           "  outbox-bytes: 1GiB\n",
                           {{"engine.headers", "A: b"}, {"engine.timeout", "5s"}});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->engine_url, "https://vm:8428/select/0/prometheus");
  EXPECT_THAT(config->engine_headers, ElementsAre("A: b"));
  EXPECT_FALSE(config->engine_gpu_cells);
  EXPECT_EQ(config->engine_outbox_bytes, 1U << 30);
  EXPECT_EQ(config->engine_timeout, Seconds(5));
  EXPECT_TRUE(check_config(*config).ok());
  const auto with = [](const std::function<void(ServeConfig&)>& change) {
    return check([&](ServeConfig& c) { c.engine_url = "http://vm:8428", change(c); });
  };
  EXPECT_EQ(with([](ServeConfig&) {}), "");
  for (const char* bad : {"vm:8428", "ftp://vm", "http://vm/?a=b", "http://vm#x"}) {
    EXPECT_THAT(with([&](ServeConfig& c) { c.engine_url = bad; }), HasSubstr("engine.url: expected a URL")) << bad;
    EXPECT_THAT(with([&](ServeConfig& c) { c.engine_write_url = bad; }), HasSubstr("engine.write-url: expected a URL")) << bad;
  }
  EXPECT_THAT(check([](ServeConfig& c) { c.engine_write_url = "http://vm/w"; }), HasSubstr("expected engine.url"));
  EXPECT_THAT(with([](ServeConfig& c) { c.retention_bytes = 1; }), HasSubstr("retention.bytes"));
  EXPECT_THAT(with([](ServeConfig& c) { c.scrape_basic_user = "u"; }), HasSubstr("belong together"));
  EXPECT_THAT(with([](ServeConfig& c) { c.scrape_cert_file = "/c"; }), HasSubstr("belong together"));
  EXPECT_THAT(with([](ServeConfig& c) { c.scrape_bearer_token_file = "/nonexistent"; }), HasSubstr("/nonexistent"));
  EXPECT_THAT(with([](ServeConfig& c) { c.engine_basic_user = "u"; }), HasSubstr("belong together"));
  EXPECT_THAT(with([](ServeConfig& c) { c.engine_key_file = "/k"; }), HasSubstr("belong together"));
  EXPECT_THAT(with([](ServeConfig& c) { c.engine_headers = {"nothing"}; }), HasSubstr("engine.headers"));
  EXPECT_THAT(with([](ServeConfig& c) { c.engine_bearer_token_file = "/nowhere/token"; }), HasSubstr("/nowhere/token"));
  EXPECT_THAT(with([](ServeConfig& c) { c.engine_timeout = Seconds(0); }), HasSubstr("engine.timeout"));
}

// A number that is cut to 32 bits on its way would be a smaller limit than was asked for, or none at all.
TEST_F(Config, limits_that_are_no_limits_are_refused) {
  constexpr std::uint64_t kTooMany = std::uint64_t{1} << 32;
  for (const auto field : {&ServeConfig::limits_gpus, &ServeConfig::limits_label_sets, &ServeConfig::limits_holders,
                           &ServeConfig::limits_labels, &ServeConfig::limits_label_name_bytes,
                           &ServeConfig::limits_label_value_bytes, &ServeConfig::limits_series,
                           &ServeConfig::limits_connections, &ServeConfig::scrape_targets_max, &ServeConfig::scrape_shards}) {
    EXPECT_THAT(check([&](ServeConfig& c) { c.*field = kTooMany; }), HasSubstr("4294967295"));
  }
  EXPECT_THAT(check([](ServeConfig& c) { c.limits_connections = 0; }), HasSubstr("limits.connections"));
  EXPECT_THAT(check([](ServeConfig& c) { c.limits_body_bytes = 0; }), HasSubstr("limits.body-bytes"));
  EXPECT_THAT(check([](ServeConfig& c) { c.limits_query_steps = 0; }), HasSubstr("limits.query-steps"));
}

TEST_F(Config, slurm_is_asked_in_one_way_and_its_cluster_has_a_name) {
  EXPECT_EQ(check([](ServeConfig& c) { c.slurm_commands = true, c.slurm_cluster = "alpha"; }), "");
  EXPECT_EQ(check([](ServeConfig& c) { c.slurm_rest_url = "unix:/run/rest", c.slurm_cluster = "alpha"; }), "");
  EXPECT_THAT(check([](ServeConfig& c) { c.slurm_commands = true; }), HasSubstr("slurm.cluster: missing"));
  EXPECT_THAT(check([](ServeConfig& c) { c.slurm_commands = true, c.slurm_rest_url = "http://h"; }),
              HasSubstr("expected one of them"));
  EXPECT_THAT(check([](ServeConfig& c) { c.slurm_rest_url = "ftp://h"; }), HasSubstr("slurm.rest-url: found \"ftp://h\""));
  EXPECT_THAT(check([](ServeConfig& c) { c.slurm_zone = "Europe/Pari"; }), HasSubstr("slurm.zone"));
}

TEST(Listen, addresses) {
  const auto listen = parse_listen("[::1]:9890");
  ASSERT_TRUE(listen);
  EXPECT_EQ(listen->address, "::1");
  EXPECT_EQ(listen->port, 9890);
  EXPECT_TRUE(listen->is_loopback);
  EXPECT_EQ(parse_listen(":80")->address, "0.0.0.0");
  EXPECT_FALSE(parse_listen(":80")->is_loopback);
  EXPECT_TRUE(parse_listen("localhost:0")->is_loopback);
  EXPECT_TRUE(parse_listen("127.9.9.9:1")->is_loopback);
  // A name may mean any address, whatever it begins with.
  EXPECT_FALSE(parse_listen("127.evil.example:1")->is_loopback);
  EXPECT_FALSE(parse_listen("10.0.0.1:65535")->is_loopback);
  for (const char* bad : {"", "host", "host:", "host:65536", "host:-1", "host:x", "host:1.5"}) {
    EXPECT_FALSE(parse_listen(bad)) << bad;
  }
}

TEST(Settings, keys_and_flags_are_distinct_and_documented) {
  std::set<std::string> flags;
  const std::string page = configuration_markdown();
  for (const SettingInfo& info : settings()) {
    EXPECT_TRUE(flags.insert(flag_of(info.key)).second) << info.key;
    EXPECT_THAT(page, HasSubstr("| `" + std::string(info.key) + (info.needs_restart ? "` † |" : "` |")));
    EXPECT_FALSE(info.meaning.empty());
  }
}

TEST(CheckConfig, says_ok_or_where_it_is_wrong) {
  const test::TempFolder folder;
  const auto good = test::run_program({"check-config", folder.write("good.yml", "limits:\n  page: 5\n")});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, folder.path() + "/good.yml: ok\n");
  for (const auto& [name, yaml, part] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"key.yml", "listen_on: a:1\n", "key.yml:1: listen_on: no such key"},
           {"open.yml", "listen: 0.0.0.0:1\n", "is not loopback"},
           {"tokens.yml", "tokens-file: " + folder.write("tokens", "tokens: []\n") + "\n", "tokens:1: expected a list"},
           {"logs.yml", "training-logs: " + folder.write("logs", "training-logs:\n- {path: /a.log}\n") + "\n",
            "logs: line 2: a source without job or job-regex"},
           {"metrics.yml", "training-metrics: " + folder.write("metrics", "training-metrics:\n- {name: a, means: mfu}\n") + "\n", "line 2: unit: found"},
           {"rules.yml", "rules: /nowhere\n", "/nowhere"}}) {
    const auto bad = test::run_program({"check-config", folder.write(name, yaml)});
    EXPECT_EQ(bad.exit_code, 2) << name;
    EXPECT_EQ(bad.out, "");
    EXPECT_THAT(bad.err, HasSubstr(part));
    EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 1) << bad.err;
  }
}

TEST(CheckConfig, whatever_is_wrong_with_a_value_has_the_place_of_its_key) {
  const test::TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"\nlisten: nowhere\n", ":2: listen: found"},
      {"limits:\n  page: 0\n", ":2: limits.page: expected at least 1"},
      {"scrape:\n  interval: 5s\n", ":2: scrape.interval: 5s is shorter than scrape.timeout: 10s (the default)"},
      {"scrape:\n  interval: 5s\n  timeout: 6s\n", ":3: scrape.timeout: 6s is longer than scrape.interval: 5s"},
      {"scrape:\n  timeout: 20s\n", ":2: scrape.timeout: 20s is longer than scrape.interval: 15s (the default)"},
      {"groups:\n  patterns: ['(']\n", ":2: groups.patterns"},
      {"families:\n  ignore: ['(']\n", ":2: families.ignore"},
      {"rollup:\n  slot: 7s\n", ":2: rollup.slot: expected"},
      {"retention:\n  fine: 90d\n", ":2: retention: expected fine"},
      {"engine:\n  url: nowhere\n", ":2: engine.url: expected"},
      {"slurm:\n  zone: Mars/Base\n", ":2: slurm.zone"},
      {"scrape:\n  targets:\n    - n1:9400\n    - node-1\n", ":4: scrape.targets: target \"node-1\": expected host:port"},
      {"scrape: {dns: [noport]}\n", ":1: scrape.dns: target \"noport\": expected host:port"},
      {"allowed-hosts: ['a/b']\n", ":1: allowed-hosts: found"},
      {"findings:\n  off: [low_power, nonsense]\n", ":2: findings.off: found"},
      {"store: /dev/null\n", ":1: store: found \"/dev/null\", expected a folder"},
      {"store: /dev/null/x\n", ":1: store: found \"/dev/null/x\", expected a folder; /dev/null is none"},
      {"limits: {page: 5}\n---\nlisten: 1\n", "a second document, expected one"},
      {"jobs: " + folder.write("bad.csv", "what,ever\n1,2\n") + "\n", "bad.csv"},
  };
  for (const auto& [yaml, said] : wrong) {
    const auto bad = test::run_program({"check-config", folder.write("bad.yml", yaml)});
    EXPECT_EQ(bad.exit_code, 2) << yaml;
    EXPECT_THAT(bad.err, HasSubstr(said)) << yaml;
    EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 1) << bad.err;
  }
}

TEST(CheckConfig, says_which_prices_and_targets_are_of_no_model_and_is_ok) {
  const test::TempFolder folder;
  const std::string yaml = "prices: " + folder.write("prices", R"({"H100": 2, "H100-SXM5-80GB": 2})") + "\nattainable: " + folder.write("targets", R"({"a100-sxm4-80gb": 0.5})") + "\n";
  const auto out = test::run_program({"check-config", folder.write("c.yml", yaml)});
  EXPECT_EQ(out.exit_code, 0) << out.err;
  EXPECT_THAT(out.err, HasSubstr("prices: H100: not in the catalogue"));
  EXPECT_THAT(out.err, HasSubstr("attainable: a100-sxm4-80gb: not in the catalogue, which has A100-SXM4-80GB"));
  EXPECT_EQ(std::count(out.err.begin(), out.err.end(), '\n'), 2) << out.err;
}

}  // namespace
}  // namespace flopsight::app
