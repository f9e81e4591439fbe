#include "rollups/fleet.h"

#include <algorithm>
#include <map>
#include <set>

#include "rollups/cadence.h"
#include "rollups/fleet_internal.h"
#include "rollups/screen.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::AbsentReason;
using samples::GpuTimeline;

// Without a window, a fleet in which every GPU was seen at one point in time is a set of instants: hours
// would be an invention.
bool only_instants(const std::vector<GpuTimeline>& timelines) {
  return std::all_of(timelines.begin(), timelines.end(), [](const GpuTimeline& t) {
    return !t.has_times || t.scrapes.front().time == t.scrapes.back().time;
  });
}

std::optional<units::Hertz> scraped_max_clock(const GpuTimeline& timeline) {
  std::optional<units::Hertz> found;
  for (const samples::GpuScrape& s : timeline.scrapes) {
    if (s.reading(Metric::kSmClockMax).present()) {
      found = units::Hertz(s.reading(Metric::kSmClockMax).value());
    }
  }
  return found;
}

void screen_hosts(std::vector<GpuTimeline>& timelines, const FleetOptions& options,
                  samples::QualityLog& quality) {
  std::map<std::string, std::vector<GpuTimeline*>> hosts;
  for (GpuTimeline& timeline : timelines) {
    screen_gpu(timeline, options.catalog->find(timeline.gpu.model_raw), quality, options.integrate.window);
    hosts[timeline.gpu.host].push_back(&timeline);
  }
  for (const auto& [host, gpus] : hosts) screen_host(gpus, quality, options.integrate.window);
}

// The share of the whole GPU; nothing when it cannot be told.
std::optional<double> share_of(const samples::GpuIdentity& gpu, const catalog::Device* device) {
  if (gpu.mig_instance.empty()) return 1.0;
  const auto slices = gpu.mig_slices();
  if (!slices || device == nullptr || *slices > device->mig_slices()) return std::nullopt;
  return static_cast<double>(*slices) / device->mig_slices();
}

std::optional<units::Window> seen_window(const GpuTimeline& timeline, units::Seconds otherwise) {
  std::vector<units::Instant> times;
  for (const samples::GpuScrape& s : timeline.scrapes) times.push_back(s.time);
  if (times.empty()) return std::nullopt;
  return units::Window{times.front(), times.back() + local_cadence(times, otherwise).back()};
}

// Empty where they have nothing in common.
units::Window cut_to(units::Window window, const std::optional<units::Window>& limit) {
  if (!limit) return window;
  window.start = std::clamp(window.start, limit->start, limit->end);
  window.end = std::clamp(window.end, limit->start, limit->end);
  return window;
}

void widen(std::optional<units::Window>& window, const units::Window& other) {
  if (!window) {
    window = other;
    return;
  }
  window->start = std::min(window->start, other.start);
  window->end = std::max(window->end, other.end);
}

// Per host, as that is where an exporter's list of metrics is.
void note_without_tensor(const GpuTimeline& timeline, samples::QualityLog& quality) {
  const bool has = std::any_of(timeline.scrapes.begin(), timeline.scrapes.end(), [](const auto& s) {
    return s.saw(Metric::kTensorActive) || s.saw(Metric::kMmaCyclesActive);
  });
  if (!has && !timeline.scrapes.empty()) {
    quality.add("no_tensor_counter", timeline.gpu.host.empty() ? gpu_label(timeline.gpu) : timeline.gpu.host);
  }
}

GpuTime roll_gpu(const GpuTimeline& timeline, const FleetOptions& options,
                 const std::optional<units::Window>& fleet_window, bool is_divided,
                 const jobs::JobTable& jobs, jobs::HolderTable& holders, samples::QualityLog& quality) {
  GpuTime known;
  known.gpu = timeline.gpu;
  const double weight = resolve_device(known, options, scraped_max_clock(timeline), quality);
  IntegrateOptions integrate_options = options.integrate;
  integrate_options.window = fleet_window;
  if (is_divided && timeline.has_times) {
    // An instance exists from its first scrape to its last; so does the whole GPU before it was divided.
    const auto seen = seen_window(timeline, options.integrate.step_default);
    if (seen) integrate_options.window = cut_to(*seen, fleet_window);
  }
  GpuTime rolled = integrate(timeline, known.device, known.reference, weight, integrate_options, jobs,
                             holders, quality);
  if (rolled.holders_at_once_max > 1) quality.add("shared_gpu", gpu_label(timeline.gpu));
  return rolled;
}

}  // namespace

