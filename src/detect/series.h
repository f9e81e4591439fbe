#pragma once
// One minute of a GPU or of a job, as detectors look at it: means over the time in which each quantity was known, and nothing where it was
// not. A minute that was not measured is a gap and never a value.
//
// Of a cell's time, OFU and tensor activity count where they are known for kCoverageMin of it: in a job's minute that covers less, GPUs are
// missing, and the mean of the others is another mean. Threads: values, pure functions.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "rollups/cell.h"
#include "samples/absent.h"
#include "units/time.h"

namespace flopsight::detect {

inline constexpr double kCoverageMin = 0.8;

// The upper half of a single-precision number, rounded: 8 bits of precision over its whole range. NaN, as the class below has it, stays one.
std::uint16_t to_half(float value);
float from_half(std::uint16_t bits);

// A value, or that it is not known, in single precision: of each GPU of a fleet there are eleven a minute. Used like an optional.
class Quantity {
 public:
  Quantity() = default;
  Quantity(std::nullopt_t) {}
  Quantity(double value) : value_(static_cast<float>(value)) {}
  Quantity(const std::optional<double>& value) : value_(value ? static_cast<float>(*value) : kNone) {}

  explicit operator bool() const { return !std::isnan(value_); }
  bool has_value() const { return !std::isnan(value_); }
  double operator*() const { return static_cast<double>(value_); }
  float single() const { return value_; }  // NaN: not known
  double value_or(double otherwise) const { return has_value() ? **this : otherwise; }
  bool operator==(const Quantity& other) const { return value_ == other.value_ || (!has_value() && !other.has_value()); }
  operator std::optional<double>() const { return has_value() ? std::optional(**this) : std::nullopt; }

 private:
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  float value_ = kNone;
};

struct MinutePoint {
  units::Instant start;
  double allocated_seconds = 0;  // GPU time
  double measured_seconds = 0;
  Quantity ofu_ratio;
  Quantity tensor_ratio;
  Quantity sm_ratio;     // SM activity
  Quantity clock_hertz;
  Quantity power_watts;  // a GPU
  // Over NVLink and PCIe, both ways, a GPU and second. Nothing where none were counted: whether links were silent or not scraped, only
  // earlier minutes can tell.
  Quantity link_bytes_per_second;
  // Shares of the time under clock event reasons.
  Quantity thermal_ratio;      // 0x20, 0x40
  Quantity power_brake_ratio;  // 0x80
  Quantity power_cap_ratio;    // 0x4
  Quantity setting_ratio;      // 0x2
  // 0x8 where none of the others says why, as in the waterfall: heat, an external power brake or the fast trigger on power (nvml.h, HwSlowdown). Not kept in histories.
  Quantity unnamed_slowdown_ratio;
  // Why most of the time has no OFU; nothing where it has.
  std::optional<samples::AbsentReason> absent;
  bool shared = false;  // by several holders at once
};

// What a history keeps of a measured minute, of which many jobs have many: all that causes are told apart by (suspects.h). OFU and measured
// time have 11 bits of precision, bytes 8, the clock steps of 0.1 MHz, activities and shares of the time steps of 1/50,000 and 1/250.
class KeptMinute {
 public:
  // `point` has an OFU, and starts at a whole minute.
  explicit KeptMinute(const MinutePoint& point);
  // Without what is not kept: allocated time, power, and reasons of absence.
  MinutePoint point() const;

  units::Instant start() const { return {std::int64_t{minute_} * 60'000}; }
  double ofu_ratio() const;
  double measured_seconds() const;

 private:
  std::int32_t minute_ = 0;  // since 1970
  std::uint16_t ofu_ = 0;
  std::uint16_t measured_ = 0;
  // The highest value of each: not known.
  std::uint16_t tensor_ = 0, sm_ = 0, clock_ = 0, links_ = 0;
  std::array<std::uint8_t, 4> shares_{};
};

MinutePoint point_of(const rollups::Cell& cell, units::Instant start);

// Where an allocation of several models has a cell for each: their sum.
MinutePoint point_of(std::span<const rollups::Cell> cells, units::Instant start);

}  // namespace flopsight::detect
