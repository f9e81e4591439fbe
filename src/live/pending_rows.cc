#include "live/pending_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace flopsight::live {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;

constexpr std::size_t kShortsFrom = kFloatSlots;
constexpr std::size_t kRatiosFrom = kShortsFrom + kPowerSlots;
constexpr std::size_t kRatesFrom = kRatiosFrom + kRatioSlots;
constexpr std::size_t kBitsFrom = kRatesFrom + kRateSlots;
constexpr std::size_t kDoublesFrom = kBitsFrom + kBitSlots;

constexpr std::array<Metric, kDoublesFrom + kDoubleSlots> kSlots = {
    Metric::kTensorActive, Metric::kSmClock,         Metric::kPower,          Metric::kSmActive,
    Metric::kDramActive,   Metric::kGraphicsEngineActive, Metric::kGpuUtil,   Metric::kPcieTx,
    Metric::kPcieRx,       Metric::kNvlinkTx,        Metric::kNvlinkRx,       Metric::kEventReasons,
    Metric::kEnergy,       Metric::kSmCyclesElapsed, Metric::kSmCyclesActive, Metric::kMmaCyclesActive};
static_assert(kSlots.size() <= 16, "PendingRow::present has 16 bits");

// 1.31 is the most that 16 bits hold; the catalogue takes nothing above 1.2.
constexpr double kRatioSteps = 50'000;
constexpr double kWattSteps = 10;  // up to 6,553 W; the catalogue takes nothing above 5,000
constexpr double kEnergyEndJoules = 1099511627776.0;  // 2^40

// The upper half of a float, rounded: 8 bits of precision over its whole range.
std::uint16_t to_short_rate(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x8000U) >> 16);
}
double from_short_rate(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}

std::uint16_t to_short(std::size_t slot, double value) {
  if (slot < kRatiosFrom) return static_cast<std::uint16_t>(std::lround(value * kWattSteps));
  if (slot < kRatesFrom) return static_cast<std::uint16_t>(std::lround(value * kRatioSteps));
  if (slot < kBitsFrom) return to_short_rate(value);
  // Bits without a meaning are not kept.
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(value) & 0xFFFF);
}
double from_short(std::size_t slot, std::uint16_t bits) {
  if (slot < kRatiosFrom) return bits / kWattSteps;
  if (slot < kRatesFrom) return bits / kRatioSteps;
  if (slot < kBitsFrom) return from_short_rate(bits);
  return bits;
}

constexpr std::array<std::int8_t, catalog::kMetricCount> slots_by_metric() {
  std::array<std::int8_t, catalog::kMetricCount> out{};
  for (auto& slot : out) slot = -1;
  for (std::size_t i = 0; i < kSlots.size(); ++i) {
    out[static_cast<std::size_t>(kSlots[i])] = static_cast<std::int8_t>(i);
  }
  return out;
}
constexpr auto kSlotOf = slots_by_metric();

constexpr double CycleCounters::*kCycleFields[] = {&CycleCounters::elapsed_total,
                                                   &CycleCounters::active_total, &CycleCounters::mma_total};

constexpr std::size_t kFirstRows = 4, kGrowRows = 3;

bool is_before(const PendingRow& row, std::int64_t time) { return row.unix_milliseconds() < time; }

}  // namespace

std::optional<std::uint8_t> row_slot(Metric metric) {
  const std::int8_t slot = kSlotOf[static_cast<std::size_t>(metric)];
  if (slot < 0) return std::nullopt;
  return static_cast<std::uint8_t>(slot);
}

std::size_t PendingRows::first_at_or_after(std::int64_t unix_milliseconds) const {
  return static_cast<std::size_t>(
      std::lower_bound(rows_.begin(), rows_.end(), unix_milliseconds, is_before) - rows_.begin());
}

std::size_t PendingRows::touch(std::int64_t unix_milliseconds, std::uint16_t log_segment) {
  std::size_t at = rows_.size();
  if (at > 0 && rows_.back().unix_milliseconds() == unix_milliseconds) return at - 1;
  if (at > 0 && rows_.back().unix_milliseconds() > unix_milliseconds) {
    at = first_at_or_after(unix_milliseconds);
    if (rows_[at].unix_milliseconds() == unix_milliseconds) return at;
  }
  // Grown by a few rows, not doubled: with a million GPUs the slack would be half of the memory. Nor by single ones: what each step gives
  // back is too small for the next and stays as holes.
  if (rows_.size() == rows_.capacity()) {
    rows_.reserve(rows_.empty() ? kFirstRows : rows_.size() < 64 ? rows_.size() + kGrowRows : rows_.size() * 2);
  }
  PendingRow row;
  row.set_time(unix_milliseconds);
  row.log_segment = log_segment;
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(at), row);
  if (cycles_) cycles_->insert(cycles_->begin() + static_cast<std::ptrdiff_t>(at), CycleCounters{});
  return at;
}

PendingRow& PendingRows::begin_after(std::int64_t last_unix_milliseconds, std::int64_t step_milliseconds, std::uint16_t log_segment) {
  for (std::size_t i = 0; i < kEarlier; ++i) {
    earlier_[i] = static_cast<std::uint32_t>(last_unix_milliseconds - static_cast<std::int64_t>(kEarlier - i) * step_milliseconds);
  }
  return rows_[touch(last_unix_milliseconds, log_segment)];
}

