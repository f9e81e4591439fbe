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

// `steps` of allocation with what the span measured in them. A series is held for a step or two after its last sample, so
// that spans that follow each other overlap a little: `kept`, 1 or just below, is the part that is left of it.
void add_span(Totals& totals, const PushedSpan& span, double steps, double kept, double unit_seconds,
              AbsentReason unseen, bool has_tensor, const GpuTime& gpu) {
  const double kept_seconds = unit_seconds * kept;
  const double present_seconds = static_cast<double>(span.present_steps) * kept_seconds;
  const double measured_seconds = static_cast<double>(span.measured_steps) * kept_seconds;
  totals.allocated_seconds += steps * unit_seconds;
  totals.clock_hertz_seconds += span.clock_hertz_sum * kept_seconds;
  totals.clock_known_seconds += static_cast<double>(span.clock_steps) * kept_seconds;
  totals.tensor_seconds += span.tensor_ratio_sum * kept_seconds;
  totals.tensor_known_seconds += measured_seconds;
  absent(totals, unseen) += steps * unit_seconds - present_seconds;
  absent(totals, has_tensor ? AbsentReason::kGap : AbsentReason::kNoTensorCounter) +=
      present_seconds - measured_seconds;
  if (!gpu.reference) {
    absent(totals, AbsentReason::kNoReferenceClock) += measured_seconds;
    return;
  }
  const double reference = gpu.reference->clock.value;
  totals.measured_seconds += measured_seconds;
  totals.tensor_measured_seconds += span.tensor_ratio_sum * kept_seconds;
  totals.delivered_seconds += span.tensor_clock_hertz_sum / reference * kept_seconds;
  // No sum of squares comes from the server: a^2 <= a * (the most that a can be) keeps the band on the safe side.
  const double tensor_max = catalog::info(catalog::Metric::kTensorActive).value_max;
  totals.clock_sensitivity_seconds2_per_hertz2 +=
      span.tensor_ratio_sum * tensor_max * (kept_seconds / reference) * (unit_seconds / reference);
}

// The variance comes ready-made, of all readings of the GPU; put as the successive differences that would give it.
void add_spread(const std::vector<const PushedSpan*>& spans, ClockSpread& spread) {
  const PushedSpan& span = *spans.front();
  if (!span.clock_variance_hertz2) return;
  std::uint64_t readings = 0;
  for (const PushedSpan* one : spans) readings += one->clock_steps;
  const std::uint64_t differences = std::max<std::uint64_t>(readings, 2) - 1;
  spread.difference_count += differences;
  spread.difference_sum_hertz2 += 2 * static_cast<double>(differences) * *span.clock_variance_hertz2;
}

// What one holder had, in one piece.
Portion& add_portion(GpuTime& gpu, std::optional<samples::HolderId> holder) {
  Portion& portion = gpu.portions.emplace_back();
  portion.holder = holder;
  portion.ends_total = 2;
  return portion;
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
  if (!has_tensor) quality.add("no_tensor_counter", gpu.gpu.host);
  const double weight = resolve_device(gpu, options, scraped_max, quality);
  double window_steps = std::round(options.integrate.window->length() / step);
  if (!gpu.gpu.mig_instance.empty()) window_steps = present_steps;
  std::vector<const PushedSpan*> holders;
  const PushedSpan nobody;
  const PushedSpan* free = &nobody;
  for (const PushedSpan* span : spans) {
    if (span->holder) {
      holders.push_back(span);
    } else {
      free = span;
    }
  }
  // The variance is of the GPU and repeated on each of its spans.
  add_spread(spans, gpu.spread);
  std::sort(holders.begin(), holders.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  const double unit_seconds = step.value * weight;
  gpu.step_seconds = unit_seconds;
  double held_steps = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const PushedSpan& span = *holders[i];
    const double present = static_cast<double>(span.present_steps);
    double steps = present, trimmed = 0;
    if (span.first && span.last) {
      if (gpu.gpu.mig_instance.empty()) steps = std::max(steps, (*span.last - *span.first) / step + 1);
      if (i + 1 < holders.size() && holders[i + 1]->first <= span.last) {
        trimmed = std::min(present, (*span.last - *holders[i + 1]->first) / step + 1);
      }
    }
    held_steps += steps - trimmed;
    gpu.holders_at_once_max = 1;
    add_span(add_portion(gpu, span.holder).totals, span, steps - trimmed,
             present > 0 ? (present - trimmed) / present : 1, unit_seconds, AbsentReason::kGap, has_tensor,
             gpu);
  }
  const double free_steps = window_steps - held_steps;
  if (free_steps > 0) {
    const double present = static_cast<double>(free->present_steps);
    add_span(add_portion(gpu, std::nullopt).totals, *free, free_steps, present > free_steps ? free_steps / present : 1,
             unit_seconds, AbsentReason::kNotSeen, has_tensor, gpu);
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
