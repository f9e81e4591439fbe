#pragma once
// What a job said of its own speed, in one line beside its OFU: medians over the steps that count.
//
// MFU is the framework's claim, with its own FLOPs formula and peak; nothing here corrects it (that
// is the audit's work). Absent where the job never printed it. Threads: pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "training_logs/report.h"
#include "units/time.h"

namespace flopsight::analysis {

struct Reported {
  std::string source;  // "api", "log PATH", …
  std::string format;
  std::optional<double> mfu_ratio;
  std::optional<double> flops_per_second_per_gpu;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> step_seconds;
  // FLOP rate over MFU, the median of the steps that have both: the peak that the framework divides
  // by.
  std::optional<double> peak_flops_per_second_implied;
  std::uint64_t steps_used = 0;
  std::uint64_t steps_excluded = 0;
  std::optional<units::Instant> first;  // of the used steps that have a time
  std::optional<units::Instant> last;
};

// Whether all steps that say anything are above the peak, and more than a few: then it is no step that was timed before its work was done,
// but a wrong formula or peak, and what is claimed.
bool all_above_peak(std::span<const training_logs::Step> steps);

// Steps of one source. Those above the peak count where all are.
Reported reported_of(std::string source, std::string format,
                     std::span<const training_logs::Step> steps);

}  // namespace flopsight::analysis
