#pragma once
// GPUs of one job that are not like the others at the same minutes.
//
// A sign of a minute is a value that is further from the median of the job's GPUs than 6 robust deviations (median absolute deviation times
// 1.4826) and than a margin that GPUs of one kind differ by:
//   slow clock   SM clock 8 % below
//   straggler    SM activity 0.08 above at no more tensor work: it works while the others wait for it; or OFU 15 % below
//   low power    a quarter below, where neither of the above shows
// Each sign counts up by one in a minute that shows it and down by one in a minute that does not; from kSignMinutes on it is a finding, until it
// is down to 2. A minute in which the GPU is not measured changes nothing. Compared are minutes in which five GPUs at least are
// measured and the median one does tensor work of 5 %. MIG instances and shared GPUs have no peers. More than half of the GPUs being slow
// makes them the median: faults.h looks at each GPU by itself.
//
// Of a host half of whose GPUs in the job, and two at least, show the same, the host is the finding.
// Threads: one at a time; a detector is one job's.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "detect/finding.h"
#include "detect/seldom.h"
#include "detect/series.h"

namespace flopsight::detect {

inline constexpr std::size_t kPeersMin = 5;
inline constexpr std::uint8_t kSignMinutes = 8;

struct GpuMinute {
  std::uint32_t gpu = 0;   // number of the caller's; ascending in a span
  std::uint32_t host = 0;  // number of the caller's
  bool mig = false;
  MinutePoint point;
};

// What the caller's numbers stand for.
struct SubjectNames {
  std::function<std::string(std::uint32_t)> gpu;
  std::span<const std::string> hosts;
};

class PeerDetector {
 public:
  // All GPUs of the job in one minute.
  void add(std::span<const GpuMinute> gpus);
  // What is the matter now, GPUs and hosts apart; texts without the job's name.
  std::vector<Finding> findings(const std::string& job, const SubjectNames& names) const;

 private:
  static constexpr std::size_t kSigns = 3;  // slow clock, straggler, low power
  struct Shown {
    float value = 0;
  };
  struct Sign {
    std::uint8_t count = 0;
    bool open = false;
    Shown own, peers;  // in the last minute that showed it
    std::int64_t first = 0, last = 0;
    float lost_gpu_seconds = 0;
  };
  struct State {
    std::uint32_t gpu = 0;
    std::uint32_t host = 0;
    Seldom<Sign, kSigns> signs;
  };
  struct Bounds {
    double value = 0;  // median of the GPUs
    double value_min = 0;
    double value_max = 0;
  };
  void align(std::span<const GpuMinute> gpus);
  static void count(State& state, std::size_t which, bool shows, double value, double median, units::Instant minute, double lost);
  void see(State& state, const MinutePoint& point, const std::array<Bounds, 5>& bounds, double job_seconds);
  std::array<Bounds, 5> bounds_of(std::span<const GpuMinute> gpus);
  Finding describe(std::size_t sign, const Sign& shown) const;

  std::vector<State> states_;  // ascending by GPU
  std::vector<double> values_;
};

}  // namespace flopsight::detect
