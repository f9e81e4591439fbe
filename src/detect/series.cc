#include "detect/series.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace flopsight::detect {
namespace {

using rollups::Cell;
using rollups::CellField;
using samples::AbsentReason;

constexpr double kMicroseconds = 1e6;
constexpr double kBytesPerMebibyte = 1048576;
constexpr double kHertzPerMegahertz = 1e6;

// Mean of `sum` over `known`, where that is enough of the allocated time.
std::optional<double> mean(const Cell& cell, CellField sum, CellField known, std::int64_t allocated) {
  const auto time = static_cast<double>(cell[known]);
  if (time <= 0 || time < kCoverageMin * static_cast<double>(allocated)) return std::nullopt;
  return static_cast<double>(cell[sum]) / time;
}

CellField event(unsigned bit) { return static_cast<CellField>(static_cast<unsigned>(CellField::kEventFirst) + bit); }

std::optional<AbsentReason> most_absent(const Cell& cell, std::int64_t allocated) {
  if (allocated <= 0 || 2 * cell[CellField::kMeasured] >= allocated) return std::nullopt;
  AbsentReason most = AbsentReason::kNotSeen;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    const auto reason = static_cast<AbsentReason>(i);
    if (cell.absent(reason) <= longest) continue;
    longest = cell.absent(reason);
    most = reason;
  }
  return most;
}

void add_events(MinutePoint& out, const Cell& cell, std::int64_t allocated) {
  const auto share = [&](unsigned bit) { return mean(cell, event(bit), CellField::kEventKnown, allocated); };
  out.setting_ratio = share(1);
  out.power_cap_ratio = share(2);
  out.power_brake_ratio = share(7);
  // They overlap: the longest is what the time under any of them is at least, and the slowdown beyond it what none of them explains.
  const std::optional<double> slowdown = share(3), software = share(5), hardware = share(6);
  if (!slowdown) return;
  out.thermal_ratio = std::max(*software, *hardware);
  out.unnamed_slowdown_ratio = std::max(0.0, *slowdown - std::max({*out.thermal_ratio, out.power_brake_ratio.value_or(0), out.power_cap_ratio.value_or(0), out.setting_ratio.value_or(0)}));
}

constexpr std::array<Quantity MinutePoint::*, 4> kKeptShares = {
    &MinutePoint::thermal_ratio, &MinutePoint::power_brake_ratio, &MinutePoint::power_cap_ratio, &MinutePoint::setting_ratio};
constexpr double kActivitySteps = 50'000, kShareSteps = 250, kClockStepHertz = 1e5;

// In steps, and the highest number for what is not known or beyond them.
template <typename Number>
Number to_steps(const Quantity& value, double steps_per_unit) {
  constexpr auto kUnknown = std::numeric_limits<Number>::max();
  const double steps = std::round(value.value_or(0) * steps_per_unit);
  return value && steps >= 0 && steps < kUnknown ? static_cast<Number>(steps) : kUnknown;
}
template <typename Number>
Quantity from_steps(Number steps, double steps_per_unit) {
  if (steps == std::numeric_limits<Number>::max()) return {};
  return steps / steps_per_unit;
}

// Eleven bits of a number of 0 or more, and above them which power of two they count, from 2^`exponent_min` on.
constexpr int kShortBits = 11;
std::uint16_t to_short(double value, int exponent_min) {
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - kShortBits, exponent_min);
  int steps = static_cast<int>(std::lround(std::ldexp(value, -exponent)));
  if (steps == 1 << kShortBits) {
    ++exponent;
    steps /= 2;
  }
  return static_cast<std::uint16_t>((exponent - exponent_min) << kShortBits | steps);
}
double from_short(std::uint16_t bits, int exponent_min) { return std::ldexp(bits & ((1 << kShortBits) - 1), (bits >> kShortBits) + exponent_min); }
constexpr int kOfuExponentMin = -31;     // up to 2,000
constexpr int kSecondsExponentMin = -5;  // a thirty-second, up to 10^11

}  // namespace

