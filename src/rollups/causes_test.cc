#include "rollups/causes.h"

#include <gtest/gtest.h>

#include <random>

#include "rollups/cell.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;

const catalog::Device* h100() { return catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3"); }

struct Scrape {
  double tensor = 0, ofu = 0, sm = 0;
  std::vector<std::pair<Metric, double>> others;
};
LossCauses causes_of(const Scrape& in, const samples::GpuIdentity& gpu = {}) {
  GpuScrape scrape;
  scrape.readings.fill(Absent{AbsentReason::kNotSeen});
  for (const auto& [metric, value] : in.others) scrape.reading(metric) = samples::Reading(value);
  LossCauses out;
  add_causes(out, {100, in.tensor, in.ofu, samples::Reading(in.sm)}, scrape, gpu, h100());
  return out;
}

TEST(Causes, a_clock_below_the_reference_is_lost_to_what_its_bit_says_heat_first) {
  const auto with_bits = [](double bits) { return causes_of({0.5, 0.4, 0.9, {{Metric::kEventReasons, bits}}}); };
  EXPECT_NEAR(with_bits(0x4).clock_power_seconds, 10, 1e-12);
  EXPECT_NEAR(with_bits(0x80).clock_power_seconds, 10, 1e-12);
  EXPECT_NEAR(with_bits(0x2).clock_setting_seconds, 10, 1e-12);
  EXPECT_NEAR(with_bits(0x4 | 0x20).clock_thermal_seconds, 10, 1e-12);
  EXPECT_EQ(with_bits(0x4 | 0x20).clock_power_seconds, 0);
  EXPECT_NEAR(with_bits(0x8 | 0x40).clock_thermal_seconds, 10, 1e-12);
  // A slowdown of which the hardware does not say why, and no bit, are no cause.
  for (const double bits : {0.0, 8.0, 1.0}) {
    const LossCauses none = with_bits(bits);
    EXPECT_EQ(none.clock_power_seconds + none.clock_thermal_seconds + none.clock_setting_seconds, 0) << bits;
  }
}

TEST(Causes, a_clock_above_the_reference_is_a_gain_whatever_the_bits) {
  const LossCauses causes = causes_of({0.5, 0.54, 0.9, {{Metric::kEventReasons, 4}}});
  EXPECT_NEAR(causes.clock_gain_seconds, 4, 1e-12);
  EXPECT_EQ(causes.clock_power_seconds, 0);
}

TEST(Causes, busy_sms_are_bound_by_memory_from_three_fifths_of_their_time_on) {
  EXPECT_NEAR(causes_of({0.1, 0.1, 0.8, {{Metric::kDramActive, 0.48}}}).memory_bound_seconds, 70, 1e-9);
  EXPECT_NEAR(causes_of({0.1, 0.1, 0.8, {{Metric::kDramActive, 0.47}}}).other_kernels_seconds, 70, 1e-9);
  const LossCauses unknown = causes_of({0.1, 0.1, 0.8, {}});
  EXPECT_EQ(unknown.memory_bound_seconds + unknown.other_kernels_seconds, 0);
}

TEST(Causes, idle_sms_without_a_kernel_are_the_hosts_and_beside_one_communication_where_links_carry) {
  const LossCauses causes = causes_of({0.3, 0.3, 0.7, {{Metric::kGraphicsEngineActive, 0.9}, {Metric::kNvlinkTx, 2e10}, {Metric::kNvlinkRx, 2e10}}});
  EXPECT_NEAR(causes.host_seconds, 10, 1e-9);
  EXPECT_NEAR(causes.communication_seconds, 20, 1e-9);
  EXPECT_EQ(causes.stalled_seconds, 0);
}

TEST(Causes, nothing_runs_is_stalled_unless_pcie_moves) {
  const auto with_pcie = [](double bytes) {
    return causes_of({0, 0, 0, {{Metric::kGraphicsEngineActive, 0}, {Metric::kPcieTx, bytes}, {Metric::kPcieRx, 0}}});
  };
  EXPECT_NEAR(with_pcie(2e5).stalled_seconds, 100, 1e-9);
  EXPECT_NEAR(with_pcie(6e9).host_seconds, 100, 1e-9);
  // Without PCIe's bytes it could be either.
  const LossCauses unknown = causes_of({0, 0, 0, {{Metric::kGraphicsEngineActive, 0}}});
  EXPECT_EQ(unknown.stalled_seconds + unknown.host_seconds, 0);
}

TEST(Causes, a_kernel_on_silent_links_is_a_stall_only_at_idle_power_and_without_tensor_work) {
  const auto kernel = [](double tensor, double links, double watts, const samples::GpuIdentity& gpu) {
    return causes_of({tensor, tensor, 0.12,
                      {{Metric::kGraphicsEngineActive, 1}, {Metric::kNvlinkTx, links}, {Metric::kNvlinkRx, 0}, {Metric::kPower, watts},
                       {Metric::kPcieTx, 1e5}}},
                     gpu);
  };
  EXPECT_NEAR(kernel(0, 0, 140, {}).stalled_seconds, 88, 1e-9);
  EXPECT_NEAR(kernel(0, 0, 500, {}).small_kernels_seconds, 88, 1e-9);
  EXPECT_NEAR(kernel(0.05, 0, 140, {}).small_kernels_seconds, 88, 1e-9);
  EXPECT_NEAR(kernel(0, 1e7, 140, {}).small_kernels_seconds, 88, 1e-9);
  // The board's power says nothing of an instance.
  samples::GpuIdentity instance;
  instance.mig_instance = "3";
  const LossCauses unknown = kernel(0, 0, 140, instance);
  EXPECT_EQ(unknown.stalled_seconds + unknown.small_kernels_seconds, 0);
}

TEST(Causes, without_engine_activity_idle_sms_have_no_cause) {
  const LossCauses causes = causes_of({0.3, 0.3, 0.7, {{Metric::kNvlinkTx, 2e10}, {Metric::kPcieTx, 1e9}}});
  EXPECT_EQ(causes.host_seconds + causes.communication_seconds + causes.stalled_seconds + causes.small_kernels_seconds, 0);
}

// Parts of a cell never exceed their whole, and add up to it where all of it has a cause.
TEST(Causes, parts_in_a_cell_add_up_to_their_whole) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 2000; ++i) {
    Totals t;
    t.allocated_seconds = t.measured_seconds = t.sm_known_seconds = 60;
    t.sm_active_seconds = 60 * unit(random);
    t.tensor_measured_seconds = t.tensor_within_sm_known_seconds = t.sm_active_seconds * unit(random);
    t.delivered_seconds = t.tensor_measured_seconds * (0.7 + 0.5 * unit(random));
    const double loss = t.tensor_measured_seconds - t.delivered_seconds;
    const bool all = i % 2 == 0;
    const double part = all ? 1 : unit(random);
    if (loss < 0) t.causes.clock_gain_seconds = -loss;
    if (loss > 0) (i % 3 == 0 ? t.causes.clock_thermal_seconds : t.causes.clock_power_seconds) = part * loss;
    const double busy = t.sm_active_seconds - t.tensor_within_sm_known_seconds, split = unit(random);
    t.causes.memory_bound_seconds = part * busy * split;
    t.causes.other_kernels_seconds = part * busy * (1 - split);
    const double idle = 60 - t.sm_active_seconds;
    t.causes.host_seconds = part * idle * split;
    t.causes.communication_seconds = part * idle * (1 - split);
    const Totals seen = totals_of(cell_of(t, {}));
    const double busy_left = seen.sm_active_seconds - seen.tensor_within_sm_known_seconds - seen.causes.memory_bound_seconds -
                             seen.causes.other_kernels_seconds;
    const double idle_left = seen.sm_known_seconds - seen.sm_active_seconds - seen.causes.host_seconds - seen.causes.communication_seconds;
    const double clock_left = seen.tensor_measured_seconds - seen.delivered_seconds + seen.causes.clock_gain_seconds -
                              seen.causes.clock_power_seconds - seen.causes.clock_thermal_seconds;
    for (const double left : {busy_left, idle_left, clock_left}) {
      EXPECT_GE(left, -1e-3);
      // Below the quantum of a part there may be none to give it to.
      if (all) {
        EXPECT_LT(left, 0.11);
      }
    }
    if (all && idle > 1 && split > 0.1) {
      EXPECT_NEAR(idle_left, 0, 1e-9);
    }
  }
}

}  // namespace
}  // namespace flopsight::rollups
