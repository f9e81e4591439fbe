#pragma once
// A cell: what one GPU (or one job) had in one slot of time, in whole numbers. Every field is a sum, a minimum,
// a maximum or the latest of its kind, so that cells merge exactly, in any order and any grouping: minutes to hours,
// GPUs to jobs, late parts to early ones. Means and ratios are made at the very end, by totals_of().
//
// Numbers are fixed-point, because sums of doubles depend on their order: times in microseconds of GPU time, rounded once,
// when a cell is made (quantum in the table). The range holds 290,000 GPU-years.
//
// Absence: a minimum, maximum or latest of nothing is the identity of its merge (has() tells).
// Threads: values.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rollups/totals.h"
#include "samples/absent.h"
#include "units/time.h"

namespace flopsight::rollups {

enum class CellField : std::uint8_t {
  // Time of the GPU, weighted as in Totals (MIG share, 1/n of a shared GPU).
  kMeasured,
  kDelivered,
  kTensorMeasured,
  kTensor,
  kTensorKnown,
  kClock,  // integral of the clock
  kClockKnown,
  kSmActive,
  kSmKnown,
  kTensorWithinSmKnown,
  kClockSensitivity,
  kClockBusyCount,        // readings of the clock while busy
  kClockDifferenceCount,  // successive pairs of them
  kClockDifference,       // sum of their squared differences
  kSharedDelivered,
  kBridged,  // attributed over a label gap
  kDramActive,
  kDramKnown,
  kEnergy,
  kEnergyKnown,
  kPcieTx,
  kPcieRx,
  kNvlinkTx,
  kNvlinkRx,
  kEventKnown,
  kEventFirst,  // time under each bit of the clock event reasons, bit 0 first
  kEventLast = kEventFirst + 8,
  kAbsentFirst,  // time without OFU by reason, in the order of samples::AbsentReason
  kAbsentLast = kAbsentFirst + samples::kAbsentReasonCount - 1,
  kSampleCount,  // scrapes that lie in it
  kCellCount,    // GPU slots merged into it
  kHoldersMax,   // holders of the GPU at once
  kOfuMin,       // of single scrapes
  kOfuMax,
  kClockMin,
  kClockMax,
  kOfuLastTime,
  kOfuLast,
  // Behind all that there was at first, so that what was stored before is read: such cells know of no causes.
  kClockPower,
  kClockThermal,
  kClockSetting,
  kClockGain,
  kMemoryBound,
  kOtherKernels,
  kStalled,
  kCommunication,
  kHost,
  kSmallKernels,
  kEnd,
};
// Fields of the first form of a stored block.
inline constexpr std::size_t kFirstCellFieldCount = static_cast<std::size_t>(CellField::kClockPower);
inline constexpr std::size_t kCellFieldCount = static_cast<std::size_t>(CellField::kEnd);

enum class Merge : std::uint8_t { kSum, kMin, kMax, kLatest };

struct CellFieldInfo {
  std::string_view name;  // a column of the store, with its unit
  Merge merge = Merge::kSum;
  std::int64_t quantum = 1;  // a new cell's value is a multiple of it
  std::string_view meaning;
};

// In the order of CellField.
std::span<const CellFieldInfo> cell_fields();

class Cell {
 public:
  Cell();

  std::int64_t operator[](CellField field) const { return values_[static_cast<std::size_t>(field)]; }
  std::int64_t& operator[](CellField field) { return values_[static_cast<std::size_t>(field)]; }
  std::int64_t absent(samples::AbsentReason reason) const {
    return values_[static_cast<std::size_t>(CellField::kAbsentFirst) + static_cast<std::size_t>(reason)];
  }
  std::int64_t& absent(samples::AbsentReason reason) {
    return values_[static_cast<std::size_t>(CellField::kAbsentFirst) + static_cast<std::size_t>(reason)];
  }

  // Whether the minimum, maximum or latest in `field` is one; sums always are.
  bool has(CellField field) const;
  std::int64_t allocated_microseconds() const;  // measured and not
  void merge(const Cell& other);
  // What merges with this one to sums of nothing; extremes are of nothing.
  Cell negated() const;
  bool operator==(const Cell&) const = default;

  std::span<const std::int64_t> values() const { return values_; }

 private:
  std::array<std::int64_t, kCellFieldCount> values_;
};

// Rounds to the fields' quanta, parts of a loss downwards, so that they never add up to more than it. Allocated time stays measured
// plus absent, exactly.
Cell cell_of(const Totals& totals, const ClockSpread& spread);
Totals totals_of(const Cell& cell);
Extremes extremes_of(const Cell& cell);
ClockSpread spread_of(const Cell& cell);  // counts and differences; no sums

// `value` in the field's unit, rounded to its quantum.
std::int64_t to_fixed(CellField field, double value);

// How a job's GPUs were spread: GPU time by OFU, in bins of half a percent. Merges exactly; percentiles are read
// from it to half a bin. Its time is measured GPU time, so that a GPU unseen does not look like an idle one.
class Spread {
 public:
  static constexpr int kBinsPerUnit = 200;
  static constexpr std::uint16_t kBins = 241;  // the last: 1.2 and more

  struct Bin {
    std::uint16_t bin = 0;
    std::int64_t microseconds = 0;
    bool operator==(const Bin&) const = default;
  };

  void add(double ofu_ratio, std::int64_t microseconds);
  void merge(const Spread& other);
  std::int64_t microseconds() const;
  // The ratio below which `share` (0 to 1) of the time lies: the middle of its bin. Nothing when empty.
  std::optional<double> percentile(double share) const;
  // Ascending, no zeros.
  std::span<const Bin> bins() const { return bins_; }
  // From storage; false (and unchanged) when not ascending, out of range or not positive.
  bool assign(std::span<const Bin> bins);
  bool operator==(const Spread&) const = default;

 private:
  std::vector<Bin> bins_;
};

}  // namespace flopsight::rollups
