#pragma once
// Samples this machine's GPUs once an interval, on a thread of its own, and says what it knows: the one source of `flopsight agent`,
// and of `flopsight serve` on a machine with GPUs and no exporter.
//
// Threads: one of its own; every function here may be called by any. A driver that hangs holds the thread, nobody else: pages say
// that they are stale, and stopping waits a few seconds for it, no more (for the sink it waits to its end).

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "catalog/devices.h"
#include "hostgpus/gpu_page.h"

namespace flopsight::app {

struct GpuWatchOptions {
  nvml::SamplerOptions nvml;
  sources::ProcessOwnersOptions owners;
  bool jobs = true;   // whose processes are on the GPUs
  std::string host;   // label; empty: the machine's name
  units::Seconds interval{1};
};

// Makes what is shown of one snapshot after another. Threads: one.
class GpuReader {
 public:
  // Errors: those of nvml::Sampler::open.
  static base::Result<std::unique_ptr<GpuReader>> open(GpuWatchOptions options, std::shared_ptr<const catalog::DeviceCatalog> catalog);
  const HostGpus& read(units::Instant now);
  const HostGpus& latest() const { return gpus_; }

 private:
  GpuReader(GpuWatchOptions options, std::shared_ptr<const catalog::DeviceCatalog> catalog);
  HostGpu host_gpu(const nvml::GpuSample& sample, units::Instant now);

  GpuWatchOptions options_;
  std::shared_ptr<const catalog::DeviceCatalog> catalog_;
  std::unique_ptr<nvml::Sampler> sampler_;
  sources::ProcessOwners owners_;
  std::map<std::string, OfuTotals> totals_;  // by UUID and instance, of those in the last snapshot
  HostGpus gpus_;
};

class GpuWatch {
 public:
  using Sink = std::function<void(const HostGpus& gpus)>;  // on the watch's thread

  // `reader` and `now` have to work from any thread. `sink` may be null.
  GpuWatch(std::unique_ptr<GpuReader> reader, units::Seconds interval, std::function<units::Instant()> now, Sink sink);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  std::string page() const;
  // Why there is nothing to show, or empty.
  std::string problem() const;
  HostGpus latest() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flopsight::app
