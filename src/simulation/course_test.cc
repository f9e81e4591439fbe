// The scenarios in which something happens to a job, against what docs/simulate.md says of them.

#include "simulation/course.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "simulation/fleet608.h"
#include "simulation/training_log.h"
#include "simulation/truth.h"

namespace flopsight::simulation {
namespace {

Options options(Scenario scenario, std::uint32_t gpus, double hours = 1, std::uint64_t seed = 1) {
  Options out;
  out.scenario = scenario;
  out.gpus = gpus;
  out.seed = seed;
  out.model = default_model(scenario);
  out.labels = LabelStyle::kSlurm;
  out.window.end = out.window.start + units::Seconds(3600 * hours);
  auto checked = check(out);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  return *checked;
}

struct Told {
  std::vector<TrueJob> jobs;
  std::vector<TrueEvent> events;
  // Of the jobs that the scenario is about.
  const TrueJob& subject() const { return jobs.front(); }
};
Told truth_of(const Options& options) {
  const Timetable timetable(options);
  Told out;
  for_each_truth(
      timetable, [&](const TrueJob& job) { out.jobs.push_back(job); }, [&](const TrueEvent& event) { out.events.push_back(event); });
  EXPECT_FALSE(out.jobs.empty());
  return out;
}

double ofu(const TrueJob& job) { return job.time.delivered_seconds / job.time.allocated_seconds; }
double reported(const TrueJob& job) { return job.time.reported_mfu_seconds / job.time.mfu_known_seconds; }

TEST(Course, the_two_published_miscounts_have_the_published_figures) {
  const Told moe = truth_of(options(Scenario::kMoeMiscount, 400));
  EXPECT_EQ(moe.subject().gpus, 288U);
  EXPECT_NEAR(ofu(moe.subject()), 0.2558, 0.001);  // GPUs of one kind differ by a percent or so
  EXPECT_NEAR(reported(moe.subject()), 0.5427, 1e-9);
  EXPECT_EQ(moe.subject().mistake, "latent_ignored");
  const Told hybrid = truth_of(options(Scenario::kHybridMiscount, 512));
  EXPECT_NEAR(ofu(hybrid.subject()), 0.1556, 0.001);
  EXPECT_NEAR(reported(hybrid.subject()), 0.2451, 1e-9);
  EXPECT_EQ(hybrid.subject().mistake, "hybrid_as_attention");
  // The other jobs of the fleet report what is true.
  for (const TrueJob& job : moe.jobs) {
    if (!job.mistake.empty() || job.time.mfu_known_seconds == 0) continue;
    EXPECT_NEAR(job.time.reported_mfu_seconds, job.time.mfu_seconds, 1e-6 * job.time.mfu_seconds);
  }
}

TEST(Course, a_debugging_switch_costs_a_factor_of_two_and_a_half) {
  const Told told = truth_of(options(Scenario::kDebugFlagRegression, 64));
  ASSERT_EQ(told.events.size(), 1U);
  EXPECT_EQ(told.events[0].kind, "debug_flag");
  EXPECT_NEAR(*told.events[0].step_ofu_before_ratio / *told.events[0].step_ofu_ratio, 2.5, 0.05);
  // What is lost is lost to the host.
  EXPECT_GT(told.subject().time.host_seconds, 0.6 * told.subject().time.sm_idle_seconds);
}

struct Agreement {
  double r = 0, error_mean = 0, within_10_points = 0;
  std::size_t count = 0;
};
Agreement agreement(const std::vector<std::pair<double, double>>& pairs) {
  Agreement out;
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : pairs) {
    mean_x += x / static_cast<double>(pairs.size());
    mean_y += y / static_cast<double>(pairs.size());
  }
  double xx = 0, yy = 0, xy = 0;
  for (const auto& [x, y] : pairs) {
    xx += (x - mean_x) * (x - mean_x);
    yy += (y - mean_y) * (y - mean_y);
    xy += (x - mean_x) * (y - mean_y);
    out.error_mean += std::abs(x - y) / static_cast<double>(pairs.size());
    out.within_10_points += (std::abs(x - y) <= 0.1 ? 1.0 : 0.0) / static_cast<double>(pairs.size());
  }
  out.r = xy / std::sqrt(xx * yy);
  out.count = pairs.size();
  return out;
}

// The published figures, as digests of the study give them (ten minutes are enough: truth is exact at any length).
TEST(Course, fleet608_has_the_agreement_that_was_published) {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{77}}) {
    const Told told = truth_of(options(Scenario::kFleet608, default_gpus(Scenario::kFleet608), 0.2, seed));
    std::vector<std::pair<double, double>> all, right, large;
    std::uint32_t smallest = 1'000'000, largest = 0;
    for (const TrueJob& job : told.jobs) {
      all.emplace_back(ofu(job), reported(job));
      if (job.mistake.empty()) right.push_back(all.back());
      if (job.mistake.empty() && job.gpus > 768) large.push_back(all.back());
      smallest = std::min(smallest, job.gpus);
      largest = std::max(largest, job.gpus);
    }
    EXPECT_EQ(all.size(), 608U);
    EXPECT_EQ(smallest, 8U);
    EXPECT_EQ(largest, 5888U);
    EXPECT_NEAR(agreement(all).r, 0.53, 0.02) << seed;
    EXPECT_NEAR(agreement(right).r, 0.78, 0.02) << seed;
    EXPECT_NEAR(agreement(all).error_mean, 0.062, 0.004) << seed;
    EXPECT_NEAR(agreement(all).within_10_points, 0.794, 0.025) << seed;
    std::size_t near = 0;
    for (const auto& [x, y] : large) near += std::abs(x - y) <= 0.05 ? 1U : 0U;
    EXPECT_GT(near, large.size() * 8 / 10);
  }
}

