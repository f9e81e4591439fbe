#include "rollups/cell.h"

#include <algorithm>
#include <cmath>

namespace flopsight::rollups {
namespace {

// What a ratio of six decimals can say of a minute, so that digits below are noise that only costs disk.
constexpr std::int64_t kTimeQuantum = 100;
// Of what is only shown beside OFU, a hundred-thousandth of a minute.
constexpr std::int64_t kContextQuantum = 1000;
// Parts of a loss: a twentieth of a second is 0.08 % of a minute.
constexpr std::int64_t kCauseQuantum = 50'000;
constexpr double kMicrosecondsPerSecond = 1e6;
constexpr double kHertzPerMegahertz = 1e6;
// (picoseconds per hertz) squared.
constexpr double kSensitivityUnit = 1e-24;

constexpr std::array<CellFieldInfo, kCellFieldCount> kFields = {{
    {"measured_microseconds", Merge::kSum, 1, "OFU is known"},
    {"delivered_microseconds", Merge::kSum, kTimeQuantum, "integral of OFU"},
    {"tensor_measured_microseconds", Merge::kSum, kTimeQuantum, "integral of tensor activity where OFU is known"},
    {"tensor_microseconds", Merge::kSum, kTimeQuantum, "integral of tensor activity"},
    {"tensor_known_microseconds", Merge::kSum, 1, "tensor activity is known"},
    {"clock_megacycles", Merge::kSum, 1, "integral of the SM clock"},
    {"clock_known_microseconds", Merge::kSum, 1, "the SM clock is known"},
    {"sm_active_microseconds", Merge::kSum, kContextQuantum, "integral of SM activity where OFU is known"},
    {"sm_known_microseconds", Merge::kSum, 1, "SM activity and OFU are known"},
    {"tensor_within_sm_known_microseconds", Merge::kSum, kTimeQuantum, "integral of tensor activity where SM activity is known"},
    {"clock_sensitivity_ps2_per_hz2", Merge::kSum, 10'000, "times the variance of the clock: the sampling variance"},
    {"clock_busy_count", Merge::kSum, 1, "clock readings while busy"},
    {"clock_difference_count", Merge::kSum, 1, "successive pairs of them"},
    {"clock_difference_mhz2", Merge::kSum, 1, "squared differences of the pairs"},
    {"shared_delivered_microseconds", Merge::kSum, kTimeQuantum, "delivered that was split equally with others"},
    {"bridged_microseconds", Merge::kSum, 1, "attributed over a label gap"},
    {"dram_active_microseconds", Merge::kSum, kContextQuantum, "integral of memory activity"},
    {"dram_known_microseconds", Merge::kSum, 1, "memory activity is known"},
    {"energy_joules", Merge::kSum, 1, "from the energy counter, else from power"},
    {"energy_known_microseconds", Merge::kSum, 1, "energy is known"},
    {"pcie_tx_mebibytes", Merge::kSum, 16, "sent over PCIe"},
    {"pcie_rx_mebibytes", Merge::kSum, 16, "received over PCIe"},
    {"nvlink_tx_mebibytes", Merge::kSum, 16, "sent over NVLink"},
    {"nvlink_rx_mebibytes", Merge::kSum, 16, "received over NVLink"},
    {"event_known_microseconds", Merge::kSum, 1, "clock event reasons are known"},
    {"event_idle_microseconds", Merge::kSum, 1, "clock event reason 0x1"},
    {"event_clocks_setting_microseconds", Merge::kSum, 1, "0x2"},
    {"event_power_cap_microseconds", Merge::kSum, 1, "0x4"},
    {"event_hw_slowdown_microseconds", Merge::kSum, 1, "0x8"},
    {"event_sync_boost_microseconds", Merge::kSum, 1, "0x10"},
    {"event_sw_thermal_microseconds", Merge::kSum, 1, "0x20"},
    {"event_hw_thermal_microseconds", Merge::kSum, 1, "0x40"},
    {"event_hw_power_brake_microseconds", Merge::kSum, 1, "0x80"},
    {"event_display_clock_microseconds", Merge::kSum, 1, "0x100"},
    {"absent_no_tensor_counter_microseconds", Merge::kSum, 1, "OFU not known: no tensor counter"},
    {"absent_no_clock_microseconds", Merge::kSum, 1, "no SM clock"},
    {"absent_no_reference_clock_microseconds", Merge::kSum, 1, "unknown GPU model"},
    {"absent_uncalibrated_microseconds", Merge::kSum, 1, "uncalibrated counter"},
    {"absent_blank_microseconds", Merge::kSum, 1, "blank"},
    {"absent_not_a_number_microseconds", Merge::kSum, 1, "not a number"},
    {"absent_stale_microseconds", Merge::kSum, 1, "stale marker"},
    {"absent_out_of_range_microseconds", Merge::kSum, 1, "out of range"},
    {"absent_frozen_microseconds", Merge::kSum, 1, "frozen"},
    {"absent_contradicted_microseconds", Merge::kSum, 1, "contradicted"},
    {"absent_profiler_pause_microseconds", Merge::kSum, 1, "profiler pause"},
    {"absent_gap_microseconds", Merge::kSum, 1, "gap"},
    {"absent_not_seen_microseconds", Merge::kSum, 1, "not seen"},
    {"absent_unsplit_instances_microseconds", Merge::kSum, 1, "slices that no MIG instance holds"},
    {"sample_count", Merge::kSum, 1, "scrapes"},
    {"cell_count", Merge::kSum, 1, "GPU slots merged"},
    {"holders_at_once_max", Merge::kMax, 1, "holders of the GPU at once"},
    {"ofu_min_millionths", Merge::kMin, 100, "lowest OFU of a scrape"},
    {"ofu_max_millionths", Merge::kMax, 100, "highest OFU of a scrape"},
    {"clock_min_megahertz", Merge::kMin, 1, "lowest SM clock"},
    {"clock_max_megahertz", Merge::kMax, 1, "highest SM clock"},
    {"ofu_last_unix_milliseconds", Merge::kLatest, 1, "when OFU was last known"},
    {"ofu_last_millionths", Merge::kLatest, 100, "OFU then"},
    {"clock_power_cap_microseconds", Merge::kSum, kCauseQuantum, "lost to the clock under a power cap"},
    {"clock_thermal_microseconds", Merge::kSum, kCauseQuantum, "lost to the clock by heat"},
    {"clock_setting_microseconds", Merge::kSum, kCauseQuantum, "lost to the clock by a setting"},
    {"clock_gain_microseconds", Merge::kSum, kCauseQuantum, "gained by a clock above the reference"},
    {"memory_bound_microseconds", Merge::kSum, kCauseQuantum, "SMs busy without tensor work, bound by memory"},
    {"other_kernels_microseconds", Merge::kSum, kCauseQuantum, "SMs busy without tensor work, else"},
    {"stalled_microseconds", Merge::kSum, kCauseQuantum, "SMs idle, stalled or not running"},
    {"communication_microseconds", Merge::kSum, kCauseQuantum, "SMs idle, waiting on communication"},
    {"host_microseconds", Merge::kSum, kCauseQuantum, "SMs idle, waiting on host or input"},
    {"small_kernels_microseconds", Merge::kSum, kCauseQuantum, "SMs idle beside kernels that fill only some"},
}};

// Which part of a loss each of these fields is.
struct CauseField {
  CellField field;
  double LossCauses::*seconds;
};
constexpr CauseField kCauses[] = {
    {CellField::kClockPower, &LossCauses::clock_power_seconds},
    {CellField::kClockThermal, &LossCauses::clock_thermal_seconds},
    {CellField::kClockSetting, &LossCauses::clock_setting_seconds},
    {CellField::kClockGain, &LossCauses::clock_gain_seconds},
    {CellField::kMemoryBound, &LossCauses::memory_bound_seconds},
    {CellField::kOtherKernels, &LossCauses::other_kernels_seconds},
    {CellField::kStalled, &LossCauses::stalled_seconds},
    {CellField::kCommunication, &LossCauses::communication_seconds},
    {CellField::kHost, &LossCauses::host_seconds},
    {CellField::kSmallKernels, &LossCauses::small_kernels_seconds},
};

constexpr std::int64_t identity(Merge merge) {
  switch (merge) {
    case Merge::kSum: return 0;
    case Merge::kMin: return std::numeric_limits<std::int64_t>::max();
    case Merge::kMax:
    case Merge::kLatest: return std::numeric_limits<std::int64_t>::min();
  }
  return 0;
}

std::int64_t microseconds(CellField field, double seconds) {
  return to_fixed(field, seconds * kMicrosecondsPerSecond);
}
double seconds(std::int64_t microseconds) {
  return static_cast<double>(microseconds) / kMicrosecondsPerSecond;
}

constexpr double kBytesPerMebibyte = 1048576;
constexpr double kMillionths = 1e6;

CellField event_field(std::size_t bit) {
  return static_cast<CellField>(static_cast<std::size_t>(CellField::kEventFirst) + bit);
}

void add_surroundings(Cell& cell, const Surroundings& from) {
  cell[CellField::kDramActive] = microseconds(CellField::kDramActive, from.dram_active_seconds);
  cell[CellField::kDramKnown] = microseconds(CellField::kDramKnown, from.dram_known_seconds);
  cell[CellField::kEnergy] = to_fixed(CellField::kEnergy, from.energy_joules);
  cell[CellField::kEnergyKnown] = microseconds(CellField::kEnergyKnown, from.energy_known_seconds);
  const auto bytes = [&](CellField field, double value) {
    cell[field] = to_fixed(field, value / kBytesPerMebibyte);
  };
  bytes(CellField::kPcieTx, from.pcie_tx_bytes);
  bytes(CellField::kPcieRx, from.pcie_rx_bytes);
  bytes(CellField::kNvlinkTx, from.nvlink_tx_bytes);
  bytes(CellField::kNvlinkRx, from.nvlink_rx_bytes);
  cell[CellField::kEventKnown] = microseconds(CellField::kEventKnown, from.event_known_seconds);
  for (std::size_t bit = 0; bit < kEventReasonCount; ++bit) {
    cell[event_field(bit)] = microseconds(event_field(bit), from.event_seconds[bit]);
  }
}

constexpr CellField kClockParts[] = {CellField::kClockPower, CellField::kClockThermal, CellField::kClockSetting};
constexpr CellField kBusyParts[] = {CellField::kOtherKernels, CellField::kMemoryBound};
constexpr CellField kIdleParts[] = {CellField::kHost, CellField::kStalled, CellField::kCommunication, CellField::kSmallKernels};

// Gives what rounding left of a whole that has causes for all of it to one part, so that the parts add up to it: to the first if it is one of the
// causes, as that is the one which is stored as a remainder (store/block.cc), else to the largest.
void complete(Cell& cell, std::span<const CellField> parts, std::int64_t whole) {
  std::int64_t left = whole;
  for (const CellField part : parts) left -= cell[part];
  const CellField largest = *std::max_element(parts.begin(), parts.end(), [&](CellField x, CellField y) { return cell[x] < cell[y]; });
  const CellField into = cell[parts.front()] > 0 ? parts.front() : largest;
  if (left > 0 && cell[into] > 0) cell[into] += left;
}

// Downwards, and by the millisecond to which SM activity is rounded less.
void add_causes(Cell& cell, const Totals& totals) {
  constexpr double kMargin = 1000, kAllSeconds = 1e-6;
  const LossCauses& from = totals.causes;
  for (const auto& [field, seconds] : kCauses) {
    const double whole = std::floor((from.*seconds * kMicrosecondsPerSecond - kMargin) / static_cast<double>(kCauseQuantum));
    cell[field] = std::max<std::int64_t>(0, static_cast<std::int64_t>(whole)) * kCauseQuantum;
  }
  const std::int64_t loss = cell[CellField::kTensorMeasured] - cell[CellField::kDelivered];
  const std::int64_t explained = loss + cell[CellField::kClockGain];
  if (std::abs(totals.tensor_measured_seconds - totals.delivered_seconds + from.clock_gain_seconds - from.clock_power_seconds -
               from.clock_thermal_seconds - from.clock_setting_seconds) < kAllSeconds) {
    if (explained < 0) cell[CellField::kClockGain] -= explained;
    complete(cell, kClockParts, loss + cell[CellField::kClockGain]);
  }
  const std::int64_t busy = cell[CellField::kSmActive] - cell[CellField::kTensorWithinSmKnown];
  if (std::abs(totals.sm_active_seconds - totals.tensor_within_sm_known_seconds - from.memory_bound_seconds -
               from.other_kernels_seconds) < kAllSeconds) {
    complete(cell, kBusyParts, busy);
  }
  const std::int64_t idle = cell[CellField::kSmKnown] - cell[CellField::kSmActive];
  if (std::abs(totals.sm_known_seconds - totals.sm_active_seconds - from.stalled_seconds - from.communication_seconds -
               from.host_seconds - from.small_kernels_seconds) < kAllSeconds) {
    complete(cell, kIdleParts, idle);
  }
}

void add_extremes(Cell& cell, const Extremes& from) {
  if (from.any_ofu) {
    cell[CellField::kOfuMin] = to_fixed(CellField::kOfuMin, from.ofu_min_ratio * kMillionths);
    cell[CellField::kOfuMax] = to_fixed(CellField::kOfuMax, from.ofu_max_ratio * kMillionths);
    cell[CellField::kOfuLast] = to_fixed(CellField::kOfuLast, from.ofu_last_ratio * kMillionths);
    cell[CellField::kOfuLastTime] = from.ofu_last_time.unix_milliseconds;
  }
  if (from.any_clock) {
    cell[CellField::kClockMin] = std::llround(from.clock_min_hertz / kHertzPerMegahertz);
    cell[CellField::kClockMax] = std::llround(from.clock_max_hertz / kHertzPerMegahertz);
  }
}

}  // namespace

Extremes extremes_of(const Cell& cell) {
  Extremes out;
  out.any_ofu = cell.has(CellField::kOfuMin);
  if (out.any_ofu) {
    out.ofu_min_ratio = static_cast<double>(cell[CellField::kOfuMin]) / kMillionths;
    out.ofu_max_ratio = static_cast<double>(cell[CellField::kOfuMax]) / kMillionths;
    // Not every store keeps the latest; without it the lowest stands for "some time", which changes no merge.
    const bool has_last = cell.has(CellField::kOfuLast);
    out.ofu_last_ratio = has_last ? static_cast<double>(cell[CellField::kOfuLast]) / kMillionths : out.ofu_min_ratio;
    out.ofu_last_time = units::Instant{cell[CellField::kOfuLastTime]};
  }
  out.any_clock = cell.has(CellField::kClockMin);
  if (out.any_clock) {
    out.clock_min_hertz = static_cast<double>(cell[CellField::kClockMin]) * kHertzPerMegahertz;
    out.clock_max_hertz = static_cast<double>(cell[CellField::kClockMax]) * kHertzPerMegahertz;
  }
  return out;
}

std::span<const CellFieldInfo> cell_fields() { return kFields; }

Cell::Cell() {
  // Copied in one piece: an answer about a fleet makes a cell for each of its jobs.
  static constexpr std::array<std::int64_t, kCellFieldCount> kNothing = [] {
    std::array<std::int64_t, kCellFieldCount> values{};
    for (std::size_t i = 0; i < kCellFieldCount; ++i) values[i] = identity(kFields[i].merge);
    return values;
  }();
  values_ = kNothing;
}

bool Cell::has(CellField field) const {
  const Merge merge = kFields[static_cast<std::size_t>(field)].merge;
  return merge == Merge::kSum || (*this)[field] != identity(merge);
}

std::int64_t Cell::allocated_microseconds() const {
  std::int64_t sum = (*this)[CellField::kMeasured];
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    sum += absent(static_cast<samples::AbsentReason>(i));
  }
  return sum;
}

void Cell::merge(const Cell& other) {
  // Of two equally late ones the larger, so that the order does not matter.
  const auto last = [](const Cell& c) {
    return std::pair(c[CellField::kOfuLastTime], c[CellField::kOfuLast]);
  };
  const auto later = std::max(last(*this), last(other));
  for (std::size_t i = 0; i < kCellFieldCount; ++i) {
    switch (kFields[i].merge) {
      case Merge::kSum:
        // Real sums are far from the limit; those of a damaged block may not be, and wrap.
        values_[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(values_[i]) + static_cast<std::uint64_t>(other.values_[i]));
        break;
      case Merge::kMin: values_[i] = std::min(values_[i], other.values_[i]); break;
      case Merge::kMax: values_[i] = std::max(values_[i], other.values_[i]); break;
      case Merge::kLatest: break;
    }
  }
  (*this)[CellField::kOfuLastTime] = later.first;
  (*this)[CellField::kOfuLast] = later.second;
}

Cell Cell::negated() const {
  Cell out;
  for (std::size_t i = 0; i < kCellFieldCount; ++i) {
    if (kFields[i].merge == Merge::kSum) out.values_[i] = static_cast<std::int64_t>(-static_cast<std::uint64_t>(values_[i]));
  }
  return out;
}

std::int64_t to_fixed(CellField field, double value) {
  const std::int64_t quantum = kFields[static_cast<std::size_t>(field)].quantum;
  return std::llround(value / static_cast<double>(quantum)) * quantum;
}

Cell cell_of(const Totals& totals, const ClockSpread& spread) {
  Cell cell;
  const auto set = [&](CellField field, double s) { cell[field] = microseconds(field, s); };
  set(CellField::kMeasured, totals.measured_seconds);
  set(CellField::kDelivered, totals.delivered_seconds);
  set(CellField::kTensorMeasured, totals.tensor_measured_seconds);
  set(CellField::kTensor, totals.tensor_seconds);
  set(CellField::kTensorKnown, totals.tensor_known_seconds);
  cell[CellField::kClock] =
      to_fixed(CellField::kClock, totals.clock_hertz_seconds / kHertzPerMegahertz);
  set(CellField::kClockKnown, totals.clock_known_seconds);
  set(CellField::kSmActive, totals.sm_active_seconds);
  set(CellField::kSmKnown, totals.sm_known_seconds);
  set(CellField::kTensorWithinSmKnown, totals.tensor_within_sm_known_seconds);
  cell[CellField::kClockSensitivity] = to_fixed(
      CellField::kClockSensitivity, totals.clock_sensitivity_seconds2_per_hertz2 / kSensitivityUnit);
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    cell.absent(static_cast<samples::AbsentReason>(i)) =
        microseconds(CellField::kMeasured, totals.absent_seconds[i]);
  }
  cell[CellField::kClockBusyCount] = static_cast<std::int64_t>(spread.count);
  cell[CellField::kClockDifferenceCount] = static_cast<std::int64_t>(spread.difference_count);
  cell[CellField::kClockDifference] =
      to_fixed(CellField::kClockDifference,
               spread.difference_sum_hertz2 / (kHertzPerMegahertz * kHertzPerMegahertz));
  cell[CellField::kCellCount] = 1;
  add_surroundings(cell, totals.surroundings);
  add_causes(cell, totals);
  add_extremes(cell, totals.extremes);
  return cell;
}

