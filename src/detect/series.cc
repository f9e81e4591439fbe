#include "detect/series.h"

#include <algorithm>
#include <cmath>

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
  // The three overlap: the longest is what the time under any of them is at least.
  const std::optional<double> slowdown = share(3), software = share(5), hardware = share(6);
  if (slowdown) out.thermal_ratio = std::max({*slowdown, *software, *hardware});
}

constexpr double kShareSteps = 50'000;  // of a ratio
constexpr std::uint16_t kNoShare = 0xFFFF;

constexpr std::array<Quantity MinutePoint::*, 4> kKeptQuantities = {
    &MinutePoint::tensor_ratio, &MinutePoint::sm_ratio, &MinutePoint::clock_hertz, &MinutePoint::link_bytes_per_second};
constexpr std::array<Quantity MinutePoint::*, 4> kKeptShares = {
    &MinutePoint::thermal_ratio, &MinutePoint::power_brake_ratio, &MinutePoint::power_cap_ratio, &MinutePoint::setting_ratio};

}  // namespace

KeptMinute::KeptMinute(const MinutePoint& point)
    : unix_milliseconds_(point.start.unix_milliseconds),
      ofu_ratio_(static_cast<float>(*point.ofu_ratio)),
      measured_seconds_(static_cast<float>(point.measured_seconds)) {
  for (std::size_t i = 0; i < kQuantities; ++i) quantities_[i] = point.*kKeptQuantities[i];
  for (std::size_t i = 0; i < kShares; ++i) {
    const Quantity share = point.*kKeptShares[i];
    shares_[i] = share ? static_cast<std::uint16_t>(std::lround(*share * kShareSteps)) : kNoShare;
  }
}

MinutePoint KeptMinute::point() const {
  MinutePoint out;
  out.start = start();
  out.measured_seconds = measured_seconds();
  out.ofu_ratio = ofu_ratio();
  for (std::size_t i = 0; i < kQuantities; ++i) out.*kKeptQuantities[i] = quantities_[i];
  for (std::size_t i = 0; i < kShares; ++i) {
    if (shares_[i] != kNoShare) out.*kKeptShares[i] = shares_[i] / kShareSteps;
  }
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
