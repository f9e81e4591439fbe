// What goes wrong before an answer: exit code 2, nothing on stdout, and one line on stderr that says what, where and
// what was expected.
#include <gtest/gtest.h>

#include <algorithm>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

const std::string& good() {
  static const std::string scrape =
      sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") + sample(kClock, h100("GPU-a", "n1", "0"), "1830");
  return scrape;
}

// Each of `parts` must be in the one line.
void expect_refused(const Answer& answer, const std::vector<std::string>& parts) {
  EXPECT_EQ(answer.exit_code, 2) << answer.err;
  EXPECT_EQ(answer.out, "");
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  EXPECT_TRUE(answer.err.ends_with('\n')) << answer.err;
  for (const char c : answer.err) EXPECT_TRUE(c >= 0x20 || c == '\n') << answer.err;
  for (const std::string& part : parts) EXPECT_NE(answer.err.find(part), std::string::npos) << part << " in: " << answer.err;
}

Answer with_options(const std::vector<std::string>& options) { return run_report_on({{good()}, options, {}}); }

Answer with_file(const std::string& option, const std::string& text_of_file) {
  return run_report_on({{good()}, {option, "@settings"}, {{"settings", text_of_file}}});
}

TEST(ReportErrors, no_arguments) {
  expect_refused(run_program({}), {"expected a command", "report"});
  expect_refused(run_program({"report"}), {"--file"});
  expect_refused(run_program({""}), {});
}

TEST(ReportErrors, unknown_commands_and_flags) {
  expect_refused(run_program({"rapport"}), {"rapport"});
  expect_refused(with_options({"--fil", "x"}), {"--fil"});
  expect_refused(with_options({"-x"}), {"-x"});
  expect_refused(with_options({"leftover"}), {"leftover"});
  expect_refused(run_program({"report", "--file"}), {"--file"});
}

TEST(ReportErrors, help_and_version_are_no_errors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"report", "--help"}, {"--version"}, {"docs", "metrics"}}) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_FALSE(answer.out.empty());
    EXPECT_EQ(answer.err, "");
  }
}

TEST(ReportErrors, a_file_that_is_not_there_or_is_no_file) {
  const TempFolder folder;
  expect_refused(run_program({"report", "--file", folder.path() + "/none.prom"}), {"none.prom", "No such file"});
  expect_refused(run_program({"report", "--file", folder.path()}), {folder.path(), "directory"});
  expect_refused(run_program({"report", "--file", folder.write("a.prom", good()), "--file", folder.path() + "/b.prom"}),
                 {"b.prom", "No such file"});
}

TEST(ReportErrors, bytes_that_are_no_scrape) {
  const std::string binary("\x7f" "ELF\x02\x01\x01\0\0\xff\xfe\n\x80\x81\n", 15);
  expect_refused(run_report_on({{binary}, {}, {}}), {"scrape1.prom", "expected"});
  expect_refused(run_report_on({{"<!DOCTYPE html>\n<html><body><h1>404 Not Found</h1></body></html>\n"}, {}, {}}),
                 {"scrape1.prom", "expected Prometheus text"});
  expect_refused(run_report_on({{"{\"status\":\"success\"}\n"}, {}, {}}), {"scrape1.prom", "expected"});
  expect_refused(run_report_on({{std::string("\x1f\x8b\x08\x00garbage", 11)}, {}, {}}), {"scrape1.prom"});
}

TEST(ReportErrors, a_scrape_without_a_gpu) {
  expect_refused(run_report_on({{""}, {}, {}}), {"no GPU", "empty_scrape"});
  expect_refused(run_report_on({{"# HELP a b\n# TYPE a gauge\n\n"}, {}, {}}), {"no GPU"});
  expect_refused(run_report_on({{"node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1\nup 1\n"}, {}, {}}), {"no GPU"});
}

TEST(ReportErrors, one_bad_file_among_good_ones_is_named) {
  expect_refused(run_report_on({{good(), "<html></html>\n", good()}, {}, {}}), {"scrape2.prom"});
}

TEST(ReportErrors, a_bad_line_among_good_ones_is_skipped_and_told) {
  const Value r = report("not a line {\n" + good() + "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\" 5\n");
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
  EXPECT_EQ(quality(r, "malformed_line"), 2);
}

