#include "rollups/pushed.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rollups/fleet_internal.h"
#include "rollups/screen.h"

namespace flopsight::rollups {
namespace {

using samples::AbsentReason;
using samples::PushedSpan;

double& absent(Totals& totals, AbsentReason reason) {
  return totals.absent_seconds[static_cast<std::size_t>(reason)];
}

// `steps` of allocation with what the span measured in them.
void add_span(Totals& totals, const PushedSpan& span, double steps, double step_seconds, double weight,
              AbsentReason unseen, bool has_tensor, const GpuTime& gpu) {
  const double unit = step_seconds * weight;
  totals.allocated_seconds += steps * unit;
  totals.clock_hertz_seconds += span.clock_hertz_sum * unit;
  totals.clock_known_seconds += static_cast<double>(span.clock_steps) * unit;
  const double measured = static_cast<double>(span.measured_steps);
  totals.tensor_seconds += span.tensor_ratio_sum * unit;
  totals.tensor_known_seconds += measured * unit;
  absent(totals, unseen) += (steps - static_cast<double>(span.present_steps)) * unit;
  absent(totals, has_tensor ? AbsentReason::kGap : AbsentReason::kNoTensorCounter) +=
      (static_cast<double>(span.present_steps) - measured) * unit;
  if (!gpu.reference) {
    absent(totals, AbsentReason::kNoReferenceClock) += measured * unit;
    return;
  }
  const double reference = gpu.reference->clock.value;
  totals.measured_seconds += measured * unit;
  totals.tensor_measured_seconds += span.tensor_ratio_sum * unit;
  totals.delivered_seconds += span.tensor_clock_hertz_sum / reference * unit;
  totals.clock_sensitivity_seconds2_per_hertz2 +=
      span.tensor_squared_ratio_sum * (unit / reference) * (unit / reference);
}

// The variance comes ready-made; put as the successive differences that would give it.
void add_spread(const PushedSpan& span, ClockSpread& spread) {
  spread.difference_count += span.busy_steps;
  spread.difference_sum_hertz2 += 2 * span.clock_variance_hertz2_weighted;
}

GpuTime gpu_of_spans(const std::vector<const PushedSpan*>& spans, units::Seconds step,
                     const FleetOptions& options, samples::QualityLog& quality) {
  GpuTime gpu;
  gpu.gpu = spans.front()->gpu;
  std::optional<units::Hertz> scraped_max;
  bool has_tensor = false;
  double present_steps = 0;
  for (const PushedSpan* span : spans) {
    if (gpu.gpu.model_raw.empty()) gpu.gpu.model_raw = span->gpu.model_raw;
    if (span->clock_max_hertz) scraped_max = units::Hertz(*span->clock_max_hertz);
    has_tensor = has_tensor || span->measured_steps > 0;
    present_steps += static_cast<double>(span->present_steps);
  }
  const double weight = resolve_device(gpu, options, scraped_max, quality);
  double window_steps = std::round(options.integrate.window->length() / step);
  if (!gpu.gpu.mig_instance.empty()) window_steps = present_steps;
  double held_steps = 0;
  const PushedSpan nobody;
  const PushedSpan* free = &nobody;
  for (const PushedSpan* span : spans) {
    // The variance is of the GPU and repeated on each of its spans.
    if (span == spans.front()) add_spread(*span, gpu.spread);
    if (!span->holder) {
      free = span;
      continue;
    }
    double steps = static_cast<double>(span->present_steps);
    if (span->first && span->last && gpu.gpu.mig_instance.empty()) {
      steps = std::max(steps, std::round((*span->last - *span->first) / step) + 1);
    }
    held_steps += steps;
    gpu.portions.push_back({});
    gpu.portions.back().holder = span->holder;
    gpu.holders_at_once_max = 1;
    add_span(gpu.portions.back().totals, *span, steps, step.value, weight, AbsentReason::kGap, has_tensor,
             gpu);
  }
  const double free_steps =
      std::max(window_steps - held_steps, static_cast<double>(free->present_steps));
  if (free_steps > 0) {
    gpu.portions.push_back({});
    add_span(gpu.portions.back().totals, *free, free_steps, step.value, weight, AbsentReason::kNotSeen,
             has_tensor, gpu);
  }
  return gpu;
}

}  // namespace

Fleet fleet_of_spans(const std::vector<PushedSpan>& spans, units::Seconds step,
                     const FleetOptions& options, samples::QualityLog& quality) {
  FLOPSIGHT_CHECK(options.integrate.window.has_value());
  std::map<std::pair<std::string, std::string>, std::vector<const PushedSpan*>> by_gpu;
  for (const PushedSpan& span : spans) {
    by_gpu[{span.gpu.uuid, span.gpu.mig_instance}].push_back(&span);
  }
  Fleet fleet;
  fleet.window = options.integrate.window;
  for (const auto& [key, members] : by_gpu) {
    // A MIG GPU's parent has no time of its own beside its instances.
    const auto next = by_gpu.upper_bound(key);
    if (key.second.empty() && next != by_gpu.end() && next->first.first == key.first) continue;
    fleet.gpus.push_back(gpu_of_spans(members, step, options, quality));
  }
  add_mig_rests(fleet);
  return fleet;
}

}  // namespace flopsight::rollups
