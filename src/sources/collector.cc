#include "sources/collector.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "samples/judge.h"

namespace flopsight::sources {
namespace {

using catalog::Metric;
using samples::GpuScrape;
using samples::Reading;

std::string place(std::string_view raw_metric, const samples::GpuIdentity& gpu) {
  std::string text(base::printable(raw_metric, 80));
  const std::string& name = gpu.uuid.empty() ? gpu.index : gpu.uuid;
  if (!name.empty()) text += " of " + name;
  if (!gpu.host.empty()) text += " on " + gpu.host;
  return text;
}

// Where scrapes without timestamps are kept until it is known whether the GPU has any with: before all times.
constexpr std::int64_t kUntimedBase = -(std::int64_t{1} << 61);
bool is_untimed(units::Instant t) { return t.unix_milliseconds < kUntimedBase / 2; }
// 1970 to 9999.
bool is_plausible(units::Instant t) {
  return t.unix_milliseconds >= 0 && t.unix_milliseconds < 253'402'300'800'000;
}

void fill(std::string& into, const std::string& from) {
  if (into.empty()) into = from;
}

// In the order of their times. Where a GPU has some, what came without one cannot be placed among them.
void put_in_order(samples::GpuTimeline& timeline) {
  std::vector<GpuScrape>& scrapes = timeline.scrapes;
  timeline.has_times = std::any_of(scrapes.begin(), scrapes.end(), [](const GpuScrape& s) { return !is_untimed(s.time); });
  if (timeline.has_times) std::erase_if(scrapes, [](const GpuScrape& s) { return is_untimed(s.time); });
  std::stable_sort(scrapes.begin(), scrapes.end(), [](const GpuScrape& a, const GpuScrape& b) { return a.time < b.time; });
}

// Adds what `from` has to `into`, scrape by scrape; both of one GPU.
void merge_scrapes(samples::GpuTimeline& into, samples::GpuTimeline&& from) {
  std::unordered_map<std::int64_t, std::size_t> at;
  for (std::size_t i = 0; i < into.scrapes.size(); ++i) {
    at.emplace(into.scrapes[i].time.unix_milliseconds, i);
  }
  for (GpuScrape& scrape : from.scrapes) {
    const auto same = at.find(scrape.time.unix_milliseconds);
    if (same == at.end()) {
      into.scrapes.push_back(std::move(scrape));
      continue;
    }
    GpuScrape& target = into.scrapes[same->second];
    for (std::size_t m = 0; m < catalog::kMetricCount; ++m) {
      const auto metric = static_cast<Metric>(m);
      if (!target.saw(metric)) target.reading(metric) = scrape.reading(metric);
    }
    for (const samples::HolderId id : scrape.holders) {
      if (std::find(target.holders.begin(), target.holders.end(), id) == target.holders.end()) {
        target.holders.push_back(id);
      }
    }
  }
  fill(into.gpu.model_raw, from.gpu.model_raw);
  fill(into.gpu.driver_version, from.gpu.driver_version);
  into.tensor_calibrated = into.tensor_calibrated && from.tensor_calibrated;
}

// Of a GPU that has neither a name nor an index.
std::string masked_key(std::string_view scope, const std::string& host) { return "m" + std::string(scope) + '\0' + host; }

}  // namespace

Collector::Collector(const jobs::LabelRules& rules, jobs::HolderTable& holders,
                     samples::QualityLog& quality)
    : rules_(rules), holders_(holders), quality_(quality) {
  owners_.use_names_of(rules);
}

Collector::BindingId Collector::bind(std::span<const jobs::LabelView> labels, std::string_view scope) {
  Binding binding;
  binding.facts = rules_.apply(labels);
  binding.scope = scope;
  const samples::GpuIdentity& gpu = binding.facts.gpu;
  if (!gpu.uuid.empty()) {
    binding.whole = "u" + samples::normalized_uuid(gpu.uuid);
  } else if (binding.facts.masked_uuid && gpu.index.empty()) {
    binding.whole = masked_key(scope, gpu.host);
  } else {
    binding.whole = "i" + (gpu.host.empty() ? std::string(scope) : gpu.host) + '\0' + gpu.index;
  }
  binding.key = binding.whole + '\0' + gpu.mig_instance;
  if (samples::is_instance_uuid(gpu.uuid)) binding.whole = samples::whole_gpu_key(gpu);
  for (const jobs::LabelView& label : labels) {
    if (label.name == "pipe" || label.name == "clock_type") {
      binding.pipe = label.value;
      binding.has_pipe = true;
    }
  }
  bindings_.push_back(std::move(binding));
  return static_cast<BindingId>(bindings_.size() - 1);
}

Collector::Gpu& Collector::gpu_of(Binding& binding) {
  if (binding.gpu < 0) {
    const auto [at, is_new] =
        gpu_by_key_.emplace(binding.key, static_cast<std::uint32_t>(gpus_.size()));
    if (is_new) {
      gpus_.emplace_back();
      if (!binding.whole.starts_with('m')) gpus_.back().whole = binding.whole;
      if (binding.facts.gpu.uuid.empty()) {
        const samples::GpuIdentity& gpu = binding.facts.gpu;
        const std::string host = gpu.host.empty() ? binding.scope : gpu.host;
        if (binding.facts.masked_uuid) {
          gpus_.back().masked_place = host + ", UUID masked" + (gpu.index.empty() ? "" : ", index " + gpu.index);
        } else {
          quality_.add("gpu_without_uuid", host + ", index " + gpu.index);
        }
      }
    }
    binding.gpu = at->second;
    samples::GpuIdentity& known = gpus_[at->second].timeline.gpu;
    const samples::GpuIdentity& seen = binding.facts.gpu;
    fill(known.uuid, seen.uuid);
    fill(known.mig_instance, seen.mig_instance);
    samples::fill_attributes(known, seen);
    if (binding.facts.exporter_pod) quality_.add("exporter_pod_ignored", seen.host);
    if (!binding.facts.holder.unallocated()) binding.holder = holders_.intern(binding.facts.holder);
  }
  return gpus_[static_cast<std::size_t>(binding.gpu)];
}

std::uint32_t Collector::row(Gpu& gpu, units::Instant time) {
  const auto [at, is_new] = gpu.row_at.emplace(
      time.unix_milliseconds, static_cast<std::uint32_t>(gpu.timeline.scrapes.size()));
  if (is_new) {
    gpu.timeline.scrapes.emplace_back();
    gpu.timeline.scrapes.back().time = time;
    gpu.util_is_devices.push_back(0);
  }
  return at->second;
}

void Collector::add(BindingId id, std::string_view raw_metric, units::Instant time, bool timed,
                    double raw) {
  if (raw_metric == kSimulatedMetric) {
    quality_.add("simulated", bindings_[id].scope);
    return;
  }
  Binding& binding = bindings_[id];
  if (!wanted_.empty() && wanted_.contains(raw_metric)) {
    keep_sample(binding, raw_metric, time, raw);
    return;
  }
  const catalog::MetricAlias* alias = catalog::find_alias(
      raw_metric, binding.has_pipe ? std::optional<std::string_view>(binding.pipe) : std::nullopt);
  const samples::GpuIdentity& gpu = binding.facts.gpu;
  const bool names_gpu = !gpu.uuid.empty() || binding.facts.masked_uuid;
  if (alias == nullptr) {
    const bool proves = names_gpu || (catalog::is_gpu_metric_name(raw_metric) && !gpu.index.empty());
    if (!proves) return;
    static constexpr catalog::MetricAlias kOther{"", Metric::kOther, 1, "", ""};
    alias = &kOther;
  } else if (!names_gpu && gpu.index.empty()) {
    return;  // a sum over a host or the fleet under a known name
  }
  if (timed && !is_plausible(time)) {
    quality_.add("out_of_range_time", place(raw_metric, gpu));
    return;
  }
  if (!timed) time.unix_milliseconds += kUntimedBase;
  if (rules_.ignores(raw_metric, gpu.driver_version)) {
    quality_.add("ignored_metric", raw_metric);
    return;
  }
  Gpu& target = gpu_of(binding);
  if (!alias->calibrated && alias->metric == Metric::kTensorActive) {
    target.timeline.tensor_calibrated = false;
  }
  const Reading reading = samples::judge(catalog::info(alias->metric), alias->scale, raw);
  if (!reading.present() && is_noted(time)) {
    quality_.add(samples::absent_reason_name(reading.reason()), place(raw_metric, gpu));
  }
  store(target, binding, *alias, time, reading);
}

bool Collector::is_noted(units::Instant time) const { return !noted_ || is_untimed(time) || noted_->contains(time); }

void Collector::keep_sample(Binding& binding, std::string_view metric, units::Instant time, double value) {
  if (binding.facts.holder.unallocated()) {
    quality_.add("reported_without_job", metric);
    return;
  }
  if (binding.holder < 0) binding.holder = holders_.intern(binding.facts.holder);
  auto at = kept_.find(metric);
  if (at == kept_.end()) at = kept_.emplace(metric, Kept::mapped_type{}).first;
  at->second[static_cast<samples::HolderId>(binding.holder)].emplace_back(time, value);
}

void Collector::store(Gpu& gpu, const Binding& binding, const catalog::MetricAlias& alias,
                      units::Instant time, const Reading& reading) {
  const std::uint32_t at = row(gpu, time);
  GpuScrape& scrape = gpu.timeline.scrapes[at];
  if (binding.holder >= 0) {
    const auto id = static_cast<samples::HolderId>(binding.holder);
    if (std::find(scrape.holders.begin(), scrape.holders.end(), id) == scrape.holders.end()) {
      scrape.holders.insert(std::lower_bound(scrape.holders.begin(), scrape.holders.end(), id), id);
    }
  }
  Reading& slot = scrape.reading(alias.metric);
  const catalog::MetricAlias*& first = gpu.first_alias[static_cast<std::size_t>(alias.metric)];
  if (first == nullptr) first = &alias;
  if (!scrape.saw(alias.metric)) {
    slot = reading;
    if (alias.per_process) gpu.util_is_devices[at] = binding.holder < 0;
    return;
  }
  if (alias.metric == Metric::kOther || alias.metric == Metric::kInfo) return;
  if (!slot.present()) {
    slot = reading;  // a value is better than a reason why there is none
  } else if (alias.per_process && reading.present()) {
    if (binding.holder < 0) {
      slot = reading;
      gpu.util_is_devices[at] = 1;
    } else if (gpu.util_is_devices[at] == 0) {
      slot = Reading(slot.value() + reading.value());
    }
  } else if (reading.present()) {
    // Averages of the same counters read through two paths differ in the last digits.
    const bool same = std::abs(slot.value() - reading.value()) <= 1e-6 * std::abs(slot.value()) + 1e-9;
    if ((same || first->raw_name == alias.raw_name) && is_noted(time)) {
      quality_.add(same ? "duplicate" : "conflicting_duplicate",
                   place(catalog::info(alias.metric).name, binding.facts.gpu));
    }
  }
}

void Collector::join_by_index() {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> with_uuid;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const samples::GpuIdentity& gpu = gpus_[i].timeline.gpu;
    if (!gpu.uuid.empty() && !gpu.host.empty() && !gpu.index.empty()) {
      with_uuid[{gpu.host, gpu.index}].push_back(i);
    }
  }
  for (Gpu& candidate : gpus_) {
    const samples::GpuIdentity& gpu = candidate.timeline.gpu;
    if (!gpu.uuid.empty() || gpu.host.empty() || gpu.index.empty()) continue;
    const auto same = with_uuid.find({gpu.host, gpu.index});
    if (same == with_uuid.end() || same->second.size() != 1) continue;
    merge_scrapes(gpus_[same->second.front()].timeline, std::move(candidate.timeline));
    candidate.timeline.scrapes.clear();
  }
}

