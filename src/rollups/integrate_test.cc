#include "rollups/integrate.h"

#include <gtest/gtest.h>

#include <random>

#include "rollups/cadence.h"
#include "rollups/screen.h"
#include "rollups/test_integrate.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::GpuTimeline;
using units::Instant;
using units::megahertz;
using units::Seconds;
using test::at;
using test::kH100;
using test::scrape;
using test::World;

TEST(Integrate, ofu_is_made_per_sample_not_from_averages) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 1.0, 915), scrape(30, 0.0, 1830)};
  const Totals totals = world.run(gpu).sum();
  EXPECT_DOUBLE_EQ(totals.allocated_seconds, 60);
  EXPECT_DOUBLE_EQ(totals.delivered_seconds / totals.measured_seconds, 0.25);
  EXPECT_DOUBLE_EQ(totals.tensor_measured_seconds / totals.measured_seconds, 0.5);
}

TEST(Integrate, time_is_weighted_not_sample_count) {
  World world;
  GpuTimeline gpu;
  // 30 s steps, then 10 s steps: the dense half must not count three times.
  for (int i = 0; i < 20; ++i) gpu.scrapes.push_back(scrape(i * 30, 0.2));
  for (int i = 0; i < 60; ++i) gpu.scrapes.push_back(scrape(600 + i * 10, 0.6));
  world.options.window = {at(0), at(1200)};
  const Totals totals = world.run(gpu).sum();
  EXPECT_NEAR(totals.delivered_seconds, 600 * 0.2 + 600 * 0.6, 1e-9);
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 1200);
}

TEST(Integrate, a_gap_is_unmeasured_and_not_idle) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 10; ++i) gpu.scrapes.push_back(scrape(i * 30, 0.5));
  for (int i = 20; i < 30; ++i) gpu.scrapes.push_back(scrape(i * 30, 0.5));
  const Totals totals = world.run(gpu).sum();
  EXPECT_DOUBLE_EQ(totals.allocated_seconds, 900);
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 600);
  EXPECT_DOUBLE_EQ(totals.delivered_seconds / totals.measured_seconds, 0.5);
  EXPECT_DOUBLE_EQ(totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kGap)], 300);
}

TEST(Integrate, where_other_metrics_go_on_the_tensor_counter_is_gone) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 30; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0.5));
    if (i >= 10 && i < 20) gpu.scrapes.back().reading(Metric::kTensorActive) = Absent{};
  }
  const Totals totals = world.run(gpu).sum();
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 600);
  EXPECT_DOUBLE_EQ(totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kNoTensorCounter)], 300);
}

TEST(Integrate, absent_time_adds_up_to_what_was_not_measured) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 0.5), scrape(30, 0.5), scrape(60, 0.5), scrape(90, 0.5)};
  gpu.scrapes[1].reading(Metric::kTensorActive) = Absent{AbsentReason::kBlank};
  gpu.scrapes[2].reading(Metric::kSmClock) = Absent{AbsentReason::kOutOfRange};
  world.options.window = {at(-300), at(300)};
  const Totals totals = world.run(gpu).sum();
  double absent = 0;
  for (const double seconds : totals.absent_seconds) absent += seconds;
  EXPECT_DOUBLE_EQ(totals.allocated_seconds, 600);
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 60);
  EXPECT_DOUBLE_EQ(absent, 540);
  EXPECT_DOUBLE_EQ(totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kBlank)], 30);
}

TEST(Integrate, a_full_window_is_covered_whatever_the_phase_of_the_scrapes) {
  for (const double phase : {0.0, 7.0, 29.0}) {
    World world;
    GpuTimeline gpu;
    for (int i = 0; i < 20; ++i) gpu.scrapes.push_back(scrape(i * 30 + phase, 0.5));
    world.options.window = {at(0), at(600)};
    EXPECT_DOUBLE_EQ(world.run(gpu).sum().measured_seconds, 600) << phase;
  }
}

TEST(Integrate, without_tensor_counter_the_time_is_unmeasured_for_that_reason) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 4; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0));
    gpu.scrapes.back().reading(Metric::kTensorActive) = Absent{};
  }
  const Totals totals = world.run(gpu).sum();
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 0);
  EXPECT_DOUBLE_EQ(totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kNoTensorCounter)], 120);
}

TEST(Integrate, values_above_one_are_kept_and_counted) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 1.0, 1980), scrape(30, 1.0, 1980)};
  const Totals totals = world.run(gpu).sum();
  EXPECT_NEAR(totals.delivered_seconds / totals.measured_seconds, 1.08197, 1e-5);
  EXPECT_EQ(world.quality.count("ofu_above_one"), 2U);
}

