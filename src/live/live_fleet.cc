#include "live/live_fleet.h"

#include <algorithm>
#include <cmath>

#include "base/room.h"
#include "base/text.h"
#include "rollups/screen.h"
#include "samples/judge.h"
#include "units/milliseconds.h"

namespace flopsight::live {
namespace {

using catalog::Metric;
using samples::AbsentReason;
using samples::Reading;

void fill(std::string& into, const std::string& from) {
  if (into.empty()) into = from;
}

bool is_alias_label(std::string_view name) { return name == "pipe" || name == "clock_type"; }

constexpr std::uint64_t kPlacesNoted = 3;  // as many as a quality entry shows

}  // namespace

MetricUse metric_use(std::string_view raw_metric) {
  MetricUse use;
  use.simulated = raw_metric == kSimulatedMetric;
  for (const catalog::MetricAlias& alias : catalog::metric_aliases()) {
    if (alias.raw_name != raw_metric) continue;
    use.alias = &alias;
    use.by_label = use.by_label || !alias.label_name.empty();
  }
  return use;
}

LiveFleet::LiveFleet(LiveOptions options, const jobs::LabelRules& rules,
                     samples::QualityLog& quality)
    : options_(std::move(options)), rules_(rules), quality_(quality) {}

std::optional<LabelSetId> LiveFleet::bind(std::span<const jobs::LabelView> labels,
                                          std::string_view scope) {
  if (label_set_count() >= options_.label_sets_max) return std::nullopt;
  Binding binding;
  binding.used_round = forget_round_;
  const jobs::LabelFacts facts = rules_.apply(labels);
  const samples::GpuIdentity& gpu = facts.gpu;
  const bool names_gpu = !gpu.uuid.empty() || facts.masked_uuid || !gpu.index.empty();
  if (names_gpu && gpus_.size() < options_.gpus_max) {
    binding.gpu = gpu_of(facts, scope);
    binding.has_gpu = true;
    if (!facts.holder.unallocated() && holders_.count() < options_.holders_max) {
      binding.holder = holders_.intern(facts.holder);
      binding.has_holder = true;
    }
    if (facts.exporter_pod) quality_.add("exporter_pod_ignored", gpu.host);
  }
  for (const jobs::LabelView& label : labels) {
    if (!is_alias_label(label.name)) continue;
    auto at = std::find(label_values_.begin(), label_values_.end(), label.value);
    // Of values past the first 250 nothing is known that we read.
    if (at == label_values_.end() && label_values_.size() < 250) {
      at = label_values_.insert(label_values_.end(), std::string(label.value));
    }
    if (at != label_values_.end()) {
      binding.label_value = static_cast<std::uint8_t>(at - label_values_.begin() + 1);
    }
  }
  if (!free_label_sets_.empty()) {
    const LabelSetId id = free_label_sets_.back();
    free_label_sets_.pop_back();
    bindings_[id] = binding;
    return id;
  }
  base::add_one(bindings_) = binding;
  return static_cast<LabelSetId>(bindings_.size() - 1);
}

GpuIndex LiveFleet::make_gpu(const std::string& key, const samples::GpuIdentity& identity) {
  const auto [index, is_new] = gpu_by_key_.emplace(base::hash128(key), static_cast<GpuIndex>(gpus_.size()));
  if (!is_new) return index;
  Gpu& gpu = base::add_one(gpus_);
  identities_.add(identity);
  gpu.has_uuid = !identity.uuid.empty();
  gpu.has_model = !identity.model_raw.empty();
  if (restore) {
    if (const auto closed = restore(identity)) {
      gpu.closed_until = closed->time.unix_milliseconds;
      gpu.opened = true;
      before_start_.emplace(index, closed->holders);
    }
  }
  if (const auto before = restore_divided && identity.mig_instance.empty() ? restore_divided(identity) : std::nullopt) {
    gpu.has_instances = true;
    Divided& divided = divided_[index];
    divided.rests_until = before->rests_until.unix_milliseconds;
    for (const auto& [start, microseconds] : before->open_microseconds) {
      divided.open_microseconds[start.unix_milliseconds] = microseconds;
      divided.newest = start.unix_milliseconds;
    }
  }
  return index;
}

void LiveFleet::learn(Gpu& gpu, const samples::GpuIdentity& seen) {
  samples::GpuIdentity known = identity_of(gpu);
  if (known.model_raw.empty() && !seen.model_raw.empty()) gpu.kind = 0;
  fill(known.uuid, seen.uuid);
  samples::fill_attributes(known, seen);
  if (!seen.driver_version.empty()) known.driver_version = seen.driver_version;
  identities_.replace(static_cast<std::size_t>(&gpu - gpus_.data()), known);
  gpu.has_uuid = !known.uuid.empty();
  gpu.has_model = !known.model_raw.empty();
}

// Identity is (UUID, instance); without a UUID, or with a masked one, host and index, which join a GPU with a UUID that has the same.
GpuIndex LiveFleet::gpu_of(const jobs::LabelFacts& facts, std::string_view scope) {
  const samples::GpuIdentity& seen = facts.gpu;
  const std::string whole_place = "i" + (seen.host.empty() ? std::string(scope) : seen.host) + '\0' + seen.index + '\0';
  const std::string place = whole_place + seen.mig_instance;
  const bool has_place = !seen.index.empty() && !(seen.host.empty() && scope.empty());
  std::string key;
  if (!seen.uuid.empty()) {
    key = "u" + samples::normalized_uuid(seen.uuid) + '\0' + seen.mig_instance;
  } else if (facts.masked_uuid && seen.index.empty()) {
    key = "m" + std::string(scope) + '\0' + seen.host + '\0' + seen.mig_instance;
  } else {
    key = place;
  }
  const auto known = gpu_by_key_.find(base::hash128(key));
  if (known) {
    learn(gpus_[*known], seen);
    return *known;
  }
  const auto same_place = has_place ? gpu_by_key_.find(base::hash128(place)) : std::nullopt;
  if (!seen.uuid.empty() && same_place && !gpus_[*same_place].has_uuid) {
    gpu_by_key_.emplace(base::hash128(key), *same_place);
    learn(gpus_[*same_place], seen);
    return *same_place;
  }
  // An exporter may say the index in one series only: those without it are of the first GPU of their host that has one.
  const std::string masked = "m" + std::string(scope) + '\0' + seen.host + '\0' + seen.mig_instance;
  const auto unnamed = facts.masked_uuid ? gpu_by_key_.find(base::hash128(masked)) : std::nullopt;
  if (unnamed && identities_.at(*unnamed).index.empty()) {
    gpu_by_key_.emplace(base::hash128(key), *unnamed);
    learn(gpus_[*unnamed], seen);
    return *unnamed;
  }
  const GpuIndex index = make_gpu(key, seen);
  if (facts.masked_uuid) gpu_by_key_.emplace(base::hash128(masked), index);
  if (seen.uuid.empty()) {
    quality_.add("gpu_without_uuid", rollups::gpu_label(seen));
  } else if (has_place) {
    gpu_by_key_.set(base::hash128(place), index);  // the latest GPU in the slot, after a replacement
  }
  const bool names_whole = !seen.uuid.empty() && !samples::is_instance_uuid(seen.uuid);
  if (!seen.mig_instance.empty() && seen.mig_instance != seen.uuid && (names_whole || has_place)) {
    const samples::GpuIdentity whole = samples::whole_gpu(seen);
    const GpuIndex parent =
        make_gpu(names_whole ? "u" + samples::normalized_uuid(seen.uuid) + '\0' : whole_place, whole);
    gpus_[index].parent = parent;
    gpus_[index].is_instance = true;
    gpus_[parent].has_instances = true;
    divided_[parent].instances.push_back(index);
  }
  return index;
}

const catalog::MetricAlias* LiveFleet::alias_of(const Binding& binding, const MetricUse& metric,
                                                std::string_view raw_metric) const {
  if (!metric.by_label) return metric.alias;
  std::optional<std::string_view> value;
  if (binding.label_value != 0) value = label_values_[binding.label_value - 1U];
  return catalog::find_alias(raw_metric, value);
}

AddResult LiveFleet::add(LabelSetId labels, const MetricUse& metric, std::string_view raw_metric,
                         units::Instant time, double raw, units::Instant now, std::uint32_t segment) {
  const auto said = [&](AddResult result) {
    ++counts_[static_cast<std::size_t>(result)];
    return result;
  };
  if (metric.simulated) {
    simulated_ = true;
    return said(AddResult::kKept);
  }
  Binding& binding = bindings_[labels];
  // Seldom written: it shares its line with others'.
  if (binding.used_round != forget_round_) binding.used_round = forget_round_;
  if (!binding.has_gpu) {
    return said(gpus_.size() >= options_.gpus_max ? AddResult::kLimit : AddResult::kNotOurs);
  }
  const catalog::MetricAlias* alias = alias_of(binding, metric, raw_metric);
  if (alias == nullptr) return said(AddResult::kNotOurs);
  Gpu& gpu = gpus_[binding.gpu];
  if (time.unix_milliseconds > now.unix_milliseconds + units::milliseconds(options_.future_max)) {
    return said(AddResult::kTooNew);
  }
  const std::int64_t slot = units::milliseconds(options_.slot);
  if (!gpu.opened) {
    // Samples arrive in no order at first; a slot and the late window before the first one are still open.
    gpu.closed_until = (time.unix_milliseconds - units::milliseconds(options_.late)) / slot * slot;
    gpu.opened = true;
  }
  if (time.unix_milliseconds < std::max(gpu.closed_until, std::int64_t{0})) {
    // What was refused the first time must not come back as context.
    const bool was_late = time.unix_milliseconds < gpu.newest - units::milliseconds(options_.late);
    if (!replaying_ || time.unix_milliseconds < 0 || was_late) return said(AddResult::kTooOld);
  }
  if (gpu.rows.size() >= options_.rows_per_gpu_max && time.unix_milliseconds > gpu.rows.back().unix_milliseconds()) {
    if (replaying_) drop_closed(gpu);
    if (gpu.rows.size() >= options_.rows_per_gpu_max) return said(AddResult::kRowsFull);
  }
  if (rules_.ignores_any() && rules_.ignores(raw_metric, identity_of(gpu).driver_version)) {
    quality_.add("ignored_metric", raw_metric);
    return said(AddResult::kNotOurs);
  }
  if (gpu.rows.empty() && !before_start_.empty()) continue_from_start(binding.gpu, time, segment);
  gpu.arrived_seconds = static_cast<std::uint32_t>(now.unix_milliseconds / 1000);
  gpu.away = false;
  gpu.newest = std::max(gpu.newest, time.unix_milliseconds);
  if (gpu.is_instance) {
    std::int64_t& newest = divided_.at(gpu.parent).newest;
    newest = std::max(newest, time.unix_milliseconds);
  }
  return said(store(gpu, binding, *alias, time.unix_milliseconds, raw, segment));
}

// A GPU that was silent as the process ended, so that no log has a row of it: its silence is time of whom it was with, as it would be had the process
// gone on. Of one that was not, the log has what was before its closed slots.
void LiveFleet::continue_from_start(GpuIndex index, units::Instant first, std::uint32_t segment) {
  const auto before = before_start_.find(index);
  if (before == before_start_.end()) return;
  Gpu& gpu = gpus_[index];
  // Its last sample held for a step, up to where it is closed.
  const std::int64_t step = units::milliseconds(options_.fleet.integrate.step_default);
  const std::int64_t last = gpu.closed_until - step;
  if (first.unix_milliseconds >= gpu.closed_until && last > 0) {
    gpu.rows.begin_after(last, step, static_cast<std::uint16_t>(segment)).holders = before->second;
  }
  before_start_.erase(before);
}

HolderSetId LiveFleet::holders_of(std::span<const samples::Holder> holders) {
  HolderSetId set = 0;
  for (const samples::Holder& holder : holders) set = with_holder(set, holders_.intern(holder));
  return set;
}

bool LiveFleet::is_told_by_another(const Gpu& gpu, const Binding& binding) const {
  if (gpu.speaks == 0) return false;
  const Binding& other = bindings_[gpu.speaks - 1];
  return &other != &binding && other.has_holder == binding.has_holder && other.holder == binding.holder;
}

AddResult LiveFleet::store(Gpu& gpu, const Binding& binding, const catalog::MetricAlias& alias,
                           std::int64_t time, double raw, std::uint32_t segment) {
  const Reading reading = samples::judge(catalog::info(alias.metric), alias.scale, raw);
  const bool is_stale = !reading.present() && reading.reason() == AbsentReason::kStale;
  // It ends its own series, and not that of a replica.
  if (is_stale && is_told_by_another(gpu, binding)) return AddResult::kKept;
  const std::size_t at = gpu.rows.touch(time, static_cast<std::uint16_t>(segment));
  PendingRow& row = gpu.rows.at(at);
  // A stale marker ends its series, and with it what its labels say: the holder's last sample was the one before.
  if (binding.has_holder && !is_stale) row.holders = with_holder(row.holders, binding.holder);
  if (alias.metric == Metric::kTensorActive || alias.metric == Metric::kMmaCyclesActive) gpu.has_tensor = true;
  if (alias.metric == Metric::kTensorActive && !alias.calibrated) gpu.calibrated = false;
  // By the samples' time: replicas send in batches of their own.
  if (reading.present() && alias.metric == Metric::kTensorActive && time >= gpu.newest) gpu.speaks = 1 + static_cast<std::uint32_t>(&binding - bindings_.data());
  if (!reading.present()) {
    const auto code = static_cast<std::size_t>(reading.reason());
    const bool names_place = ++absent_noted_[code] <= kPlacesNoted;
    quality_.add(samples::absent_reason_name(reading.reason()),
                 names_place ? std::string(alias.raw_name) + " of " + rollups::gpu_label(identity_of(gpu)) : "");
    const auto reason = static_cast<std::uint8_t>(code + 1);
    if (alias.metric == Metric::kTensorActive && row.tensor_reason() == 0) row.set_tensor_reason(reason);
    if (alias.metric == Metric::kSmClock && row.clock_reason() == 0) row.set_clock_reason(reason);
    return AddResult::kKept;
  }
  if (alias.metric == Metric::kSmClockMax) {
    const auto hertz = static_cast<float>(reading.value());
    if (hertz != gpu.scraped_max_clock_hertz) gpu.kind = 0;
    gpu.scraped_max_clock_hertz = hertz;
    return AddResult::kKept;
  }
  const auto slot = row_slot(alias.metric);
  if (!slot) return AddResult::kKept;  // the row says that the GPU is there
  if (!gpu.rows.has(at, *slot)) {
    gpu.rows.set(at, *slot, reading.value());
    if (alias.per_process) row.set_device_utilization(!binding.has_holder);
    return AddResult::kKept;
  }
  if (alias.per_process) {
    if (!binding.has_holder) {
      gpu.rows.set(at, *slot, reading.value());
      row.set_device_utilization(true);
      return AddResult::kKept;
    }
    return AddResult::kDuplicate;
  }
  if (!gpu.rows.same(at, *slot, reading.value())) quality_.add("conflicting_duplicate", "");
  return AddResult::kDuplicate;
}

HolderSetId LiveFleet::with_holder(HolderSetId set, samples::HolderId holder) {
  const std::uint64_t key = std::uint64_t{set} << 32 | holder;
  // A GPU's metrics come one after another, and all but the first find what the first left.
  if (key == last_key_) return last_set_;
  last_key_ = key;
  return last_set_ = looked_up(key);
}

HolderSetId LiveFleet::looked_up(std::uint64_t key) {
  const auto set = static_cast<HolderSetId>(key >> 32);
  const auto holder = static_cast<samples::HolderId>(key);
  const auto known = set_with_.find(key);
  if (known != set_with_.end()) return known->second;
  std::vector<samples::HolderId> members = holder_sets_[set];
  const auto place = std::lower_bound(members.begin(), members.end(), holder);
  HolderSetId result = set;
  if (place == members.end() || *place != holder) {
    members.insert(place, holder);
    const auto fresh = free_sets_.empty() ? static_cast<HolderSetId>(holder_sets_.size()) : free_sets_.back();
    const auto [at, is_new] = set_of_.emplace(members, fresh);
    if (is_new) {
      if (free_sets_.empty()) {
        holder_sets_.emplace_back();
      } else {
        free_sets_.pop_back();
      }
      holder_sets_[fresh] = std::move(members);
    }
    result = at->second;
  }
  set_with_.emplace(key, result);
  return result;
}

std::optional<units::Instant> LiveFleet::oldest_open() const {
  std::optional<units::Instant> oldest;
  for (const Gpu& gpu : gpus_) {
    if (gpu.rows.empty() || gpu.away || gpu.rows.back().unix_milliseconds() < gpu.closed_until) continue;
    const units::Instant open{std::max(gpu.closed_until, gpu.rows.front().unix_milliseconds())};
    oldest = std::min(oldest.value_or(open), open);
  }
  return oldest;
}

std::optional<std::uint32_t> LiveFleet::oldest_segment(std::uint32_t current_segment) const {
  std::optional<std::uint32_t> oldest;
  for (const Gpu& gpu : gpus_) {
    if (gpu.away) continue;
    for (std::size_t i = 0; i < gpu.rows.size(); ++i) {
      // Segments are kept modulo 2^16; none is older than that many.
      const auto back = static_cast<std::uint16_t>(static_cast<std::uint16_t>(current_segment) -
                                                   gpu.rows.at(i).log_segment);
      const std::uint32_t segment = current_segment - back;
      if (!oldest || segment < *oldest) oldest = segment;
    }
  }
  return oldest;
}

std::size_t LiveFleet::pending_row_count() const {
  std::size_t count = 0;
  for (const Gpu& gpu : gpus_) count += gpu.rows.size();
  return count;
}

std::size_t LiveFleet::memory_bytes() const {
  std::size_t bytes = bindings_.capacity() * sizeof(Binding) + gpus_.capacity() * sizeof(Gpu) + identities_.memory_bytes();
  for (const Gpu& gpu : gpus_) bytes += gpu.rows.memory_bytes();
  return bytes;
}

}  // namespace flopsight::live
