#pragma once
// The scrapes of one GPU that are not rolled up yet, in a form that fits a million GPUs: 48 bytes a scrape, ascending in
// time, late ones put where they belong. What OFU is made of (tensor activity, clock) has single precision, seven digits where exporters
// print six; energy has whole joules, cycle counters double. What stands beside OFU has 16 bits: power in steps of 0.1 W, activities of 1/50,000, byte
// rates to 0.4 %. All are rounded to nearest, each by itself: after a restart the same samples are the same rows.
//
// Reasons of absence are kept where they change the answer: for tensor activity and for the clock.
// Threads: values.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/metrics.h"
#include "samples/gpu.h"
#include "units/time.h"

namespace flopsight::live {

using HolderSetId = std::uint32_t;  // 0: nobody

// Where a metric lies in a row; nothing when it is not rolled up.
std::optional<std::uint8_t> row_slot(catalog::Metric metric);

// Slots by how they are kept, in this order.
inline constexpr std::size_t kFloatSlots = 2;   // tensor activity, clock
inline constexpr std::size_t kPowerSlots = 1;   // watts
inline constexpr std::size_t kRatioSlots = 4;   // activities beside OFU
inline constexpr std::size_t kRateSlots = 4;    // bytes a second
inline constexpr std::size_t kBitSlots = 1;     // clock event reasons
inline constexpr std::size_t kDoubleSlots = 4;  // counters: energy and the three cycle counters

struct PendingRow {
  std::uint32_t energy_joules = 0;  // its lower 32 bits
  HolderSetId holders = 0;
  std::array<float, kFloatSlots> floats{};
  std::array<std::uint16_t, kPowerSlots + kRatioSlots + kRateSlots + kBitSlots> shorts{};
  std::array<std::uint16_t, 3> time{};  // 47 bits of milliseconds, lowest first: up to the year 6429; above them device_utilization()
  std::uint16_t present = 0;            // bit per slot
  std::uint16_t log_segment = 0;        // where the oldest of its samples is logged, modulo 2^16
  std::uint8_t reasons = 0;             // 1 + AbsentReason of tensor activity, and of the clock above it; 0: none
  std::uint8_t energy_high = 0;         // what is above the lower 32 bits of energy

  // 0 or more.
  std::int64_t unix_milliseconds() const {
    return static_cast<std::int64_t>(std::uint64_t{time[2] & 0x7FFFU} << 32 | std::uint64_t{time[1]} << 16 | time[0]);
  }
  // Of a new row.
  void set_time(std::int64_t unix_milliseconds) {
    for (std::size_t i = 0; i < time.size(); ++i) time[i] = static_cast<std::uint16_t>(unix_milliseconds >> 16 * i & 0xFFFF);
  }
  // Utilisation came without a holder: the device's own.
  bool device_utilization() const { return (time[2] & 0x8000U) != 0; }
  void set_device_utilization(bool is_devices) {
    time[2] = static_cast<std::uint16_t>((time[2] & 0x7FFFU) | (is_devices ? 0x8000U : 0U));
  }
  std::uint8_t tensor_reason() const { return reasons & 0xF; }
  std::uint8_t clock_reason() const { return reasons >> 4; }
  void set_tensor_reason(std::uint8_t reason) { reasons = static_cast<std::uint8_t>((reasons & 0xF0) | reason); }
  void set_clock_reason(std::uint8_t reason) { reasons = static_cast<std::uint8_t>((reasons & 0xF) | reason << 4); }
};
static_assert(sizeof(PendingRow) == 48);
static_assert(samples::kAbsentReasonCount < 15, "a reason and none have four bits");

struct CycleCounters {
  double elapsed_total = 0;
  double active_total = 0;
  double mma_total = 0;
};

class PendingRows {
 public:
  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }
  const PendingRow& front() const { return rows_.front(); }
  const PendingRow& back() const { return rows_.back(); }
  const PendingRow& at(std::size_t i) const { return rows_[i]; }
  PendingRow& at(std::size_t i) { return rows_[i]; }

  // The row of that time (0 to 2^47 - 1), made if need be; its index is valid until the next call.
  std::size_t touch(std::int64_t unix_milliseconds, std::uint16_t log_segment);

  // Of no rows yet: what is known is that there were some up to `last`, a row there, and one each `step` before it as far as the cadence is asked for.
  PendingRow& begin_after(std::int64_t last_unix_milliseconds, std::int64_t step_milliseconds, std::uint16_t log_segment);

  // Whether the row has a value in the slot, and that value.
  bool has(std::size_t i, std::uint8_t slot) const { return (rows_[i].present >> slot & 1) != 0; }
  double value(std::size_t i, std::uint8_t slot) const;
  // Energy of 2^40 J and more, 700 W for fifty years, is none.
  void set(std::size_t i, std::uint8_t slot, double value);
  // Whether the value is the one there, as far as a row can tell values apart.
  bool same(std::size_t i, std::uint8_t slot, double value) const;

  // Forgets all before row `first`, but for the times of the last few, which tell the cadence.
  void drop_before(std::size_t first);
  // Whether what follows row `end` - 1 needs none of the rows before it, from `first` on: it has all that they have, of the same holders, and its
  // readings moved, so that nothing that stands still goes on from before.
  bool last_says_all(std::size_t first, std::size_t end) const;
  // Index of the first row at or after the time.
  std::size_t first_at_or_after(std::int64_t unix_milliseconds) const;

  // Row i as the rest of the program sees a scrape.
  samples::GpuScrape scrape(std::size_t i, const std::vector<samples::HolderId>& holders) const;

  // Times before the first row, ascending.
  std::vector<std::int64_t> earlier() const;

  std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kEarlier = 8;
  static constexpr std::uint32_t kNoTime = UINT32_MAX;  // of which a time that looks like it is one, once in fifty days
  static constexpr std::array<std::uint32_t, kEarlier> none_earlier() {
    std::array<std::uint32_t, kEarlier> none{};
    for (std::uint32_t& time : none) time = kNoTime;
    return none;
  }

  std::vector<PendingRow> rows_;
  // Lower halves of their times, which the first row's time completes: the newest last. What is none stands before them.
  std::array<std::uint32_t, kEarlier> earlier_ = none_earlier();
  std::unique_ptr<std::vector<CycleCounters>> cycles_;  // none, or one for each row: few exporters have them
};

}  // namespace flopsight::live