TEST(Integrate, an_unknown_model_keeps_its_activity_and_has_no_ofu) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 0.5), scrape(30, 0.5)};
  const Totals totals = world.run(gpu, std::nullopt).sum();
  EXPECT_DOUBLE_EQ(totals.measured_seconds, 0);
  EXPECT_DOUBLE_EQ(totals.tensor_seconds / totals.tensor_known_seconds, 0.5);
  EXPECT_DOUBLE_EQ(totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kNoReferenceClock)], 60);
}

GpuScrape counters(double seconds, double elapsed, double mma) {
  GpuScrape s;
  s.time = at(seconds);
  s.reading(Metric::kSmCyclesElapsed) = elapsed;
  s.reading(Metric::kMmaCyclesActive) = mma;
  return s;
}

TEST(Counters, ofu_needs_no_clock_and_sees_through_gaps) {
  for (const double sms : {1.0, 132.0}) {
    World world;
    GpuTimeline gpu;
    const double rate = 1.5e9 * sms;
    for (const double t : {0.0, 30.0, 60.0, 600.0}) {
      gpu.scrapes.push_back(counters(t, 7e15 + rate * t, 3e15 + 0.4 * rate * t));
    }
    world.options.window = {at(0), at(600)};
    const Totals totals = world.run(gpu).sum();
    EXPECT_DOUBLE_EQ(totals.measured_seconds, 600);
    EXPECT_NEAR(totals.delivered_seconds / 600, 0.4 * 1500 / 1830, 1e-9) << sms;
    EXPECT_EQ(totals.clock_sensitivity_seconds2_per_hertz2, 0);
  }
}

TEST(Counters, a_fall_is_a_reset_and_that_step_is_left_out) {
  World world;
  GpuTimeline gpu;
  const double rate = 1.5e9;
  gpu.scrapes = {counters(0, 9e15, 4e15), counters(30, 9e15 + rate * 30, 4e15 + rate * 12),
                 counters(60, rate * 5, rate * 2), counters(90, rate * 35, rate * 14)};
  world.options.window = {at(0), at(90)};
  const GpuTime result = world.run(gpu);
  EXPECT_EQ(world.quality.count("counter_reset"), 1U);
  EXPECT_DOUBLE_EQ(result.sum().measured_seconds, 60);
  EXPECT_NEAR(result.sum().delivered_seconds / 60, 0.4 * 1500 / 1830, 1e-9);
}

TEST(Counters, routes_that_disagree_by_more_than_a_quarter_use_the_gauge) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 5; ++i) {
    GpuScrape s = counters(i * 30, 1.5e9 * 30 * i, 0.2 * 1.5e9 * 30 * i);
    s.reading(Metric::kTensorActive) = 0.4;
    s.reading(Metric::kSmClock) = 1.5e9;
    gpu.scrapes.push_back(s);
  }
  const GpuTime result = world.run(gpu);
  EXPECT_EQ(world.quality.count("counter_uncalibrated"), 1U);
  EXPECT_NEAR(result.sum().delivered_seconds / result.sum().measured_seconds, 0.4 * 1500 / 1830, 1e-9);
}

// What the header says, second by second, without any of its code.
double brute_force_delivered(const GpuTimeline& gpu, const std::vector<Seconds>& steps, double end) {
  double sum = 0;
  for (int second = 0; second < end; ++second) {
    for (std::size_t i = 0; i < gpu.scrapes.size(); ++i) {
      const double start = (gpu.scrapes[i].time - at(0)).value;
      const double next = i + 1 < gpu.scrapes.size() ? (gpu.scrapes[i + 1].time - at(0)).value : 1e18;
      const double step = steps[i].value;
      const double hold = next - start <= 2.5 * step ? next : start + step;
      const bool leads_in = i == 0 && second < start && start <= step;
      if (!(second >= start && second < hold) && !leads_in) continue;
      const auto& s = gpu.scrapes[i];
      sum += s.reading(Metric::kTensorActive).value() * s.reading(Metric::kSmClock).value() / 1830e6;
    }
  }
  return sum;
}

