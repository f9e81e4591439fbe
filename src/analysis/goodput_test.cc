#include "analysis/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace flopsight::analysis {
namespace {

constexpr double kGpus = 8;

// A minute of a job of eight GPUs. `pause`: the share of it in which it stands still; `links`: of those it has usually.
struct Minute {
  double pause = 0, links = 1, pcie_tx = 1e8, stalled = 0, unmeasured = 0;
};
rollups::Totals totals(const Minute& m) {
  rollups::Totals t;
  t.allocated_seconds = 60 * kGpus;
  t.measured_seconds = t.sm_known_seconds = t.allocated_seconds * (1 - m.unmeasured);
  const double works = t.measured_seconds * (1 - m.pause);
  t.sm_active_seconds = 0.85 * works;
  t.delivered_seconds = t.tensor_measured_seconds = t.tensor_within_sm_known_seconds = 0.4 * works;
  t.causes.stalled_seconds = m.stalled * (t.sm_known_seconds - t.sm_active_seconds);
  t.surroundings.nvlink_tx_bytes = t.surroundings.nvlink_rx_bytes = m.links * (1 - m.pause) * 2e10 * t.allocated_seconds;
  t.surroundings.pcie_tx_bytes = m.pcie_tx * t.allocated_seconds;
  return t;
}

class Job {
 public:
  Job& add(int minutes, const Minute& minute = {}) {
    for (int i = 0; i < minutes; ++i) slots_.push_back({next_ + units::Seconds(60.0 * i), totals(minute)});
    next_ = next_ + units::Seconds(60.0 * minutes);
    return *this;
  }
  Job& away(int minutes) {
    next_ = next_ + units::Seconds(60.0 * minutes);
    return *this;
  }
  Phases phases() const { return phases_of(slots_, units::Seconds(60)); }

