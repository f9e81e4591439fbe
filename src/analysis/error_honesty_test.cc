// Are the bands honest? Thousands of simulated jobs whose truth is known, through the report's own arithmetic.
//
// Assumed of a job: steps of 3 to 20 seconds, each up to a tenth longer or shorter. For 60 % of a step the tensor pipe works and the power
// limit holds the clock at 1600 MHz, then it waits and the clock rises to 1900 MHz, so that clock and activity swing together inside
// every sample; around both the clock jitters by 25 MHz (one standard deviation) from second to second, with a memory of so many
// seconds. Activity is what the hardware averages, a ratio of cycles; the clock is the reading of the sample's last second.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "rollups/integrate.h"

namespace flopsight::analysis {
namespace {

using catalog::Metric;

constexpr double kReferenceHertz = 1830e6;

// A stream of draws; SplitMix64 (Steele, Lea, Flood 2014).
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  double unit() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
  }
  double normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(1 - unit())) * std::cos(6.283185307179586 * unit());
  }

 private:
  std::uint64_t state_;
};

struct Nature {
  double interval_seconds = 30;
  double jitter_hertz = 25e6;
  double memory_seconds = 1;  // of the jitter
  double work_ratio = 0.9;    // of the tensor pipe while it works
  bool clock_moves_with_work = true;
  std::optional<double> step_seconds = {};  // nothing: each job its own, 3 to 20
  double step_jitter_ratio = 0.1;
  double work_share_ratio = 0.6;  // of a step
};

// One GPU second by second.
class SimulatedGpu {
 public:
  SimulatedGpu(const Nature& nature, double step_seconds, Chance& chance) : nature_(nature), step_seconds_(step_seconds), chance_(chance) {
    left_ = step_seconds_ * chance_.unit();
  }

  struct Second {
    double activity = 0;
    double clock_hertz = 0;
  };
  Second next() {
    while (left_ <= 0) {
      working_ = !working_;
      left_ += (working_ ? nature_.work_share_ratio : 1 - nature_.work_share_ratio) * step_seconds_ * (1 + nature_.step_jitter_ratio * (2 * chance_.unit() - 1));
    }
    left_ -= 1;
    const double keep = std::exp(-1 / nature_.memory_seconds);
    jitter_ = keep * jitter_ + std::sqrt(1 - keep * keep) * nature_.jitter_hertz * chance_.normal();
    const double clock = working_ || !nature_.clock_moves_with_work ? 1600e6 : 1900e6;
    return {working_ ? nature_.work_ratio : 0.05, clock + jitter_};
  }

 private:
  Nature nature_;
  double step_seconds_;
  Chance& chance_;
  bool working_ = false;
  double left_ = 0;
  double jitter_ = 0;
};

struct Outcome {
  Summary summary;
  double truth_ratio = 0;
  double naive_ratio = 0;  // time's share of activity times the mean clock
};

