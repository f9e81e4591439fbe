#include "training_logs/merge_steps.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/median.h"

namespace flopsight::training_logs {
namespace {

// What makes two tellings those of one step.
auto key_of(const Step& step) {
  const std::int64_t time = step.time ? step.time->unix_milliseconds : static_cast<std::int64_t>(step.source.offset_bytes);
  return std::tuple(step.attempt, step.step.has_value(), step.step.value_or(time), step.excluded.has_value());
}

}  // namespace

Step merge_steps(std::span<const Step> same) {
  FLOPSIGHT_CHECK(!same.empty());
  Step out = same.front();
  std::size_t most = 1;
  std::vector<double> values;
  for (const auto figure : kStepFigures) {
    values.clear();
    for (const Step& step : same) {
      if (step.*figure) values.push_back(*(step.*figure));
    }
    most = std::max(most, values.size());
    out.*figure = base::median(values);
  }
  for (const Step& step : same) {
    if (!out.time && step.time) {
      out.time = step.time;
      out.is_zone_assumed = step.is_zone_assumed;
    }
    if (!out.loss) out.loss = step.loss;
    if (!out.batch_samples) out.batch_samples = step.batch_samples;
  }
  out.ranks = static_cast<std::uint32_t>(most);
  if (same.size() > 1) out.rank.reset();
  return out;
}

std::optional<Exclusion> exclusion_of_figures(const Step& step) {
  if (step.mfu_ratio && *step.mfu_ratio > 1) return Exclusion::kAbovePeak;
  for (const auto figure : kStepFigures) {
    if (step.*figure && !(*(step.*figure) > 0)) return Exclusion::kNotYetKnown;
  }
  return std::nullopt;
}

std::vector<Step> merge_tellers(std::vector<std::vector<Step>> tellers) {
  if (tellers.size() == 1) return std::move(tellers.front());
  std::vector<Step> all;
  for (std::vector<Step>& steps : tellers) {
    all.insert(all.end(), std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
  }
  std::stable_sort(all.begin(), all.end(), [](const Step& a, const Step& b) { return key_of(a) < key_of(b); });
  std::vector<Step> out;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t end = first + 1;
    while (end < all.size() && key_of(all[end]) == key_of(all[first])) ++end;
    out.push_back(merge_steps(std::span(all).subspan(first, end - first)));
    first = end;
  }
  return out;
}

}  // namespace flopsight::training_logs