double PendingRows::value(std::size_t i, std::uint8_t slot) const {
  const PendingRow& row = rows_[i];
  if (slot < kFloatSlots) return static_cast<double>(row.floats[slot]);
  if (slot < kDoublesFrom) return from_short(slot, row.shorts[slot - kShortsFrom]);
  if (slot == kDoublesFrom) return static_cast<double>(std::uint64_t{row.energy_high} << 32 | row.energy_joules);
  return (*cycles_)[i].*kCycleFields[slot - kDoublesFrom - 1];
}

void PendingRows::set(std::size_t i, std::uint8_t slot, double value) {
  PendingRow& row = rows_[i];
  if (slot == kDoublesFrom && !(value < kEnergyEndJoules - 1)) return;
  row.present = static_cast<std::uint16_t>(row.present | 1U << slot);
  if (slot < kFloatSlots) {
    row.floats[slot] = static_cast<float>(value);
  } else if (slot < kDoublesFrom) {
    row.shorts[slot - kShortsFrom] = to_short(slot, value);
  } else if (slot == kDoublesFrom) {
    const auto joules = static_cast<std::uint64_t>(std::llround(value));
    row.energy_joules = static_cast<std::uint32_t>(joules);
    row.energy_high = static_cast<std::uint8_t>(joules >> 32);
  } else {
    if (!cycles_) cycles_ = std::make_unique<std::vector<CycleCounters>>(rows_.size());
    (*cycles_)[i].*kCycleFields[slot - kDoublesFrom - 1] = value;
  }
}

bool PendingRows::same(std::size_t i, std::uint8_t slot, double value) const {
  if (slot >= kShortsFrom && slot < kDoublesFrom) return rows_[i].shorts[slot - kShortsFrom] == to_short(slot, value);
  const double here = this->value(i, slot);
  const double steps = slot == kDoublesFrom ? 0.5 : 1e-9;
  return std::abs(here - value) <= 1e-6 * std::abs(here) + steps;
}

void PendingRows::drop_before(std::size_t first) {
  for (std::size_t i = first - std::min(first, kEarlier); i < first; ++i) {
    std::copy(earlier_.begin() + 1, earlier_.end(), earlier_.begin());
    earlier_.back() = static_cast<std::uint32_t>(rows_[i].unix_milliseconds());
  }
  const auto count = static_cast<std::ptrdiff_t>(first);
  rows_.erase(rows_.begin(), rows_.begin() + count);
  if (cycles_) cycles_->erase(cycles_->begin(), cycles_->begin() + count);
  // After a backlog has been worked off its room is given back.
  if (rows_.capacity() > 64 && rows_.size() * 4 < rows_.capacity()) rows_.shrink_to_fit();
}

bool PendingRows::last_says_all(std::size_t first, std::size_t end) const {
  if (first >= end) return false;
  const PendingRow& last = rows_[end - 1];
  for (std::size_t i = first; i + 1 < end; ++i) {
    const PendingRow& row = rows_[i];
    if ((row.present & ~last.present) != 0 || row.holders != last.holders || row.reasons != 0) return false;
  }
  constexpr std::uint16_t kEnergyBit = 1U << kDoublesFrom;
  if (last.reasons != 0 || end - first < 2) return false;
  const PendingRow& before = rows_[end - 2];
  const bool reading_moved = last.floats[0] != before.floats[0] || last.shorts[0] != before.shorts[0];  // tensor activity, power
  const bool energy_moved = (last.present & before.present & kEnergyBit) != 0 && (last.energy_joules != before.energy_joules || last.energy_high != before.energy_high);
  return reading_moved && energy_moved;
}

std::vector<std::int64_t> PendingRows::earlier() const {
  std::vector<std::int64_t> times;
  if (rows_.empty()) return times;
  const std::int64_t front = rows_.front().unix_milliseconds();
  for (const std::uint32_t time : earlier_) {
    if (time != kNoTime) times.push_back(front - static_cast<std::int64_t>(static_cast<std::uint32_t>(front) - time));
  }
  // A late row may have gone before them.
  std::erase_if(times, [&](std::int64_t t) { return t >= front; });
  return times;
}

samples::GpuScrape PendingRows::scrape(std::size_t i,
                                       const std::vector<samples::HolderId>& holders) const {
  const PendingRow& row = rows_[i];
  samples::GpuScrape out;
  out.time = units::Instant{row.unix_milliseconds()};
  out.holders = holders;
  const std::size_t slots = !cycles_ ? kDoublesFrom + 1 : kSlots.size();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const auto s = static_cast<std::uint8_t>(slot);
    if (has(i, s)) out.reading(kSlots[slot]) = value(i, s);
  }
  const auto explain = [&](Metric metric, std::uint8_t reason) {
    if (reason != 0 && !out.reading(metric).present()) {
      out.reading(metric) = Absent{static_cast<AbsentReason>(reason - 1)};
    }
  };
  explain(Metric::kTensorActive, row.tensor_reason());
  explain(Metric::kSmClock, row.clock_reason());
  return out;
}

std::size_t PendingRows::memory_bytes() const {
  return rows_.capacity() * sizeof(PendingRow) + (cycles_ ? cycles_->capacity() * sizeof(CycleCounters) : 0);
}

}  // namespace flopsight::live
