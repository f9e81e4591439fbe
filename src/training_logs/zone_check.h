#pragma once
// Whether the times of a followed log can be right: dates without an offset were read in a zone that somebody configured. A job works while it
// holds its GPUs, so steps at times at which it held none, and work that goes up and down at another time than the GPUs' activity, say that the
// zone is another one (align.h). Nothing is shifted: it is said, with the offset that fits best.
//
// Threads: pure.

#include <cstdint>
#include <optional>
#include <span>

#include "training_logs/align.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {

struct ZoneCheck {
  std::int64_t offset_seconds = 0;  // that fits best, to be added to the times as they were read
  double correlation_ratio = 0;     // with it
  std::optional<double> unshifted_correlation_ratio;  // of the times as they were read; absent: they do not meet the GPUs' at all
  std::uint64_t minutes = 0;           // that were compared
  std::uint64_t minutes_outside = 0;   // with steps, as they were read, in which the job had not begun or was over
  bool is_doubtful = false;            // the other offset fits clearly better
};

// `steps` ascending in time; of them those whose zone was assumed. `activity`: OFU of the job's GPUs, while it had them; `life`: from when to
// when it did. Nothing where there is nothing to compare.
std::optional<ZoneCheck> check_zone(std::span<const Step> steps, std::span<const ActivitySample> activity, units::Window life);

}  // namespace flopsight::training_logs
