#pragma once
// One minute of a GPU or of a job, as detectors look at it: means over the time in which each quantity was known, and nothing where it was
// not. A minute that was not measured is a gap and never a value.
//
// Of a cell's time, OFU and tensor activity count where they are known for kCoverageMin of it: in a job's minute that covers less, GPUs are
// missing, and the mean of the others is another mean. Threads: values, pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rollups/cell.h"
#include "samples/absent.h"
#include "units/time.h"

namespace flopsight::detect {

inline constexpr double kCoverageMin = 0.8;

struct MinutePoint {
  units::Instant start;
  double allocated_seconds = 0;  // GPU time
  double measured_seconds = 0;
  std::optional<double> ofu_ratio;
  std::optional<double> tensor_ratio;
  std::optional<double> sm_ratio;     // SM activity
  std::optional<double> clock_hertz;
  std::optional<double> power_watts;  // a GPU
  // Over NVLink and PCIe, both ways, a GPU and second. Nothing where none were counted: whether links were silent or not scraped, only
  // earlier minutes can tell.
  std::optional<double> link_bytes_per_second;
  // Shares of the time under clock event reasons.
  std::optional<double> thermal_ratio;      // 0x8, 0x20, 0x40
  std::optional<double> power_brake_ratio;  // 0x80
  std::optional<double> power_cap_ratio;    // 0x4
  std::optional<double> setting_ratio;      // 0x2
  // Why most of the time has no OFU; nothing where it has.
  std::optional<samples::AbsentReason> absent;
  bool shared = false;  // by several holders at once
};

// What a history keeps of a measured minute, of which many jobs have many: all that causes are told apart by (suspects.h), in single precision.
class KeptMinute {
 public:
  // `point` has an OFU.
  explicit KeptMinute(const MinutePoint& point);
  // Without what is not kept: allocated time, power, and reasons of absence.
  MinutePoint point() const;

  units::Instant start() const { return {unix_milliseconds_}; }
  double ofu_ratio() const { return static_cast<double>(ofu_ratio_); }
  double measured_seconds() const { return static_cast<double>(measured_seconds_); }

 private:
  static constexpr std::size_t kQuantities = 4;
  static constexpr std::size_t kShares = 4;

  std::int64_t unix_milliseconds_ = 0;
  float ofu_ratio_ = 0;
  float measured_seconds_ = 0;
  std::array<float, kQuantities> quantities_{};     // NaN: not known
  std::array<std::uint16_t, kShares> shares_{};     // of the time, in steps of 1/50,000; 0xFFFF: not known
};

MinutePoint point_of(const rollups::Cell& cell, units::Instant start);

// Where an allocation of several models has a cell for each: their sum.
MinutePoint point_of(std::span<const rollups::Cell> cells, units::Instant start);

}  // namespace flopsight::detect