TEST(Course, a_smaller_fleet608_has_the_first_jobs_and_every_gpu_at_most_once) {
  const Timetable timetable(options(Scenario::kFleet608, 1000));
  std::uint32_t next = 0;
  for (const Slot& slot : timetable.slots()) {
    EXPECT_EQ(slot.gpu_first, next);
    next += slot.gpu_count;
  }
  EXPECT_EQ(next, 1000U);
}

TEST(Course, mixed_precision_correlates_by_job_and_the_gap_closes_with_bf16) {
  const Told told = truth_of(options(Scenario::kMixedPrecision, 6144, 6));
  ASSERT_EQ(told.jobs.size(), 12U);
  std::vector<std::pair<double, double>> pairs;
  for (const TrueJob& job : told.jobs) {
    EXPECT_EQ(job.gpus, 6144U);
    pairs.emplace_back(ofu(job), reported(job));
  }
  EXPECT_GE(agreement(pairs).r, 0.97);
  // The first jobs are NVFP4, the last three BF16 only.
  EXPECT_GT(pairs[0].first - pairs[0].second, 0.01);
  for (std::size_t i = 9; i < 12; ++i) EXPECT_LT(std::abs(pairs[i].first - pairs[i].second), 0.01);
  EXPECT_GT(pairs[10].first, pairs[0].first + 0.05);
  std::set<std::string> formats;
  for (const TrueEvent& event : told.events) {
    if (event.kind == "precision_switch") formats.insert(event.format);
  }
  EXPECT_EQ(formats, (std::set<std::string>{"bf16", "fp8"}));
}

// All GPUs of the job deliver the same; what is different is when they wait, and the clock.
TEST(Course, a_slow_gpu_delivers_what_the_others_do_and_they_wait_for_it) {
  std::set<std::string> causes;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Options o = options(Scenario::kStraggler, 16, 1, seed);
    const Told told = truth_of(o);
    ASSERT_EQ(told.events.size(), 1U);
    const TrueEvent& event = told.events[0];
    causes.insert(event.kind);
    EXPECT_LT(*event.step_ofu_ratio, 0.85 * *event.step_ofu_before_ratio);
    const Timetable timetable(o);
    Meter meter(timetable);
    const std::uint32_t slow = event.odd.gpu_first, usual = (slow + 1) % 8;
    const Integral a = meter.integral(slow, 0, event.start, event.end), b = meter.integral(usual, 0, event.start, event.end);
    // Who waits does a twentieth of the tensor work in it.
    EXPECT_NEAR(a.tensor_cycles_total, b.tensor_cycles_total, 0.08 * b.tensor_cycles_total);
    const auto wait = static_cast<std::size_t>(Mode::kWait);
    EXPECT_LT(a.mode_seconds[wait], 0.7 * b.mode_seconds[wait]);
    const Readings reading = meter.read(slow, 0, (event.start + event.end) / 2);
    EXPECT_EQ((reading.event_reasons & 0x2U) != 0, event.kind == "slow_gpu_clock");
    EXPECT_EQ(reading.clock_hertz < 0.8 * meter.read(usual, 0, (event.start + event.end) / 2).clock_hertz, event.kind == "slow_gpu_clock");
  }
  EXPECT_EQ(causes, (std::set<std::string>{"slow_gpu_clock", "slow_gpu_memory"}));
}

