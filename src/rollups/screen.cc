#include "rollups/screen.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/median.h"
#include "rollups/cadence.h"
#include "rollups/causes.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::Reading;

constexpr double kFrozenSecondsMin = 60;
constexpr double kFrozenSecondsMax = 600;
constexpr std::size_t kChangesMin = 4;
constexpr std::size_t kEnergyRun = 3;
constexpr std::size_t kRepeatRun = 10;
constexpr std::size_t kTensorRun = 20;

bool has_decimals(double value, double per_unit) {
  const double scaled = value * per_unit;
  return std::abs(scaled - std::round(scaled)) > 1e-6;
}

bool same_value(const GpuScrape& a, const GpuScrape& b, Metric metric) {
  const Reading &x = a.reading(metric), &y = b.reading(metric);
  return x.present() && y.present() && x.value() == y.value();
}

bool moves(const GpuScrape& a, const GpuScrape& b, Metric metric) {
  const Reading &x = a.reading(metric), &y = b.reading(metric);
  return x.present() && y.present() && x.value() != y.value();
}

// (b) of screen.h between two neighbours.
bool repeats_fine_readings(const GpuScrape& a, const GpuScrape& b) {
  int fine = 0;
  bool telling = false;
  constexpr Metric kFine[] = {Metric::kTensorActive, Metric::kPower, Metric::kDramActive,
                              Metric::kSmActive, Metric::kGraphicsEngineActive};
  for (const Metric metric : kFine) {
    if (!a.reading(metric).present() || !b.reading(metric).present()) continue;
    if (!same_value(a, b, metric)) return false;
    if (!has_decimals(a.reading(metric).value(), 100)) continue;
    ++fine;
    telling = telling || metric == Metric::kTensorActive || metric == Metric::kPower;
  }
  return fine >= 2 && telling;
}

// Marks tensor activity and cycle counters of scrapes [first, last].
void mark(std::vector<GpuScrape>& scrapes, std::size_t first, std::size_t last, AbsentReason reason) {
  for (std::size_t i = first; i <= last; ++i) {
    for (const Metric metric : {Metric::kTensorActive, Metric::kMmaCyclesActive}) {
      if (scrapes[i].saw(metric)) scrapes[i].reading(metric) = Absent{reason};
    }
  }
}

// Calls found(first, last) for each maximal run of neighbours for which `alike` holds.
template <typename Alike, typename Found>
void for_runs(const std::vector<GpuScrape>& scrapes, Alike alike, Found found) {
  std::size_t first = 0;
  for (std::size_t i = 1; i <= scrapes.size(); ++i) {
    if (i < scrapes.size() && alike(scrapes[i - 1], scrapes[i])) continue;
    if (i - first > 1) found(first, i - 1);
    first = i;
  }
}

// How long a run must last to be no mere slowness of the exporter: three times what is usual for this GPU, where
// enough changes were seen to tell.
template <typename Alike>
double frozen_seconds(const std::vector<GpuScrape>& scrapes, Alike alike) {
  std::vector<double> lengths;
  std::size_t first = 0;
  for (std::size_t i = 1; i < scrapes.size(); ++i) {
    if (alike(scrapes[i - 1], scrapes[i])) continue;
    lengths.push_back((scrapes[i].time - scrapes[first].time).value);
    first = i;
  }
  if (lengths.size() < kChangesMin) return kFrozenSecondsMax;
  return std::clamp(3 * *base::median(std::move(lengths)), kFrozenSecondsMin, kFrozenSecondsMax);
}

// Whether a scrape is to be counted; one without a time is.
bool is_noted(const samples::GpuTimeline& timeline, std::size_t i, const std::optional<units::Window>& window) {
  return !window || !timeline.has_times || window->contains(timeline.scrapes[i].time);
}

