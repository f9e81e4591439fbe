#pragma once
// What is the matter with a GPU by itself, whatever its peers do, and with the measurement of it.
//
// Each condition counts up by one in a minute that shows it and down by one in a minute that is known not to; from `minutes` on it is a finding,
// until it is down to 2:
//   thermal         5 minutes   event reasons 0x20 or 0x40 for half of the minute or more
//   power_brake     5           0x80 likewise
//   stuck_clock    10           SMs busy (30 %) at under 60 % of the highest clock of a busy minute that this GPU had, half an hour of them seen,
//   power_capped   10           without those reasons; power_capped where 0x4 holds for half of the minute. Whatever the clock, stuck_clock where 0x8 holds so
//                               alone: NVML's slowdown by the hardware stands for heat, the brake or a fast trigger, and does not say which
//   counter_dead    5           OFU is not known for most of the minute, for blank, NaN, out of range, contradicted, and lost counters or clocks
//   counter_frozen  5           the same for frozen ones
//   profiler_pause  3           the same as the profiler of the host holds the counters
//   unseen         10           the same as there are no samples; a GPU that no job holds is none of the caller's minutes
//   unmeasurable   30           no counter, clock or reference at all, and never before
// Unmeasured minutes say nothing about heat and clocks. Where half of the GPUs of a host, and two at least, show the same, the host is the
// finding; a profiler pause is always of a host.
// Threads: one at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "detect/peers.h"
#include "detect/seldom.h"

namespace flopsight::detect {

class FaultDetector {
 public:
  // GPUs of the fleet in one minute, ascending by number, each once. Those that are not in it are left as they are.
  void add(std::span<const GpuMinute> gpus);
  // What is the matter now. GPU time under it is the cost of thermal and the like as far as clocks fell; of the measurement there is none.
  std::vector<Finding> findings(const SubjectNames& names) const;

 private:
  static constexpr std::size_t kConditions = 9;
  struct Condition {
    std::uint8_t count = 0;
    bool open = false;
    // Of the last minute that showed it.
    bool by_setting = false;  // event reason 0x2
    bool by_hardware = false;  // 0x8 alone
    samples::AbsentReason absent = samples::AbsentReason::kNotSeen;
    float clock_hertz = 0;  // 0: none that was busy
    float lost_gpu_seconds = 0;
    std::int64_t first = 0, last = 0;
  };
  struct State {
    bool seen = false;
    bool measured_ever = false;
    std::uint8_t busy_minutes = 0;  // up to 30
    std::uint32_t host = 0;
    float clock_best_hertz = 0;
    Seldom<Condition, kConditions> conditions;
  };
  void see(State& state, const MinutePoint& point);
  void see_work(State& state, const MinutePoint& point);
  static void count(State& state, std::size_t condition, bool shows, const MinutePoint& point, double lost);
  Finding describe(const State& state, std::size_t condition) const;

  std::vector<State> states_;  // by number
};

}  // namespace flopsight::detect
