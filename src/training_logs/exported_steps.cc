#include "training_logs/exported_steps.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/median.h"
#include "training_logs/merge_steps.h"
#include "units/milliseconds.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kLossPlace = std::size(kStepFigures);

}  // namespace

ExportedSteps::Added ExportedSteps::add(const samples::Holder& holder, const Step& sample, units::Instant now,
                                        std::uint32_t segment) {
  FLOPSIGHT_CHECK(sample.time.has_value());
  const std::int64_t time = sample.time->unix_milliseconds, slot_length = units::milliseconds(options_.slot);
  if (time < 0 || time > now.unix_milliseconds + units::milliseconds(options_.future_max)) return Added::kOutOfTime;
  const std::int64_t start = time / slot_length * slot_length;
  auto at = jobs_.find({holder.job, holder.name_space});
  if (at != jobs_.end() && start < at->second.closed_until) return Added::kOutOfTime;
  if (values_total_ >= options_.values_max) return Added::kLimit;
  if (at == jobs_.end()) {
    if (jobs_.size() >= options_.jobs_max) return Added::kLimit;
    at = jobs_.try_emplace({holder.job, holder.name_space}).first;
  }
  Job& job = at->second;
  job.newest = std::max(job.newest, time);
  job.arrived = std::max(job.arrived, now.unix_milliseconds);
  const auto [place, is_new] = job.slots.try_emplace(start);
  Slot& slot = place->second;
  if (is_new) slot.segment = segment;
  const auto keep = [&](std::size_t figure, double value) {
    slot.values.emplace_back(static_cast<std::uint8_t>(figure), value);
    ++values_total_;
  };
  for (std::size_t i = 0; i < std::size(kStepFigures); ++i) {
    if (const auto& value = sample.*kStepFigures[i]) keep(i, *value);
  }
  if (sample.loss) keep(kLossPlace, sample.loss->value);
  return Added::kKept;
}

Step ExportedSteps::step_of(std::int64_t end, const Slot& slot) const {
  Step step;
  step.time = units::Instant{end};
  std::size_t most = 1;
  for (std::size_t figure = 0; figure <= kLossPlace; ++figure) {
    std::vector<double> values;
    for (const auto& [place, value] : slot.values) {
      if (place == figure) values.push_back(value);
    }
    most = std::max(most, values.size());
    const std::optional<double> middle = base::median(std::move(values));
    if (!middle) continue;
    if (figure == kLossPlace) {
      step.loss = Loss{*middle};
    } else {
      step.*kStepFigures[figure] = middle;
    }
  }
  step.ranks = static_cast<std::uint32_t>(most);
  step.excluded = exclusion_of_figures(step);
  return step;
}

std::vector<ExportedSteps::OfJob> ExportedSteps::take(units::Instant now) {
  const std::int64_t slot_length = units::milliseconds(options_.slot), late = units::milliseconds(options_.late);
  std::vector<OfJob> out;
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = at->second;
    const bool is_idle = now.unix_milliseconds - job.arrived > units::milliseconds(options_.idle);
    std::vector<Step> steps;
    while (!job.slots.empty()) {
      const auto first = job.slots.begin();
      const std::int64_t end = first->first + slot_length;
      if (!is_idle && job.newest < end + late) break;
      values_total_ -= first->second.values.size();
      job.closed_until = end;
      steps.push_back(step_of(end, first->second));
      job.slots.erase(first);
    }
    if (!steps.empty()) out.push_back({at->first.first, at->first.second, std::move(steps)});
    // What was closed of it is forgotten with it, once nothing more can be expected.
    at = is_idle ? jobs_.erase(at) : std::next(at);
  }
  return out;
}

std::optional<std::uint32_t> ExportedSteps::oldest_segment() const {
  std::optional<std::uint32_t> oldest;
  for (const auto& [key, job] : jobs_) {
    for (const auto& [start, slot] : job.slots) oldest = std::min(oldest.value_or(slot.segment), slot.segment);
  }
  return oldest;
}

}  // namespace flopsight::training_logs
