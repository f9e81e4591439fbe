#include "sources/pushdown_gather.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace flopsight::sources {
namespace {

using samples::PushedSpan;
using units::Instant;
using units::Seconds;

jobs::LabelFacts facts_of(const jobs::LabelRules& rules, const std::vector<std::pair<std::string, std::string>>& labels) {
  std::vector<jobs::LabelView> views;
  for (const auto& [name, value] : labels) views.push_back({name, value});
  return rules.apply(views);
}

// From the first to the last of the steps, both included.
double extent_steps(Instant first, Instant last, Seconds step) { return (last - first) / step + 1; }

// `next` is what the same holder had under other labels afterwards; a series is held after its last sample, so that the two overlap by
// a step or two, which count once.
void append(PushedSpan& into, const PushedSpan& next, Seconds step) {
  const double steps = static_cast<double>(next.present_steps);
  const double twice = std::clamp(extent_steps(*next.first, *into.last, step), 0.0, steps);
  const double kept = steps > 0 ? (steps - twice) / steps : 1;
  const auto kept_steps = [&](std::uint64_t count) { return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * kept)); };
  into.present_steps += kept_steps(next.present_steps);
  into.measured_steps += kept_steps(next.measured_steps);
  into.clock_steps += kept_steps(next.clock_steps);
  into.tensor_clock_hertz_sum += next.tensor_clock_hertz_sum * kept;
  into.tensor_ratio_sum += next.tensor_ratio_sum * kept;
  into.clock_hertz_sum += next.clock_hertz_sum * kept;
  into.last = std::max(*into.last, *next.last);
  samples::fill_attributes(into.gpu, next.gpu);
}

// Holders of one GPU or instance that were there at the same time: their steps overlap between first and last, by more than a
// series is held after its last sample.
bool overlap(std::vector<const PushedSpan*> members, Seconds step, Seconds tolerance) {
  std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return *a->first < *b->first; });
  const PushedSpan* before = nullptr;
  for (const PushedSpan* span : members) {
    if (!span->holder) {
      // Idle time around jobs is no overlap; idle steps inside a job that has holes are.
      for (const PushedSpan* other : members) {
        if (!other->holder) continue;
        const bool has_holes = static_cast<double>(other->present_steps) < extent_steps(*other->first, *other->last, step) - 0.5;
        if (has_holes && *span->first + tolerance < *other->last && *other->first + tolerance < *span->last) return true;
      }
      continue;
    }
    if (before != nullptr && *span->first + tolerance < *before->last) return true;
    if (before == nullptr || *span->last > *before->last) before = span;
  }
  return false;
}

}  // namespace