double resolve_device(GpuTime& gpu, const FleetOptions& options,
                      std::optional<units::Hertz> scraped_max_clock, samples::QualityLog& quality) {
  gpu.device = options.catalog->find(gpu.gpu.model_raw);
  if (gpu.device == nullptr) {
    if (gpu.gpu.model_raw.empty()) {
      quality.add("gpu_without_model", gpu_label(gpu.gpu));
    } else {
      quality.add("unknown_model", gpu.gpu.model_raw);
    }
  } else if (!gpu.device->tensor_peak_clock && !options.override_clock) {
    quality.add("model_without_clock", gpu.device->model);
  }
  gpu.reference = model::reference_clock(options.policy, options.override_clock, gpu.device,
                                         scraped_max_clock);
  const auto share = share_of(gpu.gpu, gpu.device);
  if (!share) quality.add("mig_profile_unknown", gpu_label(gpu.gpu) + " " + gpu.gpu.mig_profile);
  return share.value_or(0);
}

void add_mig_rests(Fleet& fleet) {
  struct Divided {
    const GpuTime* member = nullptr;  // one of them
    double seconds = 0;               // of the instances, and of the whole before it had some
  };
  std::map<std::string, Divided> divided;  // by GPU
  for (const GpuTime& gpu : fleet.gpus) {
    if (gpu.gpu.mig_instance.empty()) continue;
    if (std::string key = samples::whole_gpu_key(gpu.gpu); !key.empty()) divided[std::move(key)];
  }
  if (divided.empty()) return;
  for (const GpuTime& gpu : fleet.gpus) {
    const auto at = divided.find(samples::whole_gpu_key(gpu.gpu));
    if (at == divided.end()) continue;
    if (at->second.member == nullptr) at->second.member = &gpu;
    at->second.seconds += gpu.sum().allocated_seconds;
  }
  const double whole_seconds = !fleet.has_times ? 1.0 : fleet.window ? fleet.window->length().value : 0;
  for (const auto& entry : divided) {
    const GpuTime* member = entry.second.member;
    const double rest_seconds = whole_seconds - entry.second.seconds;
    if (rest_seconds < whole_seconds * 1e-9) continue;
    GpuTime rest;
    rest.gpu = member->gpu;
    rest.gpu.mig_instance.clear();
    rest.gpu.mig_profile.clear();
    rest.device = member->device;
    rest.reference = member->reference;
    rest.portions.emplace_back();
    rest.portions[0].totals.allocated_seconds = rest_seconds;
    rest.portions[0].totals.absent_seconds[static_cast<std::size_t>(AbsentReason::kUnsplitInstances)] =
        rest_seconds;
    fleet.rests.push_back(std::move(rest));
  }
}

void Fleet::append(Fleet other) {
  std::move(other.gpus.begin(), other.gpus.end(), std::back_inserter(gpus));
  std::move(other.rests.begin(), other.rests.end(), std::back_inserter(rests));
  has_times = has_times && other.has_times;
  if (other.window) widen(window, *other.window);
}