Totals totals_of(const Cell& cell) {
  Totals totals;
  totals.allocated_seconds = seconds(cell.allocated_microseconds());
  totals.measured_seconds = seconds(cell[CellField::kMeasured]);
  totals.delivered_seconds = seconds(cell[CellField::kDelivered]);
  totals.tensor_measured_seconds = seconds(cell[CellField::kTensorMeasured]);
  totals.tensor_seconds = seconds(cell[CellField::kTensor]);
  totals.tensor_known_seconds = seconds(cell[CellField::kTensorKnown]);
  totals.clock_hertz_seconds = static_cast<double>(cell[CellField::kClock]) * kHertzPerMegahertz;
  totals.clock_known_seconds = seconds(cell[CellField::kClockKnown]);
  totals.sm_active_seconds = seconds(cell[CellField::kSmActive]);
  totals.sm_known_seconds = seconds(cell[CellField::kSmKnown]);
  totals.tensor_within_sm_known_seconds = seconds(cell[CellField::kTensorWithinSmKnown]);
  totals.clock_sensitivity_seconds2_per_hertz2 =
      static_cast<double>(cell[CellField::kClockSensitivity]) * kSensitivityUnit;
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    totals.absent_seconds[i] = seconds(cell.absent(static_cast<samples::AbsentReason>(i)));
  }
  for (const auto& [field, part] : kCauses) totals.causes.*part = seconds(cell[field]);
  Surroundings& around = totals.surroundings;
  around.dram_active_seconds = seconds(cell[CellField::kDramActive]);
  around.dram_known_seconds = seconds(cell[CellField::kDramKnown]);
  around.energy_joules = static_cast<double>(cell[CellField::kEnergy]);
  around.energy_known_seconds = seconds(cell[CellField::kEnergyKnown]);
  around.pcie_tx_bytes = static_cast<double>(cell[CellField::kPcieTx]) * kBytesPerMebibyte;
  around.pcie_rx_bytes = static_cast<double>(cell[CellField::kPcieRx]) * kBytesPerMebibyte;
  around.nvlink_tx_bytes = static_cast<double>(cell[CellField::kNvlinkTx]) * kBytesPerMebibyte;
  around.nvlink_rx_bytes = static_cast<double>(cell[CellField::kNvlinkRx]) * kBytesPerMebibyte;
  around.event_known_seconds = seconds(cell[CellField::kEventKnown]);
  for (std::size_t bit = 0; bit < kEventReasonCount; ++bit) {
    around.event_seconds[bit] = seconds(cell[event_field(bit)]);
  }
  totals.extremes = extremes_of(cell);
  return totals;
}