TEST(Course, hot_gpus_say_so_by_bit_and_temperature) {
  const Options o = options(Scenario::kThermal, 64);
  const Told told = truth_of(o);
  ASSERT_EQ(told.events.size(), 1U);
  const TrueEvent& event = told.events[0];
  EXPECT_EQ(event.odd.gpu_count, 8U);
  EXPECT_EQ(event.odd.gpu_first % 8, 0U);
  const Timetable timetable(o);
  Meter meter(timetable);
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) {
    const bool hot = gpu - event.odd.gpu_first < 8;
    double celsius = 0;
    bool thermal = false;
    for (std::int64_t t = event.start + 60'000; t < event.end; t += 30'000) {
      const Readings reading = meter.read(gpu, 0, t);
      celsius = std::max(celsius, reading.temperature_celsius);
      thermal = thermal || (reading.event_reasons & 0x68U) != 0;
    }
    EXPECT_EQ(hot, thermal) << gpu;
    EXPECT_EQ(hot, celsius > 80) << gpu << " " << celsius;
  }
  EXPECT_GT(told.subject().time.clock_thermal_seconds, 0);
  EXPECT_EQ(told.subject().time.clock_setting_seconds, 0);
}

TEST(Course, a_hang_is_a_busy_engine_without_tensor_work_at_idle_power_with_silent_links) {
  const Options o = options(Scenario::kHang, 16);
  const Told told = truth_of(o);
  ASSERT_EQ(told.events.size(), 1U);
  const TrueEvent& event = told.events[0];
  const Timetable timetable(o);
  Meter meter(timetable);
  for (std::int64_t t = event.start + 60'000; t < event.end; t += 60'000) {
    const Readings reading = meter.read(3, 0, t);
    EXPECT_EQ(reading.tensor_ratio, 0);
    EXPECT_EQ(reading.utilization_percent_value, 100);
    EXPECT_EQ(reading.nvlink_tx_bytes, 0);
    EXPECT_LT(reading.power_watts, 0.3 * 700);
  }
  EXPECT_NEAR(told.subject().time.hung_seconds, 8 * 0.2 * 3600, 1);
  // It is allocated time of the job, in which nothing is delivered.
  EXPECT_NEAR(told.subject().time.start_up_seconds + told.subject().time.training_seconds + told.subject().time.evaluation_seconds +
                  told.subject().time.checkpoint_seconds + told.subject().time.hung_seconds,
              told.subject().time.allocated_seconds, 1e-6);
}

TEST(Course, starved_steps_are_longer_and_the_host_is_to_blame) {
  const Told told = truth_of(options(Scenario::kInputStarved, 16));
  ASSERT_EQ(told.events.size(), 1U);
  EXPECT_EQ(told.events[0].kind, "input_starvation");
  EXPECT_NEAR(*told.events[0].step_ofu_before_ratio / *told.events[0].step_ofu_ratio, 1.8, 0.01);
  EXPECT_GT(told.subject().time.host_seconds, told.subject().time.communication_seconds);
}

TEST(Course, a_course_begins_anew_and_a_job_is_one_job_for_all_its_stretches) {
  Options o = options(Scenario::kHang, 16, 3);
  o.course = units::Seconds(3600);
  const Told told = truth_of(o);
  std::size_t subjects = 0;
  for (const TrueJob& job : told.jobs) {
    if (job.names.workload.starts_with("llm-pretrain-0-")) {
      ++subjects;
      EXPECT_NEAR(job.time.allocated_seconds, 8 * 0.95 * 3600, 0.1);
    }
  }
  EXPECT_EQ(subjects, 3U);
  EXPECT_EQ(told.events.size(), 3U);
}

std::map<std::string, std::string> logs_of(const Options& options) {
  std::map<std::string, std::string> logs;
  const Timetable timetable(options);
  EXPECT_TRUE(for_each_training_log(timetable, [&](const std::string& name, std::string_view text) {
                EXPECT_TRUE(logs.emplace(name, std::string(text)).second) << name;
                return base::Status();
              }).ok());
  return logs;
}

TEST(TrainingLog, after_a_hang_steps_since_the_last_checkpoint_come_a_second_time) {
  Options o = options(Scenario::kHang, 8, 6);
  const auto logs = logs_of(o);
  ASSERT_EQ(logs.size(), 1U);
  std::vector<int> iterations;
  const std::string& text = logs.begin()->second;
  for (std::size_t at = 0; (at = text.find("iteration ", at)) != std::string::npos; at = text.find('\n', at)) {
    iterations.push_back(std::stoi(text.substr(at + 10, 9)));
  }
  std::size_t backwards = 0;
  for (std::size_t i = 1; i < iterations.size(); ++i) {
    if (iterations[i] > iterations[i - 1]) continue;
    ++backwards;
    EXPECT_GT(iterations[i], 1) << "a checkpoint was there";
  }
  EXPECT_EQ(backwards, 1U);
}

TEST(TrainingLog, scenarios_without_reported_mfu_have_no_logs) { EXPECT_TRUE(logs_of(options(Scenario::kSteady, 16)).empty()); }

}  // namespace
}  // namespace flopsight::simulation
