#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "simulation/random.h"
#include "simulation/text.h"
#include "simulation/truth.h"

namespace flopsight::simulation {
namespace {

constexpr Scenario kScenarios[] = {Scenario::kSteady, Scenario::kRestartStorm, Scenario::kSharedGpus, Scenario::kMig};
constexpr Scenario kAllScenarios[] = {
    Scenario::kSteady,        Scenario::kRestartStorm,        Scenario::kSharedGpus,     Scenario::kMig,       Scenario::kMoeMiscount,
    Scenario::kHybridMiscount, Scenario::kDebugFlagRegression, Scenario::kMixedPrecision, Scenario::kStraggler, Scenario::kThermal,
    Scenario::kHang,          Scenario::kInputStarved,        Scenario::kFleet608};

Options options(Scenario scenario, std::uint64_t seed = 1, std::uint32_t gpus = 24) {
  Options out;
  out.scenario = scenario;
  out.seed = seed;
  out.gpus = gpus;
  auto checked = check(out);
  EXPECT_TRUE(checked.ok());
  return *checked;
}

std::string history(const Options& options) {
  std::string out;
  const Timetable timetable(options);
  const auto status = write_history(
      timetable,
      [&](std::string_view piece) {
        out += piece;
        return base::Status();
      },
      [](double) {});
  EXPECT_TRUE(status.ok());
  return out;
}

TEST(Simulation, the_same_options_give_the_same_bytes_and_another_seed_others) {
  for (const Scenario scenario : kAllScenarios) {
    Options o = options(scenario, 1, 8);
    o.window.end = o.window.start + units::Seconds(300);
    const std::string once = history(o);
    EXPECT_EQ(once, history(o));
    o.seed = 2;
    EXPECT_NE(once, history(o));
  }
}

TEST(Simulation, a_scrape_by_itself_is_the_one_of_the_history) {
  for (const Scenario scenario : kAllScenarios) {
    const Timetable timetable(options(scenario));
    Scraper in_order(timetable), backwards(timetable);
    std::vector<std::string> scrapes;
    for (int i = 0; i < 40; ++i) scrapes.push_back(in_order.scrape(1, first_scrape(timetable, 1) + i * 90'000));
    for (int i = 39; i >= 0; --i) {
      const std::int64_t t = first_scrape(timetable, 1) + i * 90'000;
      EXPECT_EQ(backwards.scrape(1, t), scrapes[static_cast<std::size_t>(i)]);
      EXPECT_EQ(Scraper(timetable).scrape(1, t), scrapes[static_cast<std::size_t>(i)]) << scenario_name(scenario);
    }
  }
}

TEST(Simulation, a_line_of_the_history_is_in_the_scrape_of_its_time) {
  for (const Scenario scenario : kAllScenarios) {
    Options o = options(scenario, 3, 8);
    o.window.end = o.window.start + units::Seconds(600);
    const std::string text = history(o);
    const Timetable timetable(o);
    Scraper scraper(timetable);
    std::size_t looked = 0;
    for (std::size_t at = 0; at < text.size(); ++looked) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1 + 7919;  // some lines of all
      if (at < text.size()) at = text.find('\n', at) + 1;
      if (line.starts_with('#') || line.starts_with(kSimulatedMetric)) continue;
      const std::size_t space = line.rfind(' ');
      const std::string scrape = scraper.scrape(0, std::stoll(line.substr(space + 1)));
      EXPECT_NE(scrape.find("\n" + line.substr(0, space) + "\n"), std::string::npos) << line;
    }
    EXPECT_GT(looked, 100U);
  }
}

TEST(Simulation, every_scrape_says_that_it_is_simulated) {
  const Timetable timetable(options(Scenario::kSteady));
  EXPECT_NE(Scraper(timetable).scrape(0, first_scrape(timetable, 0)).find("\nflopsight_simulated 1\n"), std::string::npos);
}

// Every reading of every GPU over hours, within what the hardware can show.
TEST(Simulation, readings_are_what_a_gpu_can_show) {
  for (const Scenario scenario : kScenarios) {
    const Options o = options(scenario, 5, 32);
    const Timetable timetable(o);
    Meter meter(timetable);
    std::set<std::uint32_t> reasons;
    for (std::uint32_t gpu = 0; gpu < o.gpus; ++gpu) {
      for (int i = 0; i < 300; ++i) {
        const std::int64_t t = o.start_milliseconds() + 37'000 * std::int64_t{i} + gpu;
        std::vector<Row> rows;
        add_rows(meter, timetable, gpu, t, rows);
        for (const Row& row : rows) {
          const Readings r = meter.read(gpu, row.slot, t);
          EXPECT_GE(r.sm_ratio, r.tensor_ratio);
          EXPECT_LE(r.sm_ratio, 0.995);
          for (const double ratio : {r.occupancy_ratio, r.engine_ratio, r.dram_ratio, r.fp32_ratio, r.fp16_ratio}) {
            EXPECT_TRUE(ratio >= 0 && ratio <= 1) << ratio;
          }
          const double megahertz = r.clock_hertz / 1e6;
          EXPECT_TRUE(megahertz == 345 || (megahertz >= 1200 && megahertz <= 1980)) << megahertz;
          EXPECT_TRUE(r.power_watts > 55 && r.power_watts < 705) << r.power_watts;
          EXPECT_TRUE(r.temperature_celsius > 20 && r.temperature_celsius < 80) << r.temperature_celsius;
          // Under the cap: the bit, the power near the limit or in a waiting part, the clock in its steps below the maximum.
          if (r.event_reasons == 0x4) {
            EXPECT_EQ(std::fmod(megahertz, 15), 0);
          } else {
            EXPECT_EQ(megahertz, r.event_reasons == 0x1 ? 345 : 1980);
          }
          EXPECT_EQ(r.framebuffer_free_mebibytes_total < 0, false);
          reasons.insert(r.event_reasons);
        }
      }
    }
    if (scenario == Scenario::kSteady) {
      EXPECT_EQ(reasons, (std::set<std::uint32_t>{0, 1, 4}));
    }
  }
}

// The closed form against a sum of small steps, each of which is inside one mode or nearly so.
TEST(Simulation, an_integral_over_an_hour_is_the_sum_of_its_parts) {
  for (const Scenario scenario : kAllScenarios) {
    const Options o = options(scenario, 7, 16);
    const Timetable timetable(o);
    Meter meter(timetable), fine(timetable);
    for (std::uint32_t slot = 0; slot < std::min<std::size_t>(timetable.slots().size(), 6); ++slot) {
      const std::uint32_t gpu = timetable.slots()[slot].gpu_first;
      const std::int64_t from = o.start_milliseconds() + 1234, to = from + 3'600'000;
      const Integral whole = meter.integral(gpu, slot, from, to);
      Integral sum;
      double tensor_seconds = 0;
      for (std::int64_t t = from; t < to; t += 100) {
        sum.add(fine.integral(gpu, slot, t, t + 100), 1);
        // The level of the mode at the middle, without noise.
        const Segment& segment = fine.segment(slot, t + 50);
        if (!segment.held) continue;
        const Workload w = workload_of(timetable, segment);
        Mode mode = Mode::kNobody;
        w.spent(static_cast<double>(t + 50 - segment.start) / 1000, &mode, w.is_odd(gpu));
        tensor_seconds += 0.1 * w.level(mode, w.is_odd(gpu)).rate(Rate::kTensor);
      }
      EXPECT_NEAR(whole.tensor_cycles_total, sum.tensor_cycles_total, 1e-6 * whole.cycles_total);
      EXPECT_NEAR(whole.of(Rate::kPower), sum.of(Rate::kPower), 1e-6 * whole.of(Rate::kPower));
      EXPECT_NEAR(whole.seconds, 3600, 1e-6);
      // A GPU differs from its kind by 1.5 % at most, the sampling of steps by less than that.
      EXPECT_NEAR(whole.of(Rate::kTensor), tensor_seconds, 0.025 * tensor_seconds + 0.5) << slot;
    }
  }
}

TEST(Simulation, the_energy_counter_is_the_integral_of_power) {
  for (const Scenario scenario : kAllScenarios) {
    const Options o = options(scenario, 11, 16);
    const Timetable timetable(o);
    Meter meter(timetable);
    for (std::uint32_t gpu = 0; gpu < o.gpus; gpu += 3) {
      const std::uint32_t slot = timetable.first_slot(gpu);
      double joules = 0;
      const std::int64_t start = o.start_milliseconds() + 60'000;
      const double before = meter.read(gpu, slot, start, kCounters).energy_millijoules_total;
      bool reset = false;
      // Power is the mean of the second before, so a reading each second misses nothing.
      for (int i = 1; i <= 1200; ++i) {
        const std::int64_t t = start + 1000 * std::int64_t{i};
        joules += meter.read(gpu, slot, t, kInstants).power_watts;
        reset = reset || timetable.rebooting_host(timetable.at(slot, t)) == gpu / o.gpus_per_host;
      }
      if (reset) continue;
      const double after = meter.read(gpu, slot, start + 1'200'000, kCounters).energy_millijoules_total;
      EXPECT_NEAR((after - before) / 1000, joules, 1200 * 0.0005 + 0.01) << scenario_name(scenario) << " " << gpu;
    }
  }
}

TEST(Simulation, counters_restart_at_a_reboot_and_only_there) {
  Options o = options(Scenario::kRestartStorm, 1, 32);
  o.window.end = o.window.start + units::Seconds(6 * 3600);
  const Timetable timetable(o);
  Meter meter(timetable);
  int falls = 0;
  for (std::uint32_t gpu = 0; gpu < o.gpus; ++gpu) {
    double last = 0;
    bool down = false;
    for (std::int64_t t = o.start_milliseconds(); t < o.end_milliseconds(); t += 10'000) {
      const std::uint32_t slot = timetable.first_slot(gpu);
      if (timetable.rebooting_host(timetable.at(slot, t)) == gpu / o.gpus_per_host) {
        down = true;
        continue;
      }
      const double now = meter.read(gpu, slot, t, kCounters).energy_millijoules_total;
      if (now < last) {
        ++falls;
        EXPECT_TRUE(down);
        EXPECT_LT(now, 1000.0 * 700 * 11);
      }
      down = false;
      last = now;
    }
  }
  EXPECT_GT(falls, 0);
}

TEST(Simulation, truth_adds_up) {
  for (const Scenario scenario : kScenarios) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Options o = options(scenario, seed, 40);
      o.window.end = o.window.start + units::Seconds(3 * 3600);
      const Timetable timetable(o);
      TrueTime sum;
      std::set<std::string> names;
      std::size_t events = 0;
      const TrueFleet fleet = for_each_truth(
          timetable,
          [&](const TrueJob& job) {
            const TrueTime& t = job.time;
            EXPECT_NEAR(t.allocated_seconds,
                        t.delivered_seconds + t.clock_loss_seconds + t.tensor_idle_seconds + t.sm_idle_seconds, 1e-6);
            EXPECT_GE(t.delivered_seconds, -1e-9);
            EXPECT_GE(t.tensor_idle_seconds, -1e-9);
            EXPECT_GE(t.sm_idle_seconds, -1e-9);
            EXPECT_LE(t.unmeasured_seconds, t.allocated_seconds);
            EXPECT_LE(t.unmeasured_delivered_seconds, t.delivered_seconds + 1e-9);
            EXPECT_TRUE(names.insert(job.names.job).second) << job.names.job;
            sum.add(t);
          },
          [&](const TrueEvent&) { ++events; });
      EXPECT_NEAR(sum.delivered_seconds, fleet.held.delivered_seconds, 1e-6);
      EXPECT_LT(sum.allocated_seconds, fleet.present_seconds);
      EXPECT_GT(sum.allocated_seconds, 0.5 * fleet.present_seconds);
      EXPECT_EQ(events > 0, scenario == Scenario::kRestartStorm);
    }
  }
}

TEST(Simulation, segments_follow_each_other_without_a_gap) {
  for (const Scenario scenario : kAllScenarios) {
    const Timetable timetable(options(scenario, 13, 64));
    for (std::uint32_t slot = 0; slot < timetable.slots().size(); ++slot) {
      std::int64_t t = timetable.options().start_milliseconds();
      for (int i = 0; i < 50; ++i) {
        const Segment here = timetable.at(slot, t);
        ASSERT_LE(here.start, t);
        ASSERT_GT(here.end, t);
        const Segment last = timetable.at(slot, here.end - 1);
        ASSERT_EQ(last.start, here.start);
        ASSERT_EQ(timetable.at(slot, here.end).start, here.end);
        t = here.end;
      }
    }
  }
}

TEST(Simulation, slots_cover_every_gpu_once_and_jobs_have_all_sizes) {
  const Timetable timetable(options(Scenario::kSteady, 1, 2000));
  std::uint32_t next = 0;
  std::map<std::uint32_t, int> sizes;
  for (const Slot& slot : timetable.slots()) {
    EXPECT_EQ(slot.gpu_first, next);
    next += slot.gpu_count;
    ++sizes[slot.gpu_count];
    if (slot.gpu_count > 8) {
      EXPECT_EQ(slot.gpu_first % 8, 0U);
    }
  }
  EXPECT_EQ(next, 2000U);
  EXPECT_GT(sizes[1], 10);
  EXPECT_GT(sizes.rbegin()->first, 100U);
}

TEST(Simulation, slices_of_a_mig_gpu_are_seven_at_most) {
  const Timetable timetable(options(Scenario::kMig, 1, 200));
  std::map<std::uint32_t, int> slices;
  for (const Slot& slot : timetable.slots()) slices[slot.gpu_first] += slot.mig_slices;
  for (const auto& [gpu, sum] : slices) EXPECT_LE(sum, 7);
}

TEST(Simulation, options_that_cannot_be_are_errors) {
  const auto message = [](auto change) {
    Options o;
    change(o);
    const auto checked = check(o);
    return checked.ok() ? std::string("ok") : checked.error().message;
  };
  EXPECT_EQ(message([](Options&) {}), "ok");
  EXPECT_NE(message([](Options& o) { o.gpus = 0; }).find("GPUs"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.model = "RTX 9"; }).find("not in the catalogue"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.interval = units::Seconds(0.5); }).find("interval"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.window.end = o.window.start; }).find("ends"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.course = units::Seconds(60); }).find("course"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.scenario = Scenario::kStraggler; o.gpus = 1; }).find("at least 2 GPUs"), std::string::npos);
  EXPECT_NE(message([](Options& o) { o.scenario = Scenario::kFleet608; o.gpus_per_host = 3; }).find("whole hosts"), std::string::npos);
  EXPECT_EQ(parse_scenario("nothing").error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace flopsight::simulation