// How many it marked within the window.
std::uint64_t mark_frozen(samples::GpuTimeline& timeline, const std::optional<units::Window>& window) {
  auto& scrapes = timeline.scrapes;
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  const auto energy_stands = [](const GpuScrape& a, const GpuScrape& b) {
    // A counter that is always 0 is not supported, and one that stands while other readings move is alone.
    return same_value(a, b, Metric::kEnergy) && a.reading(Metric::kEnergy).value() > 0 &&
           !moves(a, b, Metric::kTensorActive) && !moves(a, b, Metric::kPower) &&
           !moves(a, b, Metric::kSmActive) && !moves(a, b, Metric::kDramActive);
  };
  const auto seconds = [&](std::size_t first, std::size_t last) {
    return (scrapes[last].time - scrapes[first].time).value;
  };
  const double energy_seconds = frozen_seconds(scrapes, energy_stands);
  for_runs(scrapes, energy_stands, [&](std::size_t first, std::size_t last) {
    if (last - first + 1 >= kEnergyRun && seconds(first, last) >= energy_seconds) runs.emplace_back(first, last);
  });
  const double repeat_seconds = frozen_seconds(scrapes, repeats_fine_readings);
  for_runs(scrapes, repeats_fine_readings, [&](std::size_t first, std::size_t last) {
    if (last - first + 1 >= kRepeatRun && seconds(first, last) >= repeat_seconds) runs.emplace_back(first, last);
  });
  const auto tensor_stands = [](const GpuScrape& a, const GpuScrape& b) {
    return same_value(a, b, Metric::kTensorActive) &&
           has_decimals(a.reading(Metric::kTensorActive).value(), 1e5);
  };
  for_runs(scrapes, tensor_stands, [&](std::size_t first, std::size_t last) {
    if (last - first + 1 < kTensorRun || seconds(first, last) < kFrozenSecondsMax) return;
    double low = 1e300, high = 0;
    for (std::size_t i = first; i <= last; ++i) {
      const Reading& power = scrapes[i].reading(Metric::kPower);
      if (!power.present()) return;
      low = std::min(low, power.value());
      high = std::max(high, power.value());
    }
    if (high > low * 1.05) runs.emplace_back(first, last);
  });
  std::uint64_t marked = 0;
  for (const auto& [first, last] : runs) {
    // The first scrape of a run was still live.
    mark(scrapes, first + 1, last, AbsentReason::kFrozen);
    for (std::size_t i = first + 1; i <= last; ++i) marked += is_noted(timeline, i, window);
  }
  return marked;
}

bool contradicts(const GpuScrape& s, const catalog::Device* device) {
  const Reading& tensor = s.reading(Metric::kTensorActive);
  if (!tensor.present() || tensor.value() != 0) return false;
  const auto is_zero = [&](Metric metric) {
    return s.reading(metric).present() && s.reading(metric).value() == 0;
  };
  const Reading& util = s.reading(Metric::kGpuUtil);
  if (util.present() && util.value() >= kContradictingUtilizationRatio && is_zero(Metric::kGraphicsEngineActive)) return true;
  const Reading& power = s.reading(Metric::kPower);
  const Reading& limit = s.reading(Metric::kPowerLimit);
  const double board_watts = limit.present()                             ? limit.value()
                             : device != nullptr && device->board_power ? device->board_power->value
                                                                         : 0;
  return board_watts > 0 && power.present() && power.value() > kContradictingPowerRatio * board_watts &&
         (is_zero(Metric::kGraphicsEngineActive) || is_zero(Metric::kSmActive));
}

// Suspicious, but a job without matrix work looks the same: noted, not excluded.
bool is_zero_while_busy(const GpuScrape& s, const catalog::Device* device) {
  const Reading &tensor = s.reading(Metric::kTensorActive), &sm = s.reading(Metric::kSmActive),
                &power = s.reading(Metric::kPower);
  return tensor.present() && tensor.value() == 0 && sm.present() && sm.value() > 0.8 &&
         power.present() && device != nullptr && device->board_power &&
         power.value() > 0.5 * device->board_power->value;
}

// Scrapes in which tensor activity is due and missing (or blank). Scrapes of another exporter between two
// tensor samples that are no more than one and a half steps apart are not among them.
std::vector<std::size_t> scrapes_lacking_tensor(const samples::GpuTimeline& timeline) {
  const auto& scrapes = timeline.scrapes;
  std::vector<units::Instant> times;
  for (const GpuScrape& s : scrapes) {
    if (s.reading(Metric::kTensorActive).present()) times.push_back(s.time);
  }
  const std::vector<units::Seconds> steps = local_cadence(times, units::Seconds(0));
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < scrapes.size(); ++i) {
    const Reading& tensor = scrapes[i].reading(Metric::kTensorActive);
    if (tensor.present()) continue;
    if (tensor.reason() == AbsentReason::kBlank) {
      out.push_back(i);
      continue;
    }
    if (tensor.reason() != AbsentReason::kNotSeen) continue;
    const auto next = std::lower_bound(times.begin(), times.end(), scrapes[i].time);
    const std::size_t near = std::min<std::size_t>(
        static_cast<std::size_t>(next - times.begin()), times.size() - 1);
    const double step_seconds = steps[near].value;
    const bool has_before = next != times.begin(), has_after = next != times.end();
    const double hole_seconds =
        has_before && has_after ? (*next - *(next - 1)).value
        : has_after             ? (*next - scrapes[i].time).value + step_seconds
                                : (scrapes[i].time - times.back()).value + step_seconds;
    if (hole_seconds > 1.5 * step_seconds) out.push_back(i);
  }
  return out;
}

