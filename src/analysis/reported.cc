#include "analysis/reported.h"

#include <algorithm>
#include <vector>

#include "base/median.h"

namespace flopsight::analysis {
namespace {

using training_logs::Step;

// Fewer may be the start of a run alone.
constexpr std::size_t kAbovePeakStepsMin = 4;

bool is_above_peak(const Step& step) { return step.excluded == training_logs::Exclusion::kAbovePeak; }

struct Counts {
  bool above_peak_too = false;
  bool operator()(const Step& step) const { return !step.excluded || (above_peak_too && is_above_peak(step)); }
};

// Of what `value` gives of each used step.
template <typename Value>
std::optional<double> median_of(std::span<const Step> steps, Counts counts, Value value) {
  std::vector<double> values;
  for (const Step& step : steps) {
    if (!counts(step)) continue;
    if (const std::optional<double> found = value(step)) values.push_back(*found);
  }
  return base::median(std::move(values));
}

std::optional<double> implied_peak(const Step& step) {
  if (step.peak_flops_per_second) return step.peak_flops_per_second;
  if (!step.mfu_ratio || !step.flops_per_second_per_gpu || *step.mfu_ratio <= 0)
    return std::nullopt;
  return *step.flops_per_second_per_gpu / *step.mfu_ratio;
}

}  // namespace

bool all_above_peak(std::span<const Step> steps) {
  const auto above = std::count_if(steps.begin(), steps.end(), is_above_peak);
  return static_cast<std::size_t>(above) >= kAbovePeakStepsMin && std::none_of(steps.begin(), steps.end(), [](const Step& step) { return !step.excluded; });
}

Reported reported_of(std::string source, std::string format, std::span<const Step> steps) {
  Reported out;
  const Counts counts{all_above_peak(steps)};
  out.source = std::move(source);
  out.format = std::move(format);
  for (const Step& step : steps) {
    if (!counts(step)) {
      ++out.steps_excluded;
      continue;
    }
    ++out.steps_used;
    if (!step.time) continue;
    out.first = std::min(out.first.value_or(*step.time), *step.time);
    out.last = std::max(out.last.value_or(*step.time), *step.time);
  }
  out.mfu_ratio = median_of(steps, counts, [](const Step& step) { return step.mfu_ratio; });
  out.flops_per_second_per_gpu =
      median_of(steps, counts, [](const Step& step) { return step.flops_per_second_per_gpu; });
  out.tokens_per_second_per_gpu =
      median_of(steps, counts, [](const Step& step) { return step.tokens_per_second_per_gpu; });
  out.step_seconds = median_of(steps, counts, [](const Step& step) { return step.step_seconds; });
  out.peak_flops_per_second_implied = median_of(steps, counts, implied_peak);
  return out;
}

}  // namespace flopsight::analysis