std::uint16_t to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(std::isnan(value) ? 0x7FC0U : (bits + 0x8000U) >> 16);
}

float from_half(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

KeptMinute::KeptMinute(const MinutePoint& point)
    : minute_(static_cast<std::int32_t>(point.start.unix_milliseconds / 60'000)),
      ofu_(to_short(*point.ofu_ratio, kOfuExponentMin)),
      measured_(to_short(point.measured_seconds, kSecondsExponentMin)),
      tensor_(to_steps<std::uint16_t>(point.tensor_ratio, kActivitySteps)),
      sm_(to_steps<std::uint16_t>(point.sm_ratio, kActivitySteps)),
      clock_(to_steps<std::uint16_t>(point.clock_hertz, 1 / kClockStepHertz)),
      links_(to_half(point.link_bytes_per_second.single())) {
  for (std::size_t i = 0; i < shares_.size(); ++i) shares_[i] = to_steps<std::uint8_t>(point.*kKeptShares[i], kShareSteps);
}

double KeptMinute::ofu_ratio() const { return from_short(ofu_, kOfuExponentMin); }
double KeptMinute::measured_seconds() const { return from_short(measured_, kSecondsExponentMin); }

MinutePoint KeptMinute::point() const {
  MinutePoint out;
  out.start = start();
  out.measured_seconds = measured_seconds();
  out.ofu_ratio = ofu_ratio();
  out.tensor_ratio = from_steps(tensor_, kActivitySteps);
  out.sm_ratio = from_steps(sm_, kActivitySteps);
  out.clock_hertz = from_steps(clock_, 1 / kClockStepHertz);
  out.link_bytes_per_second = static_cast<double>(from_half(links_));
  for (std::size_t i = 0; i < shares_.size(); ++i) out.*kKeptShares[i] = from_steps(shares_[i], kShareSteps);
  return out;
}

MinutePoint point_of(const Cell& cell, units::Instant start) {
  MinutePoint out;
  out.start = start;
  const std::int64_t allocated = cell.allocated_microseconds();
  if (allocated <= 0) return out;
  out.allocated_seconds = static_cast<double>(allocated) / kMicroseconds;
  out.measured_seconds = static_cast<double>(cell[CellField::kMeasured]) / kMicroseconds;
  out.ofu_ratio = mean(cell, CellField::kDelivered, CellField::kMeasured, allocated);
  out.tensor_ratio = mean(cell, CellField::kTensor, CellField::kTensorKnown, allocated);
  out.sm_ratio = mean(cell, CellField::kSmActive, CellField::kSmKnown, allocated);
  // Megacycles a microsecond, to cycles a second.
  if (const auto clock = mean(cell, CellField::kClock, CellField::kClockKnown, allocated)) {
    out.clock_hertz = *clock * kMicroseconds * kHertzPerMegahertz;
  }
  if (const auto power = mean(cell, CellField::kEnergy, CellField::kEnergyKnown, allocated)) out.power_watts = *power * kMicroseconds;
  const std::int64_t links = cell[CellField::kPcieTx] + cell[CellField::kPcieRx] + cell[CellField::kNvlinkTx] + cell[CellField::kNvlinkRx];
  if (links > 0) out.link_bytes_per_second = static_cast<double>(links) * kBytesPerMebibyte / out.allocated_seconds;
  add_events(out, cell, allocated);
  out.absent = most_absent(cell, allocated);
  out.shared = cell.has(CellField::kHoldersMax) && cell[CellField::kHoldersMax] > 1;
  return out;
}

MinutePoint point_of(std::span<const Cell> cells, units::Instant start) {
  Cell sum;
  for (const Cell& cell : cells) sum.merge(cell);
  return point_of(sum, start);
}

}  // namespace flopsight::detect