// A job on some GPUs for so many samples, as a report of its own. No sample is missing, and the window is what the samples are about.
Outcome run_job(const Nature& nature, int gpus, int samples, Chance& chance) {
  rollups::Fleet fleet;
  jobs::JobTable none;
  jobs::HolderTable holders;
  samples::QualityLog quality;
  samples::Holder job;
  job.job = "train";
  const samples::HolderId holder = holders.intern(job);
  const catalog::Device* h100 = catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3");
  double truth = 0, activity = 0, clock = 0;
  const auto seconds = static_cast<int>(nature.interval_seconds);
  const double step_seconds = nature.step_seconds.value_or(3 * std::pow(20.0 / 3, chance.unit()));
  for (int g = 0; g < gpus; ++g) {
    samples::GpuTimeline timeline;
    timeline.gpu.uuid = "GPU-" + std::to_string(g);
    SimulatedGpu gpu(nature, step_seconds, chance);
    for (int i = 1; i <= samples; ++i) {
      double cycles = 0, busy_cycles = 0, reading = 0;
      for (int s = 0; s < seconds; ++s) {
        const SimulatedGpu::Second now = gpu.next();
        cycles += now.clock_hertz;
        busy_cycles += now.activity * now.clock_hertz;
        activity += now.activity;
        clock += now.clock_hertz;
        reading = now.clock_hertz;
      }
      truth += busy_cycles / kReferenceHertz;
      samples::GpuScrape scrape;
      scrape.time = units::Instant{static_cast<std::int64_t>(i) * seconds * 1000};
      scrape.reading(Metric::kTensorActive) = busy_cycles / cycles;
      scrape.reading(Metric::kSmClock) = std::round(reading / 1e6) * 1e6;  // as printed
      scrape.holders = {holder};
      timeline.scrapes.push_back(scrape);
    }
    rollups::IntegrateOptions how;
    how.window = units::Window{units::Instant{seconds * 1000}, units::Instant{static_cast<std::int64_t>(samples + 1) * seconds * 1000}};
    fleet.gpus.push_back(rollups::integrate(timeline, h100,
                                            model::ReferenceClock{units::Hertz(kReferenceHertz), model::ReferenceSource::kCatalogTensorPeak},
                                            1, how, none, holders, quality));
  }
  const double all = static_cast<double>(gpus) * samples * seconds;
  return {build_report(fleet, holders, quality, {}).fleet, truth / all, activity / all * (clock / all) / kReferenceHertz};
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

// The share of jobs whose truth lies in the contract's band. Jobs have 1 to 4 GPUs and 10 to 80 samples.
double covered_ratio(const Nature& nature, int jobs, std::uint64_t seed) {
  Chance chance(seed);
  int covered = 0;
  for (int i = 0; i < jobs; ++i) {
    const int gpus = 1 + static_cast<int>(chance.unit() * 4), samples = 10 + static_cast<int>(chance.unit() * 70);
    const Outcome job = run_job(nature, gpus, samples, chance);
    covered += within(job.truth_ratio, *job.summary.ofu_ratio_low, *job.summary.ofu_ratio_high);
    const model::Band all = job.summary.error->band;
    EXPECT_LE(all.low_ratio, *job.summary.ofu_ratio_low);
    EXPECT_GE(all.high_ratio, *job.summary.ofu_ratio_high);
  }
  return static_cast<double>(covered) / jobs;
}

TEST(ErrorHonesty, a_90_percent_band_covers_the_truth_of_85_to_95_percent_of_jobs) {
  // 2,000 jobs: a true 90 % comes out within 1.3 points of it in 95 of 100 seeds.
  const double ratio = covered_ratio({}, 2000, 1);
  RecordProperty("covered_ratio", std::to_string(ratio));
  EXPECT_GE(ratio, 0.85);
  EXPECT_LE(ratio, 0.95);
}

TEST(ErrorHonesty, also_with_a_clock_that_only_jitters_and_at_other_intervals) {
  for (const double interval : {15.0, 60.0}) {
    Nature nature;
    nature.interval_seconds = interval;
    nature.clock_moves_with_work = false;
    const double ratio = covered_ratio(nature, 500, 2);
    EXPECT_GE(ratio, 0.85) << interval;
    EXPECT_LE(ratio, 0.95) << interval;
  }
}

// What the header of error_band.h says of a clock that wanders more slowly than it is read: too wide, and not too narrow.
TEST(ErrorHonesty, a_slow_clock_makes_the_band_wide_and_not_wrong) {
  Nature nature;
  nature.clock_moves_with_work = false;
  nature.memory_seconds = 300;
  const double ratio = covered_ratio(nature, 300, 3);
  EXPECT_GE(ratio, 0.90);
}

// The other limit that the header names: steps of exactly 6 seconds, five in each sample, are met at the same phase by every reading.
TEST(ErrorHonesty, steps_that_keep_time_with_the_scrapes_break_the_band) {
  Nature nature;
  nature.step_seconds = 6;
  nature.step_jitter_ratio = 0;
  EXPECT_LT(covered_ratio(nature, 300, 4), 0.85);
}

TEST(ErrorHonesty, a_ratio_of_cycles_has_no_bias_where_clock_and_activity_swing_together) {
  Chance chance(4);
  double error = 0, naive = 0, bound = 0;
  constexpr int kJobs = 400;
  for (int i = 0; i < kJobs; ++i) {
    const Outcome job = run_job({}, 1, 60, chance);
    error += (*job.summary.ofu_ratio - job.truth_ratio) / kJobs;
    naive += (job.naive_ratio - job.truth_ratio) / kJobs;
    bound += job.summary.error->part(model::ErrorSource::kCycleRatio).high_ratio / kJobs;
  }
  // Activity as a share of time, times the mean clock, reads three points high: what a ratio of cycles does not do.
  EXPECT_GT(naive, 0.02);
  EXPECT_LT(std::abs(error), 0.001);
  EXPECT_GT(bound, naive);
}

// arXiv 2605.20799: under 0.22 points at 30 s. Reproduced for an hour of one GPU whose tensor pipe is busy throughout at a power-limited
// clock that jitters by 25 MHz: 1.645 standard deviations are 0.19 points at 30 s. docs/error-band.md has the table.
TEST(ErrorHonesty, the_published_0_22_points_at_30_seconds_hold_for_an_hour_of_one_busy_gpu) {
  Nature nature;
  nature.clock_moves_with_work = false;
  nature.work_share_ratio = 1;
  double before = 0;
  for (const auto& [interval, most] : {std::pair{5.0, 0.0010}, {10.0, 0.0014}, {30.0, 0.0022}, {60.0, 0.0034}}) {
    Chance chance(5);
    nature.interval_seconds = interval;
    std::vector<double> errors;
    for (int i = 0; i < 300; ++i) {
      const Outcome job = run_job(nature, 1, static_cast<int>(3600 / interval), chance);
      errors.push_back(std::abs(*job.summary.ofu_ratio - job.truth_ratio));
    }
    std::sort(errors.begin(), errors.end());
    const double p90 = errors[errors.size() * 9 / 10];
    RecordProperty("p90_points_at_" + std::to_string(static_cast<int>(interval)), std::to_string(100 * p90));
    EXPECT_LT(p90, most) << interval;
    EXPECT_GT(p90, before) << interval;
    before = p90;
  }
}

// The formula's spread is that of resampling the observed clocks: the bootstrap (Efron 1979) of one job agrees with it.
TEST(ErrorHonesty, the_propagated_spread_is_that_of_resampled_clocks) {
  Chance chance(6);
  std::vector<double> clocks;
  for (int i = 0; i < 120; ++i) clocks.push_back(1600e6 + 25e6 * chance.normal());
  rollups::ClockSpread spread;
  double mean = 0;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    mean += clocks[i] / 120;
    if (i == 0) continue;
    ++spread.difference_count;
    spread.difference_sum_hertz2 += (clocks[i] - clocks[i - 1]) * (clocks[i] - clocks[i - 1]);
  }
  const double sigma = std::sqrt(spread.difference_sum_hertz2 / (2 * static_cast<double>(spread.difference_count)));
  const double formula = 0.9 * sigma / kReferenceHertz / std::sqrt(120);
  double sum2 = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    double sum = 0;
    for (int i = 0; i < 120; ++i) sum += clocks[static_cast<std::size_t>(chance.unit() * 120)] / 120;
    sum2 += std::pow(0.9 * (sum - mean) / kReferenceHertz, 2);
  }
  EXPECT_NEAR(std::sqrt(sum2 / kDraws) / formula, 1, 0.1);  // two estimates of one spread from 120 readings differ by that much
}

}  // namespace
}  // namespace flopsight::analysis
