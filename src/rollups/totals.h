#pragma once
// What a share of GPU time adds up to: integrals and covered seconds, never means, so that totals merge exactly
// in any order. Ratios are made from them at the very end.
//
// All times are GPU-seconds: a MIG slice counts by its share of the GPU, one of n jobs on a shared GPU by
// 1/n. For scrapes without timestamps a "second" is an arbitrary unit, one per GPU.

#include <array>
#include <cstddef>
#include <cstdint>

#include "samples/absent.h"

namespace flopsight::rollups {

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
