#include "hostgpus/gpu_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "model/ofu.h"

namespace flopsight::app {
namespace {

// NVML's calls take milliseconds; some seconds more than an interval are a driver that hangs.
constexpr double kStaleSeconds = 10;
constexpr double kStaleIntervals = 5;
constexpr auto kStopWait = std::chrono::seconds(5);

std::string machine_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

GpuReader::GpuReader(GpuWatchOptions options, std::shared_ptr<const catalog::DeviceCatalog> catalog)
    : options_(std::move(options)), catalog_(std::move(catalog)), owners_(options_.owners) {
  gpus_.host = options_.host.empty() ? machine_name() : options_.host;
}

base::Result<std::unique_ptr<GpuReader>> GpuReader::open(GpuWatchOptions options, std::shared_ptr<const catalog::DeviceCatalog> catalog) {
  std::unique_ptr<GpuReader> reader(new GpuReader(std::move(options), std::move(catalog)));
  FLOPSIGHT_ASSIGN_OR_RETURN(reader->sampler_, nvml::Sampler::open(reader->options_.nvml));
  return reader;
}

const HostGpus& GpuReader::read(units::Instant now) {
  const nvml::Snapshot& snapshot = sampler_->sample(now);
  gpus_.time = snapshot.time;
  gpus_.driver = snapshot.driver;
  gpus_.problem = snapshot.problem;
  gpus_.driver_version = snapshot.driver_version;
  gpus_.processes_problem = options_.jobs ? snapshot.processes_problem : "";
  gpus_.driver_restarts = snapshot.driver_restarts;
  ++gpus_.samples_taken;
  gpus_.gpus.clear();
  std::map<std::string, OfuTotals> totals;
  for (const nvml::GpuSample& sample : snapshot.gpus) {
    HostGpu gpu = host_gpu(sample, now);
    const std::string key = sample.gpu.uuid + '\0' + sample.gpu.index + '\0' + sample.gpu.mig_instance;
    gpu.totals = totals_[key];
    if (gpu.ofu_ratio) {
      gpu.totals.ofu_seconds += *gpu.ofu_ratio * sample.window.value;
      gpu.totals.measured_seconds += sample.window.value;
    }
    totals[key] = gpu.totals;
    gpus_.gpus.push_back(std::move(gpu));
  }
  totals_ = std::move(totals);
  return gpus_;
}

HostGpu GpuReader::host_gpu(const nvml::GpuSample& sample, units::Instant now) {
  HostGpu gpu;
  gpu.sample = sample;
  const nvml::Value& tensor = sample.values[catalog::Metric::kTensorActive];
  const nvml::Value& clock = sample.values[catalog::Metric::kSmClock];
  const nvml::Value& clock_max = sample.values[catalog::Metric::kSmClockMax];
  const auto reference = model::reference_clock(model::ReferencePolicy::kAuto, std::nullopt, catalog_->find(sample.gpu.model_raw),
                                                clock_max.present() ? std::optional(units::Hertz(clock_max.number())) : std::nullopt);
  if (reference) {
    gpu.reference_clock = reference->clock;
    gpu.reference_source = model::reference_source_name(reference->source);
  }
  if (reference && tensor.present() && clock.present() && !sample.absence) {
    gpu.ofu_ratio = model::ofu(units::Ratio(tensor.number()), units::Hertz(clock.number()), reference->clock).value;
  }
  if (!options_.jobs) return gpu;
  for (const nvml::Process& process : sample.processes) {
    sources::ProcessOwner owner = owners_.owner(process.pid, now);
    if (owner.empty() || std::find(gpu.owners.begin(), gpu.owners.end(), owner) != gpu.owners.end()) continue;
    if (gpu.owners.size() < kOwnersMax) {
      gpu.owners.push_back(std::move(owner));
    } else {
      ++gpus_.owners_dropped;
    }
  }
  // The driver lists processes in any order; labels should not change with it.
  std::sort(gpu.owners.begin(), gpu.owners.end());
  return gpu;
}

struct GpuWatch::State {
  std::unique_ptr<GpuReader> reader;
  units::Seconds interval;
  std::function<units::Instant()> now;
  Sink sink;
  mutable std::mutex mutex;
  std::condition_variable wake;
  HostGpus latest;
  bool stopping = false;
  bool stopped = false;
  bool telling = false;
  std::thread thread;

  bool stale() const { return now() - latest.time > units::Seconds(std::max(kStaleSeconds, kStaleIntervals * interval.value)); }

  void run() {
    // By the steady clock, so that the interval stays when the clock on the wall is set.
    const auto step = std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(interval.value));
    auto next = std::chrono::steady_clock::now() + step;
    std::unique_lock lock(mutex);
    while (!wake.wait_until(lock, next, [this] { return stopping; })) {
      // A clock that was set back must not make time run backwards.
      const units::Instant time = std::max(latest.time + units::Seconds(0.001), now());
      lock.unlock();
      const HostGpus& gpus = reader->read(time);
      lock.lock();
      if (stopping) break;
      latest = gpus;
      tell(lock);
      // What was missed is not made up for.
      next = std::max(next + step, std::chrono::steady_clock::now());
    }
    stopped = true;
    wake.notify_all();
  }
  void tell(std::unique_lock<std::mutex>& lock) {
    if (!sink) return;
    telling = true;
    lock.unlock();
    sink(latest);  // only this thread writes it
    lock.lock();
    telling = false;
  }
};

GpuWatch::GpuWatch(std::unique_ptr<GpuReader> reader, units::Seconds interval, std::function<units::Instant()> now, Sink sink)
    : state_(std::make_shared<State>()) {
  state_->reader = std::move(reader);
  state_->interval = interval;
  state_->now = std::move(now);
  state_->sink = std::move(sink);
  // So that there is something to show from the start. A second sample at once would be a mean over nothing.
  state_->latest = state_->reader->latest();
  if (state_->latest.samples_taken == 0) state_->latest = state_->reader->read(state_->now());
  // The thread holds the state, as it may outlive this.
  state_->thread = std::thread([state = state_] { state->run(); });
}

GpuWatch::~GpuWatch() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->wake.notify_all();
  bool stopped = false;
  do {
    stopped = state_->wake.wait_for(lock, kStopWait, [this] { return state_->stopped; });
  } while (!stopped && state_->telling);
  lock.unlock();
  if (stopped) {
    state_->thread.join();
  } else {
    state_->thread.detach();  // in a call of NVML that does not return
  }
}

std::string GpuWatch::page() const {
  const std::scoped_lock lock(state_->mutex);
  return gpu_page(state_->latest, state_->stale());
}

std::string GpuWatch::problem() const {
  const std::scoped_lock lock(state_->mutex);
  if (state_->stale()) return "NVML has not answered for longer than it should take";
  return state_->latest.driver ? "" : state_->latest.problem;
}

HostGpus GpuWatch::latest() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->latest;
}

}  // namespace flopsight::app