TEST(Integrate, agrees_with_a_second_by_second_sum_on_random_series) {
  std::mt19937 random(20261129);
  for (int round = 0; round < 300; ++round) {
    GpuTimeline gpu;
    double t = static_cast<double>(random() % 40);
    while (t < 900) {
      gpu.scrapes.push_back(scrape(t, static_cast<double>(random() % 1000) / 1000,
                                   1000 + static_cast<double>(random() % 900)));
      const int kind = static_cast<int>(random() % 10);
      t += kind < 7 ? 15 : kind < 9 ? static_cast<double>(1 + random() % 30) : 120;
    }
    std::vector<Instant> times;
    for (const auto& s : gpu.scrapes) times.push_back(s.time);
    World world;
    world.options.window = {at(0), at(900)};
    const Totals totals = world.run(gpu).sum();
    const double expected = brute_force_delivered(gpu, local_cadence(times, Seconds(60)), 900);
    EXPECT_NEAR(totals.delivered_seconds, expected, 1e-6) << "round " << round;
    EXPECT_NEAR(totals.allocated_seconds, 900, 1e-9);
  }
}

TEST(Integrate, instants_share_one_unit_of_time_per_gpu) {
  World world;
  GpuTimeline gpu;
  gpu.has_times = false;
  gpu.scrapes = {scrape(0, 0.2), scrape(0, 0.6)};
  world.weight = 2.0 / 7.0;
  const Totals totals = world.run(gpu).sum();
  EXPECT_DOUBLE_EQ(totals.allocated_seconds, 2.0 / 7.0);
  EXPECT_NEAR(totals.delivered_seconds / totals.measured_seconds, 0.4, 1e-12);
}

TEST(Totals, merging_is_associative) {
  std::mt19937 random(7);
  std::vector<Totals> parts(3);
  for (Totals& part : parts) {
    part.allocated_seconds = static_cast<double>(random() % 100);
    part.delivered_seconds = static_cast<double>(random() % 100);
    part.absent_seconds[3] = static_cast<double>(random() % 100);
  }
  Totals left = parts[0], right = parts[1];
  left.merge(parts[1]);
  left.merge(parts[2]);
  right.merge(parts[2]);
  Totals other = parts[0];
  other.merge(right);
  EXPECT_EQ(left.allocated_seconds, other.allocated_seconds);
  EXPECT_EQ(left.delivered_seconds, other.delivered_seconds);
  EXPECT_EQ(left.absent_seconds, other.absent_seconds);
}

TEST(Cadence, interleaved_replicas_keep_the_long_step) {
  std::vector<Instant> times;
  for (int i = 0; i < 20; ++i) {
    times.push_back(at(i * 30));
    times.push_back(at(i * 30 + 5));
  }
  for (const Seconds step : local_cadence(times, Seconds(60))) EXPECT_EQ(step, Seconds(25));
  EXPECT_EQ(local_cadence({at(5)}, Seconds(60)).front(), Seconds(60));
}

TEST(Screen, profiling_zero_while_the_device_is_busy_is_a_contradiction) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 0), scrape(30, 0.5)};
  gpu.scrapes[0].reading(Metric::kGpuUtil) = 1.0;
  gpu.scrapes[0].reading(Metric::kGraphicsEngineActive) = 0.0;
  screen_gpu(gpu, nullptr, world.quality);
  EXPECT_EQ(gpu.scrapes[0].reading(Metric::kTensorActive).reason(), AbsentReason::kContradicted);
  EXPECT_TRUE(gpu.scrapes[1].reading(Metric::kTensorActive).present());
}

TEST(Screen, an_idle_gpu_is_not_a_contradiction) {
  World world;
  GpuTimeline gpu;
  gpu.scrapes = {scrape(0, 0)};
  gpu.scrapes[0].reading(Metric::kGpuUtil) = 0.0;
  gpu.scrapes[0].reading(Metric::kGraphicsEngineActive) = 0.0;
  gpu.scrapes[0].reading(Metric::kPower) = 70.0;
  screen_gpu(gpu, catalog::DeviceCatalog::builtin().find("H100 PCIe"), world.quality);
  EXPECT_TRUE(gpu.scrapes[0].reading(Metric::kTensorActive).present());
}

TEST(Screen, an_energy_counter_that_stands_still_is_frozen) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 12; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0.5));
    gpu.scrapes.back().reading(Metric::kEnergy) = i < 6 ? 1000.0 + i : 1005.0;
  }
  screen_gpu(gpu, nullptr, world.quality);
  EXPECT_EQ(world.quality.count("frozen"), 6U);
  EXPECT_TRUE(gpu.scrapes[5].reading(Metric::kTensorActive).present());
  ASSERT_FALSE(gpu.scrapes[6].reading(Metric::kTensorActive).present());
  EXPECT_EQ(gpu.scrapes[6].reading(Metric::kTensorActive).reason(), AbsentReason::kFrozen);
}

