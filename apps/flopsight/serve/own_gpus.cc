#include "serve/own_gpus.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "base/json.h"
#include "serve/local_exporters.h"

namespace flopsight::app {
namespace {

constexpr const char* kTarget = "nvml";

GpuWatchOptions watch_options(const ServeConfig& config) {
  GpuWatchOptions options;
  options.nvml.library_path = config.nvml_library;
  options.owners.root = config.nvml_root;
  options.interval = config.nvml_interval;
  return options;
}

std::vector<std::string> notes_of(const HostGpus& gpus, units::Seconds interval) {
  std::vector<std::string> notes = {"this machine's " + std::to_string(gpus.gpus.size()) + " GPUs are read by NVML every " +
                                    base::json::number_text(interval.value) + " s (driver " + gpus.driver_version + "); nvml.use turns it off"};
  for (const HostGpu& gpu : gpus.gpus) {
    const std::string line = missing_ofu(gpu);
    if (!line.empty() && gpu.sample.activity_absence != nvml::Absence::kNotYetSampled) notes.push_back(line);
  }
  if (!gpus.processes_problem.empty()) notes.push_back("no jobs of this machine's GPUs: " + gpus.processes_problem);
  return notes;
}

// Lines that are no comments.
std::uint64_t samples_of(std::string_view text) {
  std::uint64_t samples = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] != '#') ++samples;
  }
  return samples;
}

}  // namespace

struct OwnGpus::State {
  Ingest& ingest;
  mutable std::mutex mutex;
  TargetHealth health;

  void take(const HostGpus& gpus) {
    const std::string text = gpu_samples(gpus);
    const base::Status taken = ingest.scrape(kTarget, {}, text, "", gpus.time);
    const std::scoped_lock lock(mutex);
    health.scraped = true;
    health.up = gpus.driver && taken.ok();
    health.last = gpus.time;
    health.samples = samples_of(text);
    health.error = !gpus.driver ? gpus.problem : taken.ok() ? "" : taken.error().message;
    health.failures = health.up ? 0 : health.failures + 1;
  }
};

OwnGpus::OwnGpus(std::shared_ptr<State> state, std::unique_ptr<GpuWatch> watch) : state_(std::move(state)), watch_(std::move(watch)) {}

base::Result<OwnGpus::Started> OwnGpus::start(const ServeConfig& config, bool is_scraping, std::shared_ptr<const catalog::DeviceCatalog> catalog,
                                              Ingest& ingest, std::function<units::Instant()> now) {
  const bool always = config.nvml_use == "yes";
  Started started;
  if (config.nvml_use == "no" || (is_scraping && !always)) return started;
  auto reader = GpuReader::open(watch_options(config), std::move(catalog));
  if (!reader.ok()) {
    if (always) return reader.error().within("nvml.use: yes");
    // Without a library this is a machine without GPUs, as most that run the service are.
    if (reader.error().code != base::ErrorCode::kNotFound) started.notes.push_back("this machine's GPUs are not read: " + reader.error().message);
    return started;
  }
  const HostGpus first = (*reader)->read(now());
  if (first.gpus.empty() && !always) return started;
  if (!always) {
    if (const auto exporters = discover_local(); !exporters.empty()) {
      started.notes.push_back("this machine's GPUs are not read, as an exporter answers at " + exporters.front().url +
                              "; give it to scrape.targets, or nvml.use: yes");
      return started;
    }
  }
  started.notes = notes_of(first, config.nvml_interval);
  auto state = std::shared_ptr<State>(new State{ingest, {}, {}});
  state->health.url = kTarget;
  state->health.labels = {{"host", first.host}};
  // Last, as its thread calls the rest.
  auto watch = std::make_unique<GpuWatch>(std::move(reader).value(), config.nvml_interval, std::move(now), [state](const HostGpus& gpus) { state->take(gpus); });
  started.gpus.reset(new OwnGpus(std::move(state), std::move(watch)));
  return started;
}

TargetHealth OwnGpus::health() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->health;
}

}  // namespace flopsight::app