// An exporter that says the index in one series only (nvidia_gpu_exporter's info) masks the name in all: where a host has one such GPU,
// the others are its series.
void Collector::join_masked() {
  std::map<std::string, std::set<std::size_t>> indexed;  // by the key that they would have without an index
  for (const Binding& binding : bindings_) {
    if (binding.gpu < 0 || !binding.facts.masked_uuid || binding.facts.gpu.index.empty()) continue;
    indexed[masked_key(binding.scope, binding.facts.gpu.host)].insert(static_cast<std::size_t>(binding.gpu));
  }
  for (const auto& entry : indexed) {
    const auto unnamed = gpu_by_key_.find(entry.first + '\0');
    if (unnamed == gpu_by_key_.end() || entry.second.size() != 1) continue;
    Gpu& from = gpus_[unnamed->second];
    merge_scrapes(gpus_[*entry.second.begin()].timeline, std::move(from.timeline));
    from.timeline.scrapes.clear();
  }
}

void Collector::give_to_instances() {
  std::map<std::string, std::vector<std::size_t>> instances;  // by their GPU
  std::map<std::string, std::size_t> parents;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const samples::GpuIdentity& gpu = gpus_[i].timeline.gpu;
    if (gpus_[i].whole.empty()) continue;
    if (gpu.mig_instance.empty()) {
      parents[gpus_[i].whole] = i;
    } else {
      instances[gpus_[i].whole].push_back(i);
    }
  }
  for (const auto& entry : instances) {
    const std::vector<std::size_t>& members = entry.second;
    const auto parent = parents.find(entry.first);
    if (parent == parents.end()) continue;
    samples::GpuTimeline& own = gpus_[parent->second].timeline;
    samples::GpuTimeline whole = own;
    // Before it was divided, or after, it is a GPU like any other.
    std::erase_if(own.scrapes, [&](const GpuScrape& scrape) {
      return std::any_of(members.begin(), members.end(), [&](std::size_t member) {
        return gpus_[member].row_at.count(scrape.time.unix_milliseconds) > 0;
      });
    });
    for (GpuScrape& scrape : whole.scrapes) {
      scrape.holders.clear();
      for (std::size_t m = 0; m < catalog::kMetricCount; ++m) {
        const auto metric = static_cast<Metric>(m);
        if (!catalog::info(metric).whole_gpu) scrape.reading(metric) = samples::Absent{};
      }
    }
    for (const std::size_t member : members) {
      // Only scrapes in which the instance itself was there.
      samples::GpuTimeline copy = whole;
      std::erase_if(copy.scrapes, [&](const GpuScrape& scrape) {
        return gpus_[member].row_at.count(scrape.time.unix_milliseconds) == 0;
      });
      merge_scrapes(gpus_[member].timeline, std::move(copy));
    }
  }
}

std::vector<samples::GpuTimeline> Collector::take() {
  join_by_index();
  join_masked();
  give_to_instances();
  std::vector<samples::GpuTimeline> out;
  for (Gpu& gpu : gpus_) {
    if (gpu.timeline.scrapes.empty()) continue;
    if (!gpu.masked_place.empty()) quality_.add("gpu_without_uuid", gpu.masked_place);
    put_in_order(gpu.timeline);
    out.push_back(std::move(gpu.timeline));
  }
  gpus_.clear();
  gpu_by_key_.clear();
  bindings_.clear();
  return out;
}

}  // namespace flopsight::sources
