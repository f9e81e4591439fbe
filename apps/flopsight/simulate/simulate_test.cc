#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "simulation/options.h"
#include "sources/collector.h"
#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app::test {
namespace {

struct Simulated {
  Value truth;
  Value report;
};

Value json_file(const std::string& path) {
  const auto text = base::read_file(path);
  if (!text.ok()) return Value(text.error().message);
  auto json = base::json::parse(*text);
  return json.ok() ? std::move(json).value() : Value(json.error().message);
}

// simulate --out, then report --file over the same window.
Simulated simulate_and_report(const std::vector<std::string>& options) {
  const TempFolder folder;
  std::vector<std::string> arguments = {"simulate", "--out", folder.path() + "/out"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Answer made = run_program(arguments);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.err, "");
  Simulated out;
  out.truth = json_file(folder.path() + "/out/truth.json");
  const Answer said = run_program({"report", "--file", folder.path() + "/out/samples.prom.gz", "--start",
                                   text(out.truth, "options.start"), "--end", text(out.truth, "options.end"),
                                   "--format", "json"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  auto json = base::json::parse(said.out);
  if (json.ok()) out.report = std::move(json).value();
  return out;
}

// What a report can miss of a job although its samples are exact means: a sample's labels are those of its end and its values
// those of the interval before, so each of the two ends of a job costs at most one interval of its GPUs, allocated and
// delivered; and a power-capped clock is a reading of an instant, within about 1 % of its mean and independent from scrape
// to scrape, which is 0.2 % over the hundred scrapes and GPUs of a short job.
void expect_job(const Value& truth, const Value& report, double interval_seconds, bool shared) {
  const std::string name = text(truth, "job");
  const double gpus = number(truth, "gpus"), edge = gpus * interval_seconds;
  const double allocated = number(truth, "allocated_gpu_seconds"), blind = number(truth, "unmeasured_gpu_seconds");
  const double delivered = number(truth, "delivered_gpu_seconds"),
               seen = delivered - number(truth, "unmeasured_delivered_gpu_seconds");
  if (report.as_object() == nullptr) {
    EXPECT_LT(allocated, 2 * edge) << name << " is missing";
    return;
  }
  // A silence of the exporter at the edge of the window belongs to nobody.
  EXPECT_NEAR(number(report, "gpu_hours_allocated") * 3600, allocated, 2 * edge + blind) << name;
  EXPECT_LE(number(report, "gpu_hours_unmeasured") * 3600, blind + 2 * edge) << name;
  if (shared) {
    // Equal parts are a convention; the band says how far they can be off.
    EXPECT_LE(number(report, "ofu_ratio_low") * allocated, delivered + edge) << name;
    EXPECT_GE(number(report, "ofu_ratio_high") * allocated, delivered - edge) << name;
  } else {
    EXPECT_NEAR(number(report, "gpu_hours_delivered") * 3600, seen, edge + 0.002 * seen) << name;
  }
}

void expect_truth(const Simulated& s, std::size_t jobs_min = 4) {
  const double interval = number(s.truth, "options.interval_seconds");
  const bool shared = text(s.truth, "options.scenario") == "shared_gpus";
  const Value jobs = at(s.truth, "jobs");
  ASSERT_NE(jobs.as_array(), nullptr);
  ASSERT_GE(jobs.as_array()->size(), jobs_min);
  double edges = 0;
  for (const Value& truth : *jobs.as_array()) {
    const Value found = job(s.report, text(truth, "job"));
    expect_job(truth, found, interval, shared);
    edges += number(truth, "gpus") * interval;
    if (found.as_object() == nullptr || text(truth, "namespace") == "null") continue;
    EXPECT_EQ(text(found, "key.user"), text(truth, "user"));
    EXPECT_EQ(text(found, "key.namespace"), text(truth, "namespace"));
  }
  // Edges fall to one side as often as to the other.
  const double seen = number(s.truth, "fleet.delivered_gpu_seconds") - number(s.truth, "fleet.unmeasured_delivered_gpu_seconds");
  EXPECT_NEAR(number(s.report, "fleet.gpu_hours_delivered") * 3600, seen, 0.25 * edges + 0.002 * seen);
  EXPECT_EQ(quality(s.report, "simulated"), 1);
  EXPECT_TRUE(text(s.report, "source").starts_with("SIMULATED"));
  for (const char* code : {"frozen", "contradicted", "out_of_range", "malformed_line", "conflicting_duplicate", "blank",
                           "gpu_without_uuid", "unknown_model", "possible_hang", "counter_uncalibrated"}) {
    const bool hangs = code == std::string("possible_hang") && text(s.truth, "options.scenario") == "hang";
    EXPECT_EQ(quality(s.report, code) > 0, hangs) << code;
  }
}

class SimulateScenario : public testing::TestWithParam<const char*> {};

TEST_P(SimulateScenario, the_report_of_its_samples_is_its_truth) {
  for (const char* seed : {"1", "2", "3"}) {
    SCOPED_TRACE(seed);
    expect_truth(simulate_and_report({"--scenario", GetParam(), "--gpus", "24", "--hours", "2", "--seed", seed,
                                      "--metrics", "10", "--interval", "30s"}));
  }
}

TEST_P(SimulateScenario, slurm_labels_and_another_gpu_do_as_well) {
  expect_truth(simulate_and_report({"--scenario", GetParam(), "--gpus", "16", "--hours", "1.5", "--seed", "9", "--labels",
                                    "slurm", "--model", "NVIDIA A100-SXM4-80GB", "--gpus-per-host", "4"}));
}

INSTANTIATE_TEST_SUITE_P(All, SimulateScenario, testing::Values("steady", "restart_storm", "shared_gpus", "mig"),
                         [](const auto& scenario) { return std::string(scenario.param); });

class SimulateCourse : public testing::TestWithParam<const char*> {};

// What a job reports is beside its OFU. Of a job to which something happens the report has the median, which is that of most of its time.
TEST_P(SimulateCourse, the_report_of_its_samples_is_its_truth_and_has_what_jobs_report) {
  for (const char* seed : {"1", "2"}) {
    SCOPED_TRACE(seed);
    const Simulated s = simulate_and_report({"--scenario", GetParam(), "--gpus", "24", "--hours", "2", "--seed", seed, "--metrics", "16"});
    expect_truth(s, 2);
    int compared = 0;
    const Value jobs = at(s.truth, "jobs"), events = at(s.truth, "events");
    for (const Value& truth : *jobs.as_array()) {
      const Value found = job(s.report, text(truth, "job"));
      // Of a job that only wrote its last checkpoint in the window, the gauge of its last step is left.
      if (found.as_object() == nullptr || number(truth, "gpu_seconds_by_phase.training") == 0) continue;
      const bool reports = !std::isnan(number(truth, "reported_mfu_ratio"));
      EXPECT_EQ(!std::isnan(number(found, "reported_mfu_ratio")), reports) << text(truth, "job");
      bool changes = !reports;
      for (const Value& event : *events.as_array()) changes = changes || text(event, "workload") == text(truth, "workload");
      if (changes) continue;
      ++compared;
      EXPECT_NEAR(number(found, "reported_mfu_ratio"), number(truth, "reported_mfu_ratio"), 1e-5);
    }
    EXPECT_GT(compared, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulateCourse,
                         testing::Values("moe_miscount", "hybrid_miscount", "debug_flag_regression", "mixed_precision", "straggler",
                                         "thermal", "hang", "input_starved", "fleet608"),
                         [](const auto& scenario) { return std::string(scenario.param); });

TEST(Simulate, a_log_of_a_trainer_says_what_the_truth_says) {
  const TempFolder folder;
  const std::string out = folder.path() + "/out";
  ASSERT_EQ(run_program({"simulate", "--scenario", "moe_miscount", "--gpus", "8", "--metrics", "2", "--out", out}).exit_code, 0);
  const Answer answer = run_program({"logs", out + "/training_logs/slurm-1000000.out", "--zone", "UTC", "--format", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = base::json::parse(answer.out);
  ASSERT_TRUE(json.ok());
  const Value truth = json_file(out + "/truth.json");
  const Value first = at(truth, "jobs").as_array()->front();
  // Printed to a hundredth of a percent; steps of other length have another MFU.
  EXPECT_NEAR(number(at(*json, "files").as_array()->front(), "summary.mfu_ratio"), number(first, "reported_mfu_ratio"), 0.002) << answer.out.substr(0, 2000);
}

// With DCGM 4.6's cycle counters nothing is a sample of an instant, so only the ends of jobs are left.
TEST(Simulate, cycle_counters_say_the_same_and_are_used) {
  const Simulated s = simulate_and_report({"--scenario", "steady", "--gpus", "16", "--hours", "2", "--metrics", "all"});
  expect_truth(s);
  EXPECT_TRUE(assumes(s.report, "cycle counters"));
}

TEST(Simulate, losses_by_cause_are_the_reports_waterfall) {
  const Simulated s = simulate_and_report({"--scenario", "steady", "--gpus", "16", "--hours", "4"});
  const Value jobs = at(s.truth, "jobs");
  int compared = 0;
  for (const Value& truth : *jobs.as_array()) {
    const double allocated = number(truth, "allocated_gpu_seconds");
    if (allocated / number(truth, "gpus") < 3600) continue;
    const Value found = job(s.report, text(truth, "job"));
    ++compared;
    // The ends of an hour are under 1 % of it. A ratio of cycles is not one of time where the clock changes within a
    // window, which adds as much.
    EXPECT_NEAR(number(found, "waterfall.clock_loss_ratio"), number(truth, "lost_gpu_seconds_by_cause.clock") / allocated, 0.01);
    EXPECT_NEAR(number(found, "waterfall.tensor_idle_sm_busy_ratio"),
                number(truth, "lost_gpu_seconds_by_cause.tensor_idle_sm_busy") / allocated, 0.01);
    EXPECT_NEAR(number(found, "waterfall.sm_idle_ratio"), number(truth, "lost_gpu_seconds_by_cause.sm_idle") / allocated, 0.01);
  }
  EXPECT_GT(compared, 2);
}

// The rules take half of what kernels leave idle for communication or host, which is under 6 % of these jobs' time.
TEST_P(SimulateCourse, lost_time_by_cause_is_that_of_the_truth) {
  const Simulated s = simulate_and_report({"--scenario", GetParam(), "--gpus", "16", "--hours", "3", "--metrics", "16", "--seed", "4"});
  const Value jobs = at(s.truth, "jobs");
  int compared = 0;
  for (const Value& truth : *jobs.as_array()) {
    const double allocated = number(truth, "allocated_gpu_seconds");
    if (allocated / number(truth, "gpus") < 600) continue;
    const Value found = job(s.report, text(truth, "job"));
    const auto expect_near = [&](const char* seen, const char* real, double tolerance) {
      EXPECT_NEAR(number(found, std::string("waterfall.") + seen), number(truth, real) / allocated, tolerance) << text(truth, "workload") << " " << seen;
    };
    ++compared;
    expect_near("clock_loss_by_cause.power_cap_ratio", "clock_gpu_seconds_by_cause.power_cap", 0.02);
    expect_near("clock_loss_by_cause.thermal_ratio", "clock_gpu_seconds_by_cause.thermal", 0.01);
    expect_near("clock_loss_by_cause.setting_ratio", "clock_gpu_seconds_by_cause.setting", 0.01);
    expect_near("sm_idle_by_cause.stalled_ratio", "sm_idle_gpu_seconds_by_cause.stalled", 0.03);
    expect_near("sm_idle_by_cause.communication_ratio", "sm_idle_gpu_seconds_by_cause.communication", 0.07);
    expect_near("sm_idle_by_cause.host_ratio", "sm_idle_gpu_seconds_by_cause.host", 0.06);
    EXPECT_NEAR(number(found, "waterfall.sm_idle_by_cause.unsplit_ratio"), 0, 1e-9);
  }
  EXPECT_GT(compared, 0);
}

TEST(Simulate, the_name_of_the_simulated_metric_is_the_readers) {
  EXPECT_EQ(simulation::kSimulatedMetric, sources::kSimulatedMetric);
}

TEST(Simulate, options_of_remote_write_are_refused_without_it) {
  for (const char* option : {"--version", "--batch", "--concurrency", "--labels-per-series"}) {
    const Answer refused = run_program({"simulate", "--scenario", "steady", "--out", "nowhere", option, option == std::string("--version") ? "2" : "5"});
    EXPECT_EQ(refused.exit_code, 2) << option;
    EXPECT_NE(refused.err.find("need --remote-write"), std::string::npos) << refused.err;
  }
}

TEST(Simulate, files_that_are_there_are_replaced_by_force_only) {
  const TempFolder folder;
  const std::vector<std::string> command = {"simulate", "--scenario", "steady", "--gpus", "1", "--hours", "0.05", "--out", folder.path()};
  ASSERT_EQ(run_program(command).exit_code, 0);
  const std::string first = *base::read_file(folder.path() + "/samples.prom.gz");
  std::vector<std::string> again = command;
  again.insert(again.end(), {"--seed", "2"});
  const Answer refused = run_program(again);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "flopsight simulate: " + folder.path() + "/samples.prom.gz: is there already; --force replaces it\n");
  EXPECT_EQ(*base::read_file(folder.path() + "/samples.prom.gz"), first);
  again.push_back("--force");
  EXPECT_EQ(run_program(again).exit_code, 0);
  EXPECT_NE(*base::read_file(folder.path() + "/samples.prom.gz"), first);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/samples.prom.gz.part"));
}

TEST(Simulate, a_folder_that_cannot_be_written_is_one_line) {
  const TempFolder folder;
  const std::string file = folder.write("file", "x");
  for (const std::string& path : {file, file + "/below", std::string("/proc/nothing")}) {
    const Answer answer = run_program({"simulate", "--scenario", "steady", "--out", path});
    EXPECT_EQ(answer.exit_code, 2) << path;
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find(path), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1);
  }
}

TEST(Simulate, wrong_usage_is_one_line_that_says_what_was_expected) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--scenario", "nothing"}, "scenario nothing: expected one of steady, restart_storm, shared_gpus, mig"},
      {{"--scenario", "straggler", "--gpus", "1"}, "scenario straggler: expected at least 2 GPUs"},
      {{"--scenario", "steady", "--gpus", "-1"}, "--gpus -1: expected"},
      {{"--course", "5m"}, "--course 5m: expected a duration of 10m at least"},
      {{"--gpus", "0"}, "--gpus 0: expected 1 to 4000000"},
      {{"--gpus", "x"}, "--gpus"},
      {{"--gpus-per-host", "17"}, "--gpus-per-host 17: expected 1 to 16"},
      {{"--hours", "0"}, "--hours 0: expected a number"},
      {{"--interval", "0s"}, "--interval 0s: expected a duration"},
      {{"--start", "yesterday"}, "--start yesterday: expected RFC 3339"},
      {{"--metrics", "1000"}, "--metrics 1000: expected default, all, or 2 to"},
      {{"--labels", "none"}, "--labels none: expected kubernetes or slurm"},
      {{"--model", "Voodoo 2"}, "--model Voodoo 2: not in the catalogue"},
      {{"--model", "NVIDIA L4", "--scenario", "mig"}, "needs a GPU with MIG"},
      {{"--exporter", "9400"}, "expected one of --out, --exporter or --remote-write"},
      {{"--samples", "3"}, "--samples needs --remote-write"},
      {{"--version", "3"}, "--version 3: expected 1 to 2"},
      {{"--seed", "-1"}, "--seed"},
      {{"--nothing"}, "--nothing"},
  };
  const TempFolder folder;
  for (const auto& [options, expected] : cases) {
    std::vector<std::string> command = {"simulate", "--out", folder.path() + "/out"};
    if (options[0] != "--scenario" && options.size() < 4) command.insert(command.end(), {"--scenario", "steady"});
    command.insert(command.end(), options.begin(), options.end());
    const Answer answer = run_program(command);
    EXPECT_EQ(answer.exit_code, 2) << expected;
    EXPECT_EQ(answer.out, "") << expected;
    EXPECT_NE(answer.err.find(expected), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
  EXPECT_NE(run_program({"simulate", "--scenario", "steady"}).err.find("expected one of --out"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/out"));
}

TEST(Simulate, the_series_of_a_gpu_are_twenty_eight_by_default_with_their_types) {
  const TempFolder folder;
  ASSERT_EQ(run_program({"simulate", "--scenario", "steady", "--gpus", "1", "--hours", "0.01", "--out", folder.path()}).exit_code, 0);
  const auto text = wire::gunzip(*base::read_file(folder.path() + "/samples.prom.gz"), 1 << 24);
  ASSERT_TRUE(text.ok());
  std::size_t types = 0;
  for (std::size_t at = 0; (at = text->find("\n# TYPE DCGM_FI_", at)) != std::string::npos; ++at) ++types;
  EXPECT_EQ(types, 28U);
  EXPECT_NE(text->find("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"), std::string::npos);
  EXPECT_NE(text->find("\nflopsight_simulated 1 1767225600000\n"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::app::test