 private:
  units::Instant next_{1'767'225'600'000};
  std::vector<PhaseSlot> slots_;
};

const Minute kStands{1, 1, 1e5, 0, 0}, kStalls{1, 1, 1e5, 1, 0}, kWrites{1, 1, 5e9, 0, 0};

double minutes(const Phases& phases, Phase phase) { return phases.of(phase) / kGpus / 60; }

TEST(Phases, a_job_starts_up_trains_writes_checkpoints_and_ends) {
  const Phases p = Job().add(2, kStands).add(20).add(1, kWrites).add(20).add(1, {0.5, 1, 3e9, 0, 0}).add(20).add(3, kStands).phases();
  EXPECT_EQ(p.absent_reason, "");
  EXPECT_NEAR(minutes(p, Phase::kStartUp), 2, 1e-6);
  EXPECT_NEAR(minutes(p, Phase::kTraining), 60.5, 1e-6);
  EXPECT_NEAR(minutes(p, Phase::kCheckpoint), 1.5, 1e-6);  // the half minute with its length
  EXPECT_NEAR(minutes(p, Phase::kIdleTail), 3, 1e-6);
  EXPECT_EQ(p.checkpoint_count, 2U);
  EXPECT_TRUE(p.failures.empty());
  ASSERT_EQ(p.spans.size(), 5U);
  EXPECT_EQ(p.spans[0].phase, Phase::kStartUp);
  EXPECT_EQ(p.spans[2].phase, Phase::kCheckpoint);
  EXPECT_NEAR(std::accumulate(p.gpu_seconds.begin(), p.gpu_seconds.end(), 0.0), kGpus * 60 * 67, 1e-6);
}

TEST(Phases, an_evaluation_has_quiet_links_and_works) {
  const Phases p = Job().add(1, kStands).add(30).add(3, {0, 0, 1e8, 0, 0}).add(30).phases();
  EXPECT_NEAR(minutes(p, Phase::kEvaluation), 3, 1e-6);
  EXPECT_NEAR(minutes(p, Phase::kTraining), 60, 1e-6);
}

TEST(Phases, an_evaluation_may_leave_sms_idle_in_its_own_way) {
  Minute evaluation;
  evaluation.pause = 0.4;
  evaluation.links = 0.25 / 0.6;  // a quarter in all
  Job job;
  for (int hour = 0; hour < 4; ++hour) job.add(48).add(12, evaluation);
  const Phases p = job.add(10).phases();
  EXPECT_NEAR(minutes(p, Phase::kEvaluation), 48, 1e-6);
  EXPECT_EQ(p.of(Phase::kSlowed), 0);
  EXPECT_EQ(p.spans[1].phase, Phase::kEvaluation);
}

TEST(Phases, a_job_that_trains_more_slowly_to_its_end_is_slowed_and_not_idle) {
  for (const double links : {1.0, 0.3}) {
    const Phases p = Job().add(120).add(120, {0.7, links, 1e8, 0, 0}).phases();
    EXPECT_EQ(p.of(Phase::kIdleTail), 0) << links;
    EXPECT_EQ(p.of(Phase::kEvaluation), 0) << links;
    EXPECT_NEAR(minutes(p, Phase::kSlowed), 0.7 * 120, 1e-6) << links;
  }
}

TEST(Phases, some_gpus_that_stand_while_others_work_are_no_failure) {
  const Minute one_of_eight{0.125, 1, 1e8, 1, 0}, most{0.6, 1, 1e8, 1, 0};
  EXPECT_TRUE(Job().add(60).add(60, one_of_eight).add(1).add(30, one_of_eight).phases().failures.empty());
  EXPECT_TRUE(Job().add(60).add(20, most).add(30).phases().failures.empty());
}

TEST(Phases, a_notebook_that_is_used_in_bursts_has_none) {
  const Minute burst{0, 0, 0, 0, 0};
  Job notebook, training;
  for (int i = 0; i < 10; ++i) {
    notebook.add(3, burst).add(14, kStalls);
    training.add(3).add(14, kStalls);
  }
  EXPECT_EQ(notebook.phases().absent_reason, "works_in_bursts");
  EXPECT_TRUE(notebook.phases().failures.empty());
  EXPECT_EQ(training.phases().failures.size(), 9U) << "GPUs that exchange gradients and hang";
}

TEST(Phases, a_stall_and_the_restart_after_it_are_a_failure) {
  const Phases p = Job().add(1, kStands).add(30).add(1, kWrites).add(20).add(10, kStalls).add(2, kStands).add(30).phases();
  EXPECT_NEAR(minutes(p, Phase::kStalled), 10, 1e-6);
  EXPECT_NEAR(minutes(p, Phase::kRestart), 2, 1e-6);
  ASSERT_EQ(p.failures.size(), 1U);
  EXPECT_TRUE(p.failures[0].checkpoint_seen);
  EXPECT_NEAR(p.failures[0].since_checkpoint_wall_seconds, 20 * 60, 1e-6);
}

TEST(Phases, gpus_that_are_gone_for_a_while_are_a_failure_and_what_follows_is_a_restart) {
  const Phases p = Job().add(1, kStands).add(30).away(5).add(2, kStands).add(30).phases();
  ASSERT_EQ(p.failures.size(), 1U);
  EXPECT_NEAR(minutes(p, Phase::kRestart), 2, 1e-6);
  EXPECT_NEAR(p.away_wall_seconds, 300, 1e-6);
  EXPECT_FALSE(p.failures[0].checkpoint_seen);
}

TEST(Phases, waiting_between_steps_is_slowed_and_no_checkpoint_without_bytes) {
  const Phases p = Job().add(1, kStands).add(30).add(20, {0.4, 1, 1e8, 0, 0}).add(30).phases();
  EXPECT_NEAR(minutes(p, Phase::kSlowed), 8, 1e-6);
  EXPECT_EQ(p.of(Phase::kCheckpoint), 0);
  EXPECT_TRUE(p.failures.empty());
}

TEST(Phases, nothing_is_concluded_from_minutes_that_were_not_measured) {
  const Phases p = Job().add(1, kStands).add(30).add(10, {0, 1, 1e8, 0, 0.9}).add(30).phases();
  EXPECT_NEAR(minutes(p, Phase::kUnmeasured), 10, 1e-6);
  EXPECT_NEAR(minutes(p, Phase::kTraining), 60, 1e-6);
  EXPECT_TRUE(p.failures.empty());
  EXPECT_EQ(Job().add(10, {0, 1, 1e8, 0, 1}).phases().absent_reason, "no_sm_activity");
  EXPECT_EQ(Job().phases().absent_reason, "not_seen");
  // An inference server or a notebook.
  EXPECT_EQ(Job().add(30, {0.99, 0, 1e5, 0, 0}).phases().absent_reason, "no_training_seen");
}

TEST(Goodput, is_what_moved_the_job_forward) {
  const Phases p = Job().add(2, kStands).add(30).add(1, kWrites).add(20).add(10, kStalls).add(2, kStands).add(35).phases();
  const Goodput g = goodput_of(p, std::nullopt);
  EXPECT_EQ(g.lost_source, "checkpoints seen");
  EXPECT_NEAR(*g.lost_seconds, 20 * 60 * kGpus, 1e-6);
  EXPECT_NEAR(*g.goodput_ratio, 65.0 / 100, 1e-9);
  EXPECT_NEAR(g.productive_seconds + g.starting_seconds + g.checkpointing_seconds + g.restarting_seconds + g.stalled_seconds + g.slowed_seconds +
                  g.ending_seconds + *g.lost_seconds + g.unmeasured_seconds,
              g.allocated_seconds, 1e-6);
  EXPECT_EQ(g.failure_count, 1U);
  EXPECT_NEAR(*g.failure_interval_wall_seconds, 6000, 1e-6);
  EXPECT_NEAR(*g.checkpoint_wall_seconds, 60, 1e-6);
  EXPECT_NEAR(*g.young_interval_wall_seconds, std::sqrt(2 * 60.0 * 6000), 1e-6);
}

TEST(Goodput, the_time_without_gpus_counts_against_ettr_only) {
  const Goodput g = goodput_of(Job().add(10, kStands).add(40).away(50).add(50).phases(), std::nullopt);
  EXPECT_NEAR(*g.goodput_ratio, 0.9, 1e-9);
  EXPECT_NEAR(*g.ettr_ratio, 0.6, 1e-9);
  EXPECT_FALSE(g.lost_seconds);  // no checkpoint was seen before it failed
  EXPECT_FALSE(g.young_interval_wall_seconds);
}

TEST(Goodput, a_job_that_never_failed_gets_no_interval) {
  const Goodput g = goodput_of(Job().add(1, kStands).add(30).add(1, kWrites).add(30).phases(), std::nullopt);
  EXPECT_FALSE(g.young_interval_wall_seconds || g.daly_interval_wall_seconds || g.failure_interval_wall_seconds);
  EXPECT_EQ(*g.lost_seconds, 0);
}

// Daly's own example: a checkpoint of 5 minutes and a failure every 24 hours; his higher order is a little below Young's.
TEST(Goodput, young_and_daly) {
  EXPECT_NEAR(young_interval_seconds(300, 86'400), 7200, 1e-9);
  const double share = 300.0 / (2 * 86'400);
  EXPECT_NEAR(daly_interval_seconds(300, 86'400), 7200 * (1 + std::sqrt(share) / 3 + share / 9) - 300, 1e-9);
  EXPECT_EQ(daly_interval_seconds(300, 100), 100);
}

training_logs::Step step(std::uint32_t attempt, std::int64_t number, double seconds, double mfu = 0.4, double peak = 989e12) {
  training_logs::Step out;
  out.attempt = attempt;
  out.step = number;
  out.step_seconds = seconds;
  out.mfu_ratio = mfu;
  out.flops_per_second_per_gpu = mfu * peak;
  out.time = units::Instant{1'767'225'600'000 + number * 10'000 + attempt * 1'000'000};
  return out;
}

TEST(Goodput, steps_that_come_a_second_time_were_lost) {
  std::vector<training_logs::Step> steps;
  for (int i = 1; i <= 100; ++i) steps.push_back(step(0, i, 10));
  for (int i = 81; i <= 150; ++i) steps.push_back(step(1, i, 10));
  const auto repeated = repeated_steps(steps);
  EXPECT_EQ(repeated->steps, 20U);
  EXPECT_EQ(repeated->restarts, 1U);
  EXPECT_NEAR(repeated->seconds, 200, 1e-9);
  const Goodput g = goodput_of(Job().add(1, kStands).add(60).phases(), repeated);
  EXPECT_EQ(g.lost_source, "log");
  EXPECT_NEAR(*g.lost_seconds, 200 * kGpus, 1e-6);
  EXPECT_FALSE(repeated_steps({}));
}

TEST(Goodput, a_peak_that_changes_for_good_is_a_switch_of_precision) {
  std::vector<training_logs::Step> steps;
  for (int i = 1; i <= 50; ++i) steps.push_back(step(0, i, 10, 0.4, i == 20 ? 5e15 : 989e12));  // a misprint is none
  for (int i = 51; i <= 90; ++i) steps.push_back(step(0, i, 10, 0.3, 1979e12));
  const auto switches = precision_switches(steps);
  ASSERT_EQ(switches.size(), 1U);
  EXPECT_EQ(switches[0], *steps[50].time);
}

}  // namespace
}  // namespace flopsight::analysis
