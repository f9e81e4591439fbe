#pragma once
// A job as it was measured beside the prediction for it: part by part, and what the prediction becomes when it is put right by the measurement.
//
// Counters see three parts of the time: tensor pipes working (OFU), SMs busy without them (other kernels, memory, a lower clock), SMs idle. Predicted:
// OFU = attainable OFU; idle = messages, bubble and launches; busy = the rest. Shares are of the measured time. Where the causes of busy and idle time are known, they are
// compared as well: memory-bound kernels, other kernels and the clock; messages and bubble, the host.
//
// The measured step is the reported one, or follows from OFU: the same FLOPs are executed, so T_measured = T_predicted * OFU_predicted / OFU_measured. Calibrated:
//   T' = busy'(predicted) * busy_scale + idle'(predicted) * idle_scale + idle_extra
// with scales from this job; idle time beyond what is predicted stays as it is, whatever a change does. Threads: pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/advice.h"

namespace flopsight::tuning {

struct PartCompared {
  std::string_view part;  // "tensor", "busy", "idle"; of causes "memory", "kernels", "waiting", "host"
  std::string_view name;  // in words
  double predicted_ratio = 0;
  std::optional<double> measured_ratio;

  std::optional<double> difference_ratio() const {
    if (!measured_ratio) return std::nullopt;
    return *measured_ratio - predicted_ratio;
  }
};

struct Comparison {
  std::vector<PartCompared> parts;          // the part that is most out of line first
  std::vector<PartCompared> causes;         // of busy and idle time, where they are known; likewise
  std::optional<std::string_view> out_of_line_cause;
  std::optional<std::string_view> out_of_line;  // absent where none is by kOutOfLineRatio, or nothing is measured
  std::optional<double> step_seconds;       // measured, or implied by OFU
  bool is_step_implied = false;
  std::optional<Calibration> calibration;
};

inline constexpr double kOutOfLineRatio = 0.05;  // of the time: half of what the step model is wrong by, in the mean

Comparison compare(const Step& predicted, const Measured& measured);

}  // namespace flopsight::tuning