TEST(Screen, constant_round_values_are_not_frozen_and_repeated_fine_ones_are) {
  World world;
  GpuTimeline round, fine;
  for (int i = 0; i < 40; ++i) {
    round.scrapes.push_back(scrape(i * 30, 0.5));
    round.scrapes.back().reading(Metric::kPower) = 650.0;
    fine.scrapes.push_back(scrape(i * 30, 0.523411));
    fine.scrapes.back().reading(Metric::kPower) = 572.191;
  }
  screen_gpu(round, nullptr, world.quality);
  EXPECT_EQ(world.quality.count("frozen"), 0U);
  screen_gpu(fine, nullptr, world.quality);
  EXPECT_EQ(world.quality.count("frozen"), 39U);
}

TEST(Screen, all_gpus_of_a_host_losing_profiling_at_once_is_a_profiler_pause) {
  World world;
  std::vector<GpuTimeline> gpus(3);
  for (std::size_t g = 0; g < 3; ++g) {
    for (int i = 0; i < 10; ++i) {
      gpus[g].scrapes.push_back(scrape(i * 30, 0.5));
      const bool pause = i >= 4 && i < 7;
      const bool own_hole = g == 0 && i == 8;
      if (pause || own_hole) gpus[g].scrapes.back().reading(Metric::kTensorActive) = Absent{};
    }
  }
  std::vector<GpuTimeline*> host = {&gpus[0], &gpus[1], &gpus[2]};
  screen_host(host, world.quality);
  EXPECT_EQ(world.quality.count("profiler_pause"), 9U);
  EXPECT_EQ(gpus[1].scrapes[5].reading(Metric::kTensorActive).reason(), AbsentReason::kProfilerPause);
  EXPECT_EQ(gpus[0].scrapes[8].reading(Metric::kTensorActive).reason(), AbsentReason::kNotSeen);
}

TEST(Screen, scrapes_of_another_exporter_between_tensor_samples_are_no_pause) {
  World world;
  std::vector<GpuTimeline> gpus(2);
  for (GpuTimeline& gpu : gpus) {
    for (int i = 0; i < 10; ++i) {
      gpu.scrapes.push_back(scrape(i * 30, 0.5));
      gpu.scrapes.push_back(scrape(i * 30 + 11, 0));
      gpu.scrapes.back().reading(Metric::kTensorActive) = Absent{};
    }
  }
  std::vector<GpuTimeline*> host = {&gpus[0], &gpus[1]};
  screen_host(host, world.quality);
  EXPECT_EQ(world.quality.count("profiler_pause"), 0U);
}

TEST(Integrate, clocks_that_are_scraped_apart_have_the_spread_of_those_that_are_scraped_together) {
  GpuTimeline together, apart;
  together.has_times = apart.has_times = true;
  for (int i = 0; i < 240; ++i) {
    const double second = 30.0 * i, mhz = i % 2 == 0 ? 1500 : 1520;
    together.scrapes.push_back(scrape(second, i < 200 ? 0.5 : 0, mhz));
    GpuScrape tensor, clock;
    tensor.time = at(second);
    tensor.reading(Metric::kTensorActive) = i < 200 ? 0.5 : 0;
    clock.time = at(second + 2);
    clock.reading(Metric::kSmClock) = mhz * 1e6;
    apart.scrapes.push_back(tensor);
    apart.scrapes.push_back(clock);
  }
  const ClockSpread one = clock_spread(together.scrapes, std::nullopt), other = clock_spread(apart.scrapes, std::nullopt);
  EXPECT_EQ(one.count, 200U);
  // How long a tensor reading holds is told by the one before it.
  EXPECT_EQ(other.count, 199U);
  EXPECT_EQ(other.difference_count, 198U);
  EXPECT_DOUBLE_EQ(other.difference_sum_hertz2 / 198, one.difference_sum_hertz2 / 199);
}

TEST(Integrate, a_clock_from_another_exporter_is_borrowed_within_a_step) {
  World world;
  GpuTimeline gpu;
  for (int i = 0; i < 10; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0, 915));
    gpu.scrapes.back().reading(Metric::kTensorActive) = Absent{};
    gpu.scrapes.push_back(scrape(i * 30 + 11, 0.5));
    gpu.scrapes.back().reading(Metric::kSmClock) = Absent{};
  }
  const Totals totals = world.run(gpu).sum();
  EXPECT_NEAR(totals.delivered_seconds / totals.measured_seconds, 0.25, 1e-12);
  EXPECT_EQ(world.quality.count("clock_from_other_scrape"), 10U);
}

}  // namespace
}  // namespace flopsight::rollups
