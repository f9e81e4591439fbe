#pragma once
// Jobs that did tensor work and do none any more.
//
// Working level: the 90th percentile of the tensor activity of the last two hours of minutes that worked, ten of them at least. A minute is without
// work when its tensor activity is under a tenth of that and under kIdleTensor. Then
//   hang   after five such minutes in a row, if in all of them SMs are busy without change (over 2 % of the time, within a fifth of each
//          other: a collective's kernel that waits), power is at most 45 % of what work takes, and links carry under a hundredth of what they did.
//          Each of the three must be measured; links count as silent without a byte only in a job that had bytes on them.
//   stall  after 20 minutes in which that cannot be said: longer than the checkpoints and restarts that jobs usually make. Only of jobs that worked in
//          three quarters of the two hours before, half an hour of them seen: a notebook whose user thinks has not stalled.
// Minutes that were not measured are passed over: they neither count nor interrupt. A job that has not worked yet is no finding here.
// Threads: one at a time; a detector is one job's.

#include <cstdint>
#include <optional>

#include "detect/recent.h"
#include "detect/series.h"
#include "units/units.h"

namespace flopsight::detect {

inline constexpr double kIdleTensor = 0.01;
inline constexpr std::size_t kStallHistoryMinutes = 120;
inline constexpr int kHangMinutes = 5;
inline constexpr int kStallMinutes = 20;

struct Stall {
  units::Instant first;
  units::Instant last;
  bool hang = false;
  double working_tensor_ratio = 0;
  double tensor_ratio = 0;  // mean since
  std::optional<double> sm_ratio;  // of the last minute, as below
  std::optional<double> working_power_watts;
  std::optional<double> power_watts;
  units::GpuHours cost;  // allocated since
};

class StallDetector {
 public:
  // Minutes ascend; one that is not after the last is ignored.
  void add(const MinutePoint& point);
  const std::optional<Stall>& open() const { return open_; }

 private:
  void work(const MinutePoint& point);
  bool waits() const;

  // Of a minute that worked, as upper halves (series.h): levels that medians over two hours tell.
  struct Worked {
    std::uint16_t tensor_ratio = 0;
    std::uint16_t power_watts = 0;
    std::uint16_t link_bytes_per_second = 0;
  };
  // Of one that did not.
  struct Idle {
    float sm_ratio = 0;  // NaN where it or power is not known
    float power_watts = 0;
    float link_bytes_per_second = 0;
  };
  static std::optional<double> median_of(const Recent<Worked>& minutes, std::uint16_t Worked::*quantity);

  Recent<Worked> worked_{kStallHistoryMinutes};
  RecentFlags<kStallHistoryMinutes> before_;  // which of the last minutes before the idle ones were work
  std::optional<double> working_tensor_, working_power_, working_links_;
  Recent<Idle> idle_{kHangMinutes};  // the last few in a row
  int idle_minutes_ = 0;
  double idle_tensor_ = 0;
  bool hung_ = false;
  units::Instant idle_first_;
  units::GpuHours cost_;
  std::optional<units::Instant> last_seen_;
  std::optional<Stall> open_;
};

}  // namespace flopsight::detect