// Kernels that wait for each other keep the utilisation at 100 % and do nothing.
bool looks_hung(const GpuScrape& s, const catalog::Device* device) {
  const Reading &tensor = s.reading(Metric::kTensorActive), &util = s.reading(Metric::kGpuUtil),
                &power = s.reading(Metric::kPower), &nvlink = s.reading(Metric::kNvlinkTx);
  const bool link_silent = !nvlink.present() || nvlink.value() < kSilentBytesPerSecond;
  return tensor.present() && tensor.value() == 0 && util.present() && util.value() >= 0.99 &&
         power.present() && device != nullptr && device->board_power &&
         power.value() < kIdlePowerRatio * device->board_power->value && link_silent;
}

}  // namespace

std::string gpu_label(const samples::GpuIdentity& gpu) {
  std::string label = gpu.host.empty() ? "" : gpu.host;
  if (!gpu.index.empty()) label += (label.empty() ? "gpu " : "/") + gpu.index;
  if (!gpu.uuid.empty()) label += (label.empty() ? "" : " ") + gpu.uuid;
  if (!gpu.mig_instance.empty()) label += " instance " + gpu.mig_instance;
  return label.empty() ? "a GPU without name" : label;
}

void screen_gpu(samples::GpuTimeline& timeline, const catalog::Device* device, samples::QualityLog& quality,
                const std::optional<units::Window>& window) {
  const std::string label = gpu_label(timeline.gpu);
  if (timeline.has_times) quality.add("frozen", label, mark_frozen(timeline, window));
  std::uint64_t contradicted = 0, zero_while_busy = 0, hung = 0;
  for (std::size_t i = 0; i < timeline.scrapes.size(); ++i) {
    const bool noted = is_noted(timeline, i, window);
    // Power and utilisation of a MIG GPU are of all its instances and contradict none of them.
    if (timeline.gpu.mig_instance.empty() && contradicts(timeline.scrapes[i], device)) {
      mark(timeline.scrapes, i, i, AbsentReason::kContradicted);
      contradicted += noted;
    } else if (noted && is_zero_while_busy(timeline.scrapes[i], device)) {
      ++zero_while_busy;
    }
    hung += noted && looks_hung(timeline.scrapes[i], device);
  }
  quality.add("contradicted", label, contradicted);
  quality.add("tensor_zero_while_busy", label, zero_while_busy);
  quality.add("possible_hang", label, hung);
}

void screen_host(std::span<samples::GpuTimeline* const> gpus, samples::QualityLog& quality,
                 const std::optional<units::Window>& window) {
  // GPUs of this host that have tensor activity at some time.
  std::vector<samples::GpuTimeline*> profiled;
  for (samples::GpuTimeline* gpu : gpus) {
    if (gpu->has_times && std::any_of(gpu->scrapes.begin(), gpu->scrapes.end(), [](const auto& s) {
          return s.reading(Metric::kTensorActive).present();
        })) {
      profiled.push_back(gpu);
    }
  }
  if (profiled.size() < 2) return;
  std::map<units::Instant, std::size_t> lost;  // how many of them lack it at each time
  std::vector<std::vector<std::size_t>> lacking;
  for (const samples::GpuTimeline* gpu : profiled) {
    lacking.push_back(scrapes_lacking_tensor(*gpu));
    for (const std::size_t i : lacking.back()) ++lost[gpu->scrapes[i].time];
  }
  std::uint64_t marked = 0;
  for (std::size_t g = 0; g < profiled.size(); ++g) {
    for (const std::size_t i : lacking[g]) {
      GpuScrape& s = profiled[g]->scrapes[i];
      if (lost[s.time] < profiled.size()) continue;
      s.reading(Metric::kTensorActive) = Absent{AbsentReason::kProfilerPause};
      marked += is_noted(*profiled[g], i, window);
    }
  }
  quality.add("profiler_pause", gpus.front()->gpu.host, marked);
}

}  // namespace flopsight::rollups