ClockSpread spread_of(const Cell& cell) {
  ClockSpread spread;
  spread.count = static_cast<std::uint64_t>(cell[CellField::kClockBusyCount]);
  spread.difference_count = static_cast<std::uint64_t>(cell[CellField::kClockDifferenceCount]);
  spread.difference_sum_hertz2 = static_cast<double>(cell[CellField::kClockDifference]) *
                                 kHertzPerMegahertz * kHertzPerMegahertz;
  return spread;
}

void Spread::add(double ofu_ratio, std::int64_t microseconds) {
  if (microseconds <= 0) return;
  const double at = std::floor(ofu_ratio * kBinsPerUnit);
  const auto bin = static_cast<std::uint16_t>(at < 0 ? 0 : at > kBins - 1 ? kBins - 1 : at);
  const auto place = std::lower_bound(bins_.begin(), bins_.end(), bin,
                                      [](const Bin& b, std::uint16_t key) { return b.bin < key; });
  if (place != bins_.end() && place->bin == bin) {
    place->microseconds += microseconds;
  } else {
    bins_.insert(place, Bin{bin, microseconds});
  }
}

void Spread::merge(const Spread& other) {
  std::vector<Bin> out;
  out.reserve(bins_.size() + other.bins_.size());
  auto a = bins_.begin();
  auto b = other.bins_.begin();
  while (a != bins_.end() || b != other.bins_.end()) {
    if (b == other.bins_.end() || (a != bins_.end() && a->bin < b->bin)) {
      out.push_back(*a++);
    } else if (a == bins_.end() || b->bin < a->bin) {
      out.push_back(*b++);
    } else {
      out.push_back(Bin{a->bin, a->microseconds + b->microseconds});
      ++a;
      ++b;
    }
  }
  bins_ = std::move(out);
}

std::int64_t Spread::microseconds() const {
  std::int64_t sum = 0;
  for (const Bin& bin : bins_) sum += bin.microseconds;
  return sum;
}

std::optional<double> Spread::percentile(double share) const {
  if (bins_.empty()) return std::nullopt;
  const double want = share * static_cast<double>(microseconds());
  double seen = 0;
  for (const Bin& bin : bins_) {
    seen += static_cast<double>(bin.microseconds);
    if (seen >= want) return (bin.bin + 0.5) / kBinsPerUnit;
  }
  return (bins_.back().bin + 0.5) / kBinsPerUnit;
}

bool Spread::assign(std::span<const Bin> bins) {
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i].bin >= kBins || bins[i].microseconds <= 0) return false;
    if (i > 0 && bins[i].bin <= bins[i - 1].bin) return false;
  }
  bins_.assign(bins.begin(), bins.end());
  return true;
}

}  // namespace flopsight::rollups
