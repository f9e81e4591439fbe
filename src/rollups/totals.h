#pragma once
// What a share of GPU time adds up to: integrals and covered seconds, never means, so that totals merge exactly
// in any order. Ratios are made from them at the very end.
//
// All times are GPU-seconds: a MIG slice counts by its share of the GPU, one of n jobs on a shared GPU by
// 1/n. For scrapes without timestamps a "second" is an arbitrary unit, one per GPU.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "samples/absent.h"
#include "units/time.h"

namespace flopsight::rollups {

// Bits of the clock event reasons that have a meaning (DCGM field 112): 0x1 to 0x100.
inline constexpr std::size_t kEventReasonCount = 9;

// What else was going on: integrals over the time in which each was scraped, whether OFU was known or not.
struct Surroundings {
  double dram_active_seconds = 0;
  double dram_known_seconds = 0;
  double energy_joules = 0;  // from the energy counter where it can be believed, else from power
  double energy_known_seconds = 0;
  double pcie_tx_bytes = 0;
  double pcie_rx_bytes = 0;
  double nvlink_tx_bytes = 0;
  double nvlink_rx_bytes = 0;
  std::array<double, kEventReasonCount> event_seconds{};  // under each bit
  double event_known_seconds = 0;

  void merge(const Surroundings& other) {
    dram_active_seconds += other.dram_active_seconds;
    dram_known_seconds += other.dram_known_seconds;
    energy_joules += other.energy_joules;
    energy_known_seconds += other.energy_known_seconds;
    pcie_tx_bytes += other.pcie_tx_bytes;
    pcie_rx_bytes += other.pcie_rx_bytes;
    nvlink_tx_bytes += other.nvlink_tx_bytes;
    nvlink_rx_bytes += other.nvlink_rx_bytes;
    for (std::size_t i = 0; i < kEventReasonCount; ++i) event_seconds[i] += other.event_seconds[i];
    event_known_seconds += other.event_known_seconds;
  }
};

// The lowest and highest of single samples, and the latest.
struct Extremes {
  bool any_ofu = false;
  double ofu_min_ratio = 0;
  double ofu_max_ratio = 0;
  units::Instant ofu_last_time;
  double ofu_last_ratio = 0;
  bool any_clock = false;
  double clock_min_hertz = 0;
  double clock_max_hertz = 0;

  void see_ofu(double ratio, units::Instant time) {
    ofu_min_ratio = any_ofu ? std::min(ofu_min_ratio, ratio) : ratio;
    ofu_max_ratio = any_ofu ? std::max(ofu_max_ratio, ratio) : ratio;
    if (!any_ofu || time >= ofu_last_time) {
      ofu_last_time = time;
      ofu_last_ratio = ratio;
    }
    any_ofu = true;
  }
  void see_clock(double hertz) {
    clock_min_hertz = any_clock ? std::min(clock_min_hertz, hertz) : hertz;
    clock_max_hertz = any_clock ? std::max(clock_max_hertz, hertz) : hertz;
    any_clock = true;
  }
  void merge(const Extremes& other) {
    if (other.any_ofu) {
      const double last_ratio = other.ofu_last_ratio;  // of `other`, which may be this
      see_ofu(other.ofu_min_ratio, units::Instant{std::numeric_limits<std::int64_t>::min()});
      see_ofu(other.ofu_max_ratio, units::Instant{std::numeric_limits<std::int64_t>::min()});
      see_ofu(last_ratio, other.ofu_last_time);
    }
    if (other.any_clock) {
      see_clock(other.clock_min_hertz);
      see_clock(other.clock_max_hertz);
    }
  }
};

// Parts of what was lost, by what is behind it (causes.h). What is in none of them has no known cause.
struct LossCauses {
  double clock_power_seconds = 0;
  double clock_thermal_seconds = 0;
  double clock_setting_seconds = 0;
  double clock_gain_seconds = 0;  // above the reference: what was won, not lost
  double memory_bound_seconds = 0;
  double other_kernels_seconds = 0;
  double stalled_seconds = 0;
  double communication_seconds = 0;
  double host_seconds = 0;
  double small_kernels_seconds = 0;

  void merge(const LossCauses& other) {
    clock_power_seconds += other.clock_power_seconds;
    clock_thermal_seconds += other.clock_thermal_seconds;
    clock_setting_seconds += other.clock_setting_seconds;
    clock_gain_seconds += other.clock_gain_seconds;
    memory_bound_seconds += other.memory_bound_seconds;
    other_kernels_seconds += other.other_kernels_seconds;
    stalled_seconds += other.stalled_seconds;
    communication_seconds += other.communication_seconds;
    host_seconds += other.host_seconds;
    small_kernels_seconds += other.small_kernels_seconds;
  }
};

struct Totals {
  double allocated_seconds = 0;
  double measured_seconds = 0;   // OFU is known
  double delivered_seconds = 0;  // integral of OFU over the measured time
  // Integral of tensor activity over the measured time; less delivered it is the clock loss, exactly.
  double tensor_measured_seconds = 0;
  // Tensor activity wherever it is known, also where no OFU can be made of it.
  double tensor_seconds = 0;
  double tensor_known_seconds = 0;
  double clock_hertz_seconds = 0;  // integral of the clock
  double clock_known_seconds = 0;
  // SM activity within the measured time, for the split of what is lost.
  double sm_active_seconds = 0;
  double sm_known_seconds = 0;
  double tensor_within_sm_known_seconds = 0;
  // Sum of (time * activity / reference clock)^2 over the samples, in (s/Hz)^2: times the variance of the
  // clock it is the sampling variance (model/error_band.h).
  double clock_sensitivity_seconds2_per_hertz2 = 0;
  std::array<double, samples::kAbsentReasonCount> absent_seconds{};  // adds up to allocated - measured
  LossCauses causes;
  Surroundings surroundings;
  Extremes extremes;

  void merge(const Totals& other) {
    allocated_seconds += other.allocated_seconds;
    measured_seconds += other.measured_seconds;
    delivered_seconds += other.delivered_seconds;
    tensor_measured_seconds += other.tensor_measured_seconds;
    tensor_seconds += other.tensor_seconds;
    tensor_known_seconds += other.tensor_known_seconds;
    clock_hertz_seconds += other.clock_hertz_seconds;
    clock_known_seconds += other.clock_known_seconds;
    sm_active_seconds += other.sm_active_seconds;
    sm_known_seconds += other.sm_known_seconds;
    tensor_within_sm_known_seconds += other.tensor_within_sm_known_seconds;
    clock_sensitivity_seconds2_per_hertz2 += other.clock_sensitivity_seconds2_per_hertz2;
    for (std::size_t i = 0; i < absent_seconds.size(); ++i) {
      absent_seconds[i] += other.absent_seconds[i];
    }
    causes.merge(other.causes);
    surroundings.merge(other.surroundings);
    extremes.merge(other.extremes);
  }
};

// The clock of a GPU over its busy samples, for the spread that the error band needs.
struct ClockSpread {
  std::uint64_t count = 0;
  double sum_hertz = 0;
  double sum_hertz2 = 0;
  std::uint64_t difference_count = 0;
  double difference_sum_hertz2 = 0;  // of successive differences, squared

  void merge(const ClockSpread& other) {
    count += other.count;
    sum_hertz += other.sum_hertz;
    sum_hertz2 += other.sum_hertz2;
    difference_count += other.difference_count;
    difference_sum_hertz2 += other.difference_sum_hertz2;
  }
};

}  // namespace flopsight::rollups
