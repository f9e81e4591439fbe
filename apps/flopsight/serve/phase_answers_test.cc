// Phases and goodput of simulated jobs, from samples through the store, against what is true of them.

#include "serve/phase_answers.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "serve/open_folder.h"
#include "simulation/options.h"
#include "test_support.h"

namespace flopsight::app::test {
namespace {

class SimulatedPhases : public testing::TestWithParam<const char*> {
 protected:
  void simulate(const std::string& scenario, const std::string& hours) {
    const std::string out = folder_.path() + "/out";
    const Answer made = run_program({"simulate", "--scenario", scenario, "--gpus", "8", "--hours", hours, "--interval", "30s", "--metrics", "16", "--seed", "3", "--out", out});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const Answer stored = run_program({"import", "--store", folder_.path() + "/store", "--file", out + "/samples.prom.gz", "--quiet"});
    ASSERT_EQ(stored.exit_code, 0) << stored.err;
    truth_ = *base::json::parse(*base::read_file(out + "/truth.json"));
    const Value* jobs = truth_.find("jobs");
    ASSERT_NE(jobs, nullptr);
    job_ = jobs->as_array()->front();
    std::unique_ptr<JobService> book;
    ASSERT_TRUE(open_folder(folder_.path() + "/store", reader_, book).ok());
    AnswerSettings settings;
    settings.fleet.catalog = &catalog::DeviceCatalog::builtin();
    const units::Window window{simulation::kDefaultStart, simulation::kDefaultStart + units::Seconds(7 * 3600)};
    const auto found = find_known_job(*reader_, nullptr, settings, text(job_, "job"), window, {"", true, true, true, {}, {}});
    ASSERT_TRUE(found.ok()) << found.error().message;
    auto answer = answer_phases(*reader_, nullptr, *found, window, units::Seconds(60));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    answer_ = std::move(answer).value();
  }
  double truth(const char* phase) const { return number(job_, std::string("gpu_seconds_by_phase.") + phase); }
  double seen(analysis::Phase phase) const { return answer_.phases.of(phase); }

  const TempFolder folder_;
  std::unique_ptr<store::Reader> reader_;
  Value truth_;
  Value job_;
  PhaseAnswer answer_;
};

TEST_F(SimulatedPhases, a_hang_is_stalled_time_and_a_failure_and_what_follows_a_restart) {
  simulate("hang", "6");
  using analysis::Phase;
  const double minute = 8 * 60;
  EXPECT_EQ(answer_.phases.absent_reason, "");
  EXPECT_NEAR(seen(Phase::kStalled), truth("hung"), 3 * minute);
  EXPECT_NEAR(seen(Phase::kStartUp) + seen(Phase::kRestart), truth("start_up"), 3 * minute);
  EXPECT_NEAR(seen(Phase::kCheckpoint) + seen(Phase::kIdleTail), truth("checkpoint"), 0.25 * truth("checkpoint") + 2 * minute);
  EXPECT_NEAR(seen(Phase::kEvaluation), truth("evaluation"), 0.25 * truth("evaluation") + 2 * minute);
  EXPECT_NEAR(seen(Phase::kTraining), truth("training"), 0.03 * truth("training"));
  ASSERT_EQ(answer_.phases.failures.size(), 1U);
  const Value event = truth_.find("events")->as_array()->front();
  const units::Instant hung = *units::parse_instant(text(event, "start"));
  EXPECT_LT(std::abs((answer_.phases.failures[0].stopped - hung).value), 120);
  const analysis::Goodput& g = answer_.goodput;
  EXPECT_EQ(g.failure_count, 1U);
  EXPECT_EQ(g.lost_source, "checkpoints seen");
  EXPECT_GT(*g.daly_interval_wall_seconds, 0);
  EXPECT_LT(*g.goodput_ratio, 0.8);
}

TEST_P(SimulatedPhases, a_job_that_never_stops_has_no_failure_and_no_interval) {
  simulate(GetParam(), "3");
  EXPECT_TRUE(answer_.phases.failures.empty());
  EXPECT_FALSE(answer_.goodput.young_interval_wall_seconds);
  EXPECT_EQ(seen(analysis::Phase::kStalled), 0);
  const double starved = GetParam() == std::string("input_starved") ? number(job_, "gpu_seconds_by_phase.training") * 0.35 : 0;
  EXPECT_NEAR(seen(analysis::Phase::kTraining), truth("training"), 0.05 * truth("training") + starved);
  // Steps that wait for their data are slower than the job's own.
  if (starved > 0) {
    EXPECT_GT(seen(analysis::Phase::kSlowed), 0.05 * truth("training"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedPhases, testing::Values("moe_miscount", "straggler", "thermal", "input_starved"),
                         [](const auto& scenario) { return std::string(scenario.param); });

}  // namespace
}  // namespace flopsight::app::test