std::vector<std::string> holder_label_names(const Plan& plan, const jobs::LabelRules& rules) {
  std::vector<std::string> names = {plan.gpu_label};
  for (const char* field : {"mig_instance", "user", "team"}) {
    const auto of_field = rules.names_of(field);
    names.insert(names.end(), of_field.begin(), of_field.end());
  }
  for (const jobs::HolderRule& rule : rules.holders()) {
    for (const std::string& name : {rule.job, rule.name_space, rule.container}) {
      if (!name.empty()) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

PushedGather::PushedGather(const Plan& plan, const jobs::LabelRules& rules) : plan_(plan), rules_(rules) {
  for (std::string& name : holder_label_names(plan, rules)) compared_.insert(std::move(name));
}

PushedGather::Gpu* PushedGather::gpu_of(const wire::ApiSeries& series) {
  std::string uuid;
  for (const auto& [name, value] : series.labels) {
    if (name == plan_.gpu_label) uuid = facts_of(rules_, {{name, value}}).gpu.uuid;
  }
  if (uuid.empty()) return nullptr;
  Gpu& gpu = gpus_[samples::normalized_uuid(uuid)];
  gpu.names.insert(uuid);
  return &gpu;
}

PushedGather::Sums* PushedGather::sums_of(const wire::ApiSeries& series) {
  Labels labels;
  for (const auto& label : series.labels) {
    if (compared_.count(label.first) > 0 && !label.second.empty()) labels.push_back(label);
  }
  std::sort(labels.begin(), labels.end());
  Gpu* gpu = gpu_of(series);
  if (gpu == nullptr) return nullptr;
  const auto [at, is_new] = sums_.try_emplace(std::move(labels));
  const jobs::LabelFacts facts = facts_of(rules_, series.labels);
  samples::GpuIdentity& known = at->second.span.gpu;
  if (is_new) {
    gpu->instances[facts.gpu.mig_instance].entries.push_back(&*at);
    known.mig_instance = facts.gpu.mig_instance;
  }
  samples::fill_attributes(known, facts.gpu);
  return &at->second;
}

void PushedGather::add_presence(const wire::ApiSeries& series, std::uint64_t steps) {
  if (Gpu* gpu = gpu_of(series)) gpu->instances[facts_of(rules_, series.labels).gpu.mig_instance].presence_steps += steps;
}

void PushedGather::add_variance(const wire::ApiSeries& series, double hertz2) {
  if (Gpu* gpu = gpu_of(series)) {
    gpu->variance_hertz2_sum += hertz2;
    ++gpu->variance_pieces;
  }
}

bool PushedGather::says_everything(const Gpu& gpu, Seconds step, Seconds tolerance) {
  if (gpu.names.size() > 1) return false;  // spelled in several ways, the server took it for several GPUs
  bool has_tensor = false;
  for (const auto& [instance, one] : gpu.instances) {
    for (const Entry* entry : one.entries) has_tensor = has_tensor || entry->second.tensor_steps > 0;
  }
  std::optional<Instant> first, last;  // of the instances
  bool has_holes = false;
  for (const auto& [instance, one] : gpu.instances) {
    if (gpu.is_divided() && instance.empty()) continue;
    if (one.entries.empty()) return false;
    std::uint64_t measured_steps = 0;
    double extent = 0;
    for (const Entry* entry : one.entries) {
      const Sums& sums = entry->second;
      // Where the counts agree, activity and clock were there at the same steps.
      if (has_tensor && (sums.tensor_steps != sums.measured_steps || sums.clock_steps != sums.measured_steps)) return false;
      if (!sums.span.first || !sums.span.last) return false;
      measured_steps += sums.clock_steps;
      extent += extent_steps(*sums.span.first, *sums.span.last, step);
      first = first ? std::min(*first, *sums.span.first) : *sums.span.first;
      last = last ? std::max(*last, *sums.span.last) : *sums.span.last;
    }
    if (one.presence_steps > measured_steps) return false;
    has_holes = has_holes || static_cast<double>(measured_steps) < extent - 0.5;
  }
  const auto whole = gpu.instances.find("");
  if (!gpu.is_divided() || whole == gpu.instances.end()) return !gpu.instances.empty();
  // Beside its instances the whole GPU has no time of its own; where it was there without them it has.
  if (has_holes || static_cast<double>(whole->second.presence_steps) > extent_steps(*first, *last, step) + tolerance / step) return false;
  const std::vector<const Entry*>& entries = whole->second.entries;
  return std::all_of(entries.begin(), entries.end(), [&](const Entry* entry) {
    const PushedSpan& span = entry->second.span;
    return span.first && span.last && !(*span.first + tolerance < *first) && !(*last + tolerance < *span.last);
  });
}

bool PushedGather::add_spans(const Gpu& gpu, jobs::HolderTable& holders, Seconds step, Seconds tolerance,
                             std::vector<PushedSpan>& out) const {
  std::vector<PushedSpan> spans;
  for (const auto& [instance, one] : gpu.instances) {
    if (gpu.is_divided() && instance.empty()) continue;
    std::map<std::int64_t, std::vector<PushedSpan>> by_holder;  // -1: nobody's
    for (const Entry* entry : one.entries) {
      const Sums& sums = entry->second;
      PushedSpan span = sums.span;
      span.gpu.uuid = *gpu.names.begin();
      const samples::Holder holder = facts_of(rules_, entry->first).holder;
      if (!holder.unallocated()) span.holder = holders.intern(holder);
      span.present_steps = span.clock_steps = sums.clock_steps;
      span.measured_steps = sums.measured_steps;
      if (gpu.variance_pieces > 0) span.clock_variance_hertz2 = gpu.variance_hertz2_sum / static_cast<double>(gpu.variance_pieces);
      by_holder[span.holder ? std::int64_t{*span.holder} : -1].push_back(std::move(span));
    }
    const std::size_t begin = spans.size();
    for (auto& [holder, parts] : by_holder) {
      std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return std::tie(*a.first, *a.last) < std::tie(*b.first, *b.last); });
      PushedSpan whole = parts.front();
      for (std::size_t i = 1; i < parts.size(); ++i) {
        if (*parts[i].first + tolerance < *whole.last) return false;
        append(whole, parts[i], step);
      }
      spans.push_back(std::move(whole));
    }
    std::vector<const PushedSpan*> members;
    for (std::size_t i = begin; i < spans.size(); ++i) members.push_back(&spans[i]);
    if (overlap(members, step, tolerance)) return false;
  }
  std::move(spans.begin(), spans.end(), std::back_inserter(out));
  return true;
}

PushdownResult PushedGather::take(jobs::HolderTable& holders, Seconds step, Seconds tolerance) {
  PushdownResult result;
  for (const auto& [uuid, gpu] : gpus_) {
    if (says_everything(gpu, step, tolerance) && add_spans(gpu, holders, step, tolerance, result.spans)) continue;
    GpuNames& names = result.need_raw[uuid];
    names.values = gpu.names;
    for (const auto& [instance, one] : gpu.instances) {
      for (const Entry* entry : one.entries) {
        if (names.host.empty()) names.host = entry->second.span.gpu.host;
      }
    }
  }
  return result;
}

}  // namespace flopsight::sources
