#pragma once
// Which offset the clock of a log had, found by the work itself: a job's throughput as its log tells it goes up and down with
// the activity of its GPUs. For logs that print local time without an offset (and whose zone nobody knows).
//
// Only whole and half hours from -14 h to +14 h are tried. Source: what is correlated is work done per minute against OFU per
// minute, with Pearson's coefficient.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "training_logs/report.h"
#include "units/time.h"

namespace flopsight::training_logs {

// A step at its printed time read as if it were UTC, and how long it took.
struct LoggedStep {
  units::Instant end;
  double step_seconds = 0;                // > 0
  double flops_per_second_per_gpu = 1;    // relative to each other is enough; 1 where the log has no rate
};

struct ActivitySample {
  units::Instant time;
  double ofu_ratio = 0;
};

struct Alignment {
  // Add it to the printed time to get UTC: -1 h for a log of Berlin in winter.
  std::int64_t offset_seconds = 0;
  double correlation_ratio = 0;         // -1 to 1
  double next_correlation_ratio = 0;    // of the next best offset
  std::optional<double> unshifted_correlation_ratio;  // of offset 0; absent where it has none
  std::uint64_t minutes = 0;            // that were compared
  // Sure enough to be used: see `why` where not.
  bool sure = false;
  std::string why;
};

// Nothing when there is nothing to compare: no steps, no samples, or no offset at which they meet.
// `whole`: the log has all of the job's work, so that minutes without a step are minutes without work also before its first and after
// its last line; else only the minutes between them are compared.
std::optional<Alignment> align(std::span<const LoggedStep> steps, std::span<const ActivitySample> samples, bool whole);

}  // namespace flopsight::training_logs
