#pragma once
// What the counters of a GPU say: exact integrals of its activity over any window, and the readings of one scrape made from
// them as DCGM makes them (ratios of cycles over the window, power as the mean of the last second, clocks of the
// instant, counters since the driver was loaded).
//
// The tensor ratio is one of cycles, not of time, as the hardware's is; both are the same at a steady clock.
// Threads: one Meter, one thread; it remembers counters at the start of segments (56 bytes a seat), which changes no answer.

#include <array>
#include <cstdint>
#include <vector>

#include "simulation/timetable.h"
#include "simulation/workload.h"

namespace flopsight::simulation {

// What keeps a clock from its maximum.
enum class ClockCause : std::uint8_t { kNone, kPower, kSetting, kThermal };
ClockCause clock_cause(const Level& level);

// Of one seat over a window. Shares of the GPU are not applied.
struct Integral {
  double seconds = 0;
  double cycles_total = 0;
  double tensor_cycles_total = 0;
  double sm_cycles_total = 0;
  double capped_seconds = 0;
  std::array<double, kRateCount> rate_seconds{};
  // Of the tensor activity and cycles, those at a clock that each cause has lowered (ClockCause).
  std::array<double, 4> tensor_seconds_by_cause{};
  std::array<double, 4> tensor_cycles_by_cause{};
  // Time in each mode, and SM activity and tensor activity in it.
  ModeSeconds mode_seconds{};
  ModeSeconds mode_sm_seconds{};
  ModeSeconds mode_tensor_seconds{};

  double of(Rate r) const { return rate_seconds[static_cast<std::size_t>(r)]; }
  void add(const Integral& other, double weight);
};

// What one scrape reads of a GPU or MIG instance, as printed: rounded to DCGM's decimals.
struct Readings {
  double tensor_ratio = 0, sm_ratio = 0, occupancy_ratio = 0, engine_ratio = 0, dram_ratio = 0, fp32_ratio = 0,
         fp16_ratio = 0, utilization_percent_value = 0;
  double clock_hertz = 0, power_watts = 0, energy_millijoules_total = 0, temperature_celsius = 0;
  double nvlink_tx_bytes = 0, nvlink_rx_bytes = 0, pcie_tx_bytes = 0, pcie_rx_bytes = 0;  // a second
  double framebuffer_used_mebibytes_total = 0, framebuffer_free_mebibytes_total = 0,
         framebuffer_reserved_mebibytes_total = 0;
  double nvlink_megabytes_total = 0, sm_cycles_elapsed_total = 0, sm_cycles_active_total = 0, mma_cycles_total = 0;
  double power_violation_microseconds_total = 0;
  std::uint32_t event_reasons = 0;
  std::uint32_t xid = 0;
  double mfu_ratio = 0;  // that the job reports
};

// Which readings are wanted; each costs.
enum ReadingGroup : unsigned { kRatios = 1, kInstants = 2, kCounters = 4, kMemory = 8, kReported = 16, kAllReadings = 31 };

// The Xid error that ended an attempt, on one GPU of the job; 0: none.
struct XidError {
  std::uint32_t gpu = 0;
  std::uint32_t code = 0;
};
XidError xid_of(const Timetable& timetable, const Segment& segment);

class Meter {
 public:
  explicit Meter(const Timetable& timetable);

  // Over [from, to), wherever segments end in it.
  Integral integral(std::uint32_t gpu, std::uint32_t slot, std::int64_t from, std::int64_t to);
  // A scrape at `t`. `slot`: of the MIG instance; of a GPU without instances, any of its.
  Readings read(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, unsigned groups = kAllReadings);
  // The utilisation of one pod's processes among those that share the GPU, in percent of the whole.
  double process_percent(std::uint32_t gpu, std::uint32_t slot, std::int64_t t);
  // As Timetable::at, from memory where possible.
  const Segment& segment(std::uint32_t slot, std::int64_t t);
  // Of the segment at `t`, which somebody holds.
  const Workload& workload(std::uint32_t slot, std::int64_t t) { return known(slot, t).workload; }

 private:
  struct Known {  // the last segments that were looked at
    Segment segment;
    Workload workload;
    bool valid = false;
    // What the GPUs of the slot spent in [from, to) of it: those that are alike, and those that are not.
    std::int64_t from = 0, to = -1;
    struct Spent {
      ModeSeconds seconds{};
      double compute_from_seconds = 0, compute_to_seconds = 0;
    };
    Spent usual, odd;
    bool recent = false;
  };
  struct Counters {
    std::int64_t since = -1;  // start of a segment; -1: none yet
    bool rebooted = false;
    double seconds = 0;
    double joules = 0;
    double cycles_total = 0, sm_cycles_total = 0, tensor_cycles_total = 0;
    double nvlink_bytes = 0;
    double capped_seconds = 0;
    void add(const Integral& from, double weight);
    void add(const Counters& from, double weight);
  };
  Known& known(std::uint32_t slot, std::int64_t t);
  void add_segment(std::uint32_t gpu, std::uint32_t slot, Known& in, std::int64_t from, std::int64_t to, Integral& out);
  static Known::Spent spent_in(const Known& in, std::int64_t from, std::int64_t to, bool of_odd);
  void add_noise(std::uint32_t gpu, std::uint32_t slot, const Known& in, Integral& out) const;
  // All seats of the GPU by their shares, and what no seat holds as idle.
  Integral whole(std::uint32_t gpu, std::int64_t from, std::int64_t to);
  Counters counted(std::uint32_t gpu, std::uint32_t slot, std::int64_t t);
  void read_ratios(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out);
  void read_instants(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out);
  void read_counters(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out);
  void read_memory(std::uint32_t slot, std::int64_t t, Readings& out);
  double clock_hertz(std::uint32_t gpu, const Level& level) const;
  // [-1, 1): how this GPU differs from its kind.
  double trait(std::uint32_t gpu, std::uint64_t which) const;

  const Timetable& timetable_;
  const catalog::Device& device_;
  Level idle_;
  bool may_cap_ = true;
  bool by_slot_ = false;
  std::vector<Counters> counters_;  // by slot where GPUs have seats, else by GPU
  std::array<Known, 32> known_{};
};

}  // namespace flopsight::simulation