Fleet roll_fleet(std::vector<GpuTimeline> timelines, const FleetOptions& options,
                 const jobs::JobTable& jobs, jobs::HolderTable& holders,
                 samples::QualityLog& quality) {
  Fleet fleet;
  fleet.window = options.integrate.window;
  if (timelines.empty()) return fleet;
  const bool untimed = std::none_of(timelines.begin(), timelines.end(),
                                    [](const GpuTimeline& t) { return t.has_times; });
  if (untimed || (!options.integrate.window && only_instants(timelines))) {
    fleet.has_times = false;
    for (GpuTimeline& timeline : timelines) {
      if (timeline.has_times) quality.add("timestamps_ignored", gpu_label(timeline.gpu));
      timeline.has_times = false;
    }
  }
  for (GpuTimeline& timeline : timelines) {
    if (!fleet.has_times || timeline.has_times) continue;
    // Beside GPUs with times, a scrape without one says that the GPU is there and nothing of when.
    quality.add("untimed_scrape", gpu_label(timeline.gpu), timeline.scrapes.size());
    timeline.scrapes.clear();
    timeline.has_times = true;
  }
  screen_hosts(timelines, options, quality);
  if (fleet.has_times && !fleet.window) {
    // GPUs without a window of their own share the fleet's: one that came late or went early was not seen.
    for (const GpuTimeline& timeline : timelines) {
      if (!timeline.has_times) continue;
      if (const auto seen = seen_window(timeline, options.integrate.step_default)) {
        widen(fleet.window, *seen);
      }
    }
  }
  std::set<std::string> divided;  // GPUs with instances
  for (const GpuTimeline& timeline : timelines) {
    if (!timeline.gpu.mig_instance.empty()) divided.insert(samples::whole_gpu_key(timeline.gpu));
  }
  for (const GpuTimeline& timeline : timelines) {
    const std::string whole = divided.empty() ? "" : samples::whole_gpu_key(timeline.gpu);
    const bool is_divided = !timeline.gpu.mig_instance.empty() || (!whole.empty() && divided.count(whole) > 0);
    fleet.gpus.push_back(roll_gpu(timeline, options, fleet.window, is_divided, jobs, holders, quality));
    note_without_tensor(timeline, quality);
  }
  add_mig_rests(fleet);
  return fleet;
}

void add_unseen_gpus(Fleet& fleet, const FleetOptions& options, const jobs::JobTable& jobs,
                     jobs::HolderTable& holders, samples::QualityLog& quality) {
  std::set<std::pair<std::string, std::string>> added;
  std::set<std::string> hosts;  // of GPUs with samples
  for (const GpuTime& gpu : fleet.gpus) hosts.insert(std::string(jobs::short_host(gpu.gpu.host)));
  const auto add = [&](samples::GpuIdentity gpu, const jobs::JobRecord& record) {
    const bool known = std::any_of(fleet.gpus.begin(), fleet.gpus.end(), [&](const GpuTime& g) {
      return gpu.uuid.empty() ? g.gpu.index == gpu.index && jobs::same_host(g.gpu.host, gpu.host)
                              : samples::normalized_uuid(g.gpu.uuid) == samples::normalized_uuid(gpu.uuid);
    });
    if (known || !added.insert({gpu.uuid + gpu.host, gpu.index}).second) return;
    GpuTimeline timeline;
    timeline.gpu = std::move(gpu);
    timeline.has_times = fleet.has_times;
    if (!fleet.has_times) timeline.scrapes.emplace_back();
    IntegrateOptions integrate_options = options.integrate;
    integrate_options.window = fleet.window;
    const double weight = samples::is_instance_uuid(timeline.gpu.uuid) ? 0 : 1;
    if (weight == 0) quality.add("mig_profile_unknown", gpu_label(timeline.gpu));
    GpuTime unseen =
        integrate(timeline, nullptr, std::nullopt, weight, integrate_options, jobs, holders, quality);
    // Outside its jobs nothing says that the GPU is there.
    std::erase_if(unseen.portions, [](const Portion& p) { return !p.holder; });
    quality.add("not_seen", gpu_label(unseen.gpu) + " of job " + record.job);
    if (!unseen.portions.empty()) fleet.gpus.push_back(std::move(unseen));
  };
  for (const jobs::JobRecord& record : jobs.records()) {
    if (fleet.window && ((record.end && *record.end <= fleet.window->start) ||
                         (record.start && *record.start >= fleet.window->end))) {
      continue;
    }
    samples::GpuIdentity gpu;
    for (const std::string& uuid : record.gpu_uuids) {
      gpu.uuid = uuid;
      gpu.host = record.hosts.size() == 1 ? record.hosts[0] : "";
      add(gpu, record);
    }
    gpu.uuid.clear();
    for (const std::string& host : record.hosts) {
      // Once a host. Where no sample names its host, none of them says who is missing.
      const bool is_strange = hosts.size() > hosts.count("") && hosts.insert(std::string(jobs::short_host(host))).second;
      if (is_strange) quality.add("host_not_seen", host + " of job " + record.job);
      for (const std::string& index : record.gpu_indices) {
        gpu.host = host;
        gpu.index = index;
        add(gpu, record);
      }
    }
  }
}

}  // namespace flopsight::rollups
