#include "tuning/compare.h"

#include <algorithm>
#include <cmath>

namespace flopsight::tuning {
namespace {

std::optional<double> sum(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a) return std::nullopt;
  return *a + b.value_or(0);
}

std::optional<double> measured_step(const Step& predicted, const Measured& m, bool& is_implied) {
  if (m.step_seconds) return m.step_seconds;
  if (m.tokens_per_second && *m.tokens_per_second > 0) return predicted.step_seconds() * predicted.tokens_per_second / *m.tokens_per_second;
  is_implied = true;
  if (m.ofu_ratio && *m.ofu_ratio > 0 && predicted.attainable_ofu_ratio > 0) return predicted.step_seconds() * predicted.attainable_ofu_ratio / *m.ofu_ratio;
  return std::nullopt;
}

// The most out of line first.
void order(std::vector<PartCompared>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const PartCompared& a, const PartCompared& b) {
    return std::abs(a.difference_ratio().value_or(0)) > std::abs(b.difference_ratio().value_or(0));
  });
}

// What costs is named, not what is missing for it.
std::optional<std::string_view> first_out_of_line(const std::vector<PartCompared>& parts) {
  for (const PartCompared& part : parts) {
    if (part.part != "tensor" && part.difference_ratio().value_or(0) >= kOutOfLineRatio) return part.part;
  }
  return std::nullopt;
}

std::vector<PartCompared> causes_of(const Step& predicted, const Measured& m, double busy_ratio) {
  std::vector<PartCompared> out;
  const Breakdown& b = predicted.breakdown;
  const double step = predicted.step_seconds(), memory = b.memory_seconds / step, host = b.host_seconds / step;
  if (m.memory_bound_ratio && m.other_kernels_ratio) {
    out.push_back({"memory", "memory-bound kernels", memory, m.memory_bound_ratio});
    out.push_back({"kernels", "products and attention beyond tensor pipes' work, other kernels, clock", busy_ratio - memory, sum(m.other_kernels_ratio, m.clock_loss_ratio)});
  }
  if (m.waiting_ratio && m.host_ratio) {
    out.push_back({"waiting", "messages and pipeline bubble, or stalled", idle_seconds(b) / step - host, m.waiting_ratio});
    out.push_back({"host", "the host, input, kernels that are too short", host, m.host_ratio});
  }
  order(out);
  return out;
}

}  // namespace

double Calibration::seconds(const Step& step) const {
  const double idle = idle_seconds(step.breakdown);
  return (step.step_seconds() - idle) * busy_scale + idle * idle_scale + idle_extra_seconds;
}

double idle_seconds(const Breakdown& b) {
  return b.tensor_parallel_seconds + b.context_parallel_seconds + b.expert_parallel_seconds + b.pipeline_bubble_seconds + b.pipeline_parallel_seconds + b.data_parallel_seconds + b.host_seconds;
}

Comparison compare(const Step& predicted, const Measured& m) {
  Comparison out;
  const double idle = idle_seconds(predicted.breakdown) / predicted.step_seconds();
  const double tensor = predicted.attainable_ofu_ratio;
  out.parts = {{"tensor", "tensor pipes at work (OFU)", tensor, m.ofu_ratio},
               {"busy", "SMs busy without them: memory, other kernels, clock", 1 - idle - tensor, sum(m.tensor_idle_sm_busy_ratio, m.clock_loss_ratio)},
               {"idle", "SMs idle: messages, bubble, host", idle, m.sm_idle_ratio}};
  order(out.parts);
  out.out_of_line = first_out_of_line(out.parts);
  out.causes = causes_of(predicted, m, 1 - idle - tensor);
  out.out_of_line_cause = first_out_of_line(out.causes);
  out.step_seconds = measured_step(predicted, m, out.is_step_implied);
  if (!out.step_seconds) return out;
  Calibration c;
  const double predicted_idle = idle * predicted.step_seconds(), measured_idle = m.sm_idle_ratio.value_or(idle) * *out.step_seconds;
  c.busy_scale = (*out.step_seconds - measured_idle) / (predicted.step_seconds() - predicted_idle);
  if (measured_idle >= predicted_idle) {
    c.idle_extra_seconds = measured_idle - predicted_idle;
  } else {
    c.idle_scale = predicted_idle > 0 ? measured_idle / predicted_idle : 1;
  }
  out.calibration = c;
  return out;
}

}  // namespace flopsight::tuning