TEST(ReportErrors, broken_rules) {
  expect_refused(with_file("--rules", ""), {"settings"});
  expect_refused(with_file("--rules", "{\"user\": [\n  \"a\",\n}"), {"settings", "line 3"});
  expect_refused(with_file("--rules", "[]"), {"settings", "object"});
  expect_refused(with_file("--rules", R"({"usr": ["a"]})"), {"usr"});
  expect_refused(with_file("--rules", R"({"user": "a"})"), {"user", "list of strings"});
  expect_refused(with_file("--rules", R"({"user": [1]})"), {"user", "list of strings"});
  expect_refused(with_file("--rules", R"({"holders": [{"rule": "x"}]})"), {"holders", "job"});
  expect_refused(with_file("--rules", R"({"bridge_intervals": -1})"), {"bridge_intervals"});
  expect_refused(with_file("--rules", R"({"bridge_intervals": "two"})"), {"bridge_intervals"});
  expect_refused(with_file("--rules", R"({"index_map": {"n1": [0]}})"), {"index_map"});
  expect_refused(with_file("--rules", R"({"ignore_metrics": [{"driver_version": "525"}]})"), {"ignore_metrics", "metric"});
  expect_refused(with_options({"--rules", "@none.json"}), {"none.json"});
}

TEST(ReportErrors, broken_prices) {
  expect_refused(with_file("--prices", ""), {"settings", "empty"});
  expect_refused(with_file("--prices", "model,price\nx,1\n"), {"line 1", "usd_per_gpu_hour"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx,1\ny,free\n"), {"line 3", "free"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx,-1\n"), {"line 2", "-1"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx,$2.50\n"), {"line 2"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx,nan\n"), {"line 2"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx\n"), {"line 2", "fields"});
  expect_refused(with_file("--prices", R"({"x": "2.50"})"), {"x"});
  expect_refused(with_file("--prices", R"({"x": -2})"), {"x", "-2"});
  expect_refused(with_file("--prices", "{\"x\": 1"), {"settings"});
  expect_refused(with_file("--prices", "model,usd_per_gpu_hour\nx,1\ny,2\nx,3\n"), {"line 4", "another usd_per_gpu_hour", "\"x\""});
  expect_refused(with_file("--prices", "model,team,usd_per_gpu_hour\nx,,1\nx,a,2\nx,a,3\n"), {"line 4", "\"a\""});
  expect_refused(with_file("--prices", "{\"x\":1,\"y\":2,\"x\":3}"), {"\"x\"", "twice"});
  expect_refused(with_file("--prices", "{\"teams\":{\"a\":{\"x\":1,\"x\":1}}}"), {"\"x\"", "twice"});
}

TEST(ReportErrors, broken_jobs) {
  expect_refused(with_file("--jobs", ""), {"settings"});
  expect_refused(with_file("--jobs", "hosts\nn1\n"), {"line 1", "job"});
  expect_refused(with_file("--jobs", "job,hosts\n1,n1\n,n2\n"), {"line 3", "job"});
  expect_refused(with_file("--jobs", "job,hosts\n1,\n"), {"line 2", "hosts"});
  expect_refused(with_file("--jobs", "job,hosts\n1,\"n[3-1]\"\n"), {"line 2"});
  expect_refused(with_file("--jobs", "job,hosts\n1,\"n[1-2\"\n"), {"line 2"});
  expect_refused(with_file("--jobs", "job,hosts\n1,\"n[1-70000]\"\n"), {"line 2", "65536"});
  expect_refused(with_file("--jobs", "job,hosts,start\n1,n1,2026-11-29T10:00:00\n"), {"line 2", "start", "offset"});
  expect_refused(with_file("--jobs", "job,hosts,end\n1,n1,yesterday\n"), {"line 2", "end", "yesterday"});
  expect_refused(with_file("--jobs", "job,hosts,start,end\n1,n1,20,10\n"), {"line 2", "before"});
  expect_refused(with_file("--jobs", "job,hosts,gpus\n1,n1,first\n"), {"line 2", "first"});
  expect_refused(with_file("--jobs", R"([{"job": 1, "hosts": ["n1"]}, {"job": 2}])"), {"entry 2"});
  expect_refused(with_file("--jobs", R"({"job": 1, "hosts": ["n1"]})"), {"list of jobs"});
  expect_refused(with_file("--jobs", R"([{"job": {"id": 1}, "hosts": ["n1"]}])"), {"entry 1", "job"});
  expect_refused(with_file("--jobs", R"([7])"), {"entry 1", "object"});
}

TEST(ReportErrors, broken_catalogues) {
  expect_refused(with_file("--gpu-catalog", ""), {"settings"});
  expect_refused(with_file("--gpu-catalog", "name,clock\nx,1\n"), {"line 1", "model"});
  expect_refused(with_file("--gpu-catalog", "model,tensor_peak_clock_mhz\nX,fast\n"), {"line 2", "tensor_peak_clock_mhz", "fast"});
  expect_refused(with_file("--gpu-catalog", "model,tensor_peak_clock_mhz\nX,0\n"), {"line 2", "above zero"});
  expect_refused(with_file("--gpu-catalog", "model,tensor_peak_clock_mhz\n,1000\n"), {"line 2", "model"});
  expect_refused(with_file("--gpu-catalog", "model,notes\nX,\"open\n"), {"line 2", "quote"});
}

TEST(ReportErrors, flags_that_contradict_each_other) {
  expect_refused(with_options({"--scrape", "http://127.0.0.1:1/metrics"}), {"one of --file, --scrape, --prometheus or --store"});
  expect_refused(with_options({"--prometheus", "http://127.0.0.1:1"}), {"one of"});
  expect_refused(with_options({"--raw"}), {"--prometheus"});
  expect_refused(with_options({"--match", "a=\"b\""}), {"--prometheus"});
  expect_refused(with_options({"--start", "2026-11-29T10:00:00Z", "--since", "1h"}), {"--start", "--since"});
  expect_refused(with_options({"--basic-user", "x"}), {"--basic-password-file"});
  expect_refused(with_options({"--step", "30s"}), {"--step needs --prometheus"});
  expect_refused(with_options({"--timeout", "30s"}), {"--timeout", "need --prometheus or --scrape"});
  expect_refused(with_options({"--header", "a: b"}), {"--header", "need --prometheus or --scrape"});
  expect_refused(run_program({"report", "--store", "x", "--gpu-catalog", "y.csv"}), {"--store has rollups", "--gpu-catalog"});
  expect_refused(with_options({"--cert-file", "x"}), {"--key-file"});
  expect_refused(run_program({"report", "--scrape", "http://127.0.0.1:1/metrics", "--since", "1h"}), {"instant"});
}

TEST(ReportErrors, choices_that_are_none) {
  expect_refused(with_options({"--by", "rack"}), {"rack", "job"});
  expect_refused(with_options({"--format", "xml"}), {"xml", "json"});
  expect_refused(with_options({"--top", "0"}), {"--top"});
  expect_refused(with_options({"--top", "-3"}), {"--top"});
  expect_refused(with_options({"--top", "many"}), {"--top"});
  expect_refused(with_options({"--reference-clock", "fast"}), {"fast", "MHz"});
  expect_refused(with_options({"--reference-clock", "0"}), {"MHz"});
  expect_refused(with_options({"--reference-clock", "1830000000"}), {"MHz"});
}

TEST(ReportErrors, times_that_are_none) {
  for (const char* bad : {"yesterday", "2026-11-29", "2026-11-29T10:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                          "2026-11-29T25:00:00Z", "1795946400000", "nan", "inf", "2026-11-29T10:00:00+99:00"}) {
    expect_refused(with_options({"--start", bad}), {"--start", bad});
  }
  for (const char* bad : {"1", "24", "h", "-1h", "1y", "0s", "1h30", "1.2.3h", "nan", "1e3s"}) {
    expect_refused(with_options({std::string("--since=") + bad}), {"--since", bad});
  }
  expect_refused(with_options({"--start", "2026-11-29T10:00:00Z", "--end", "2026-11-29T10:00:00Z"}), {"--end"});
  expect_refused(with_options({"--start", "2026-11-29T13:00:00Z"}), {"window"});
  expect_refused(with_options({"--step", "0.5s"}), {"--step"});
}

}  // namespace
}  // namespace flopsight::app
