#pragma once
// What NVML says of this machine's GPUs, as dcgm-exporter would publish it: its names, units and labels, so that whatever reads a
// dcgm-exporter reads this. Beside them our own: OFU, why a GPU or a value is not there, and the clock that OFU is counted by.
// Pure: same input, same page.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catalog/devices.h"
#include "nvml/sampler.h"
#include "sources/process_owners.h"

namespace flopsight::app {

// Integrals since the start, exact however seldom they are read: the difference of the first over that of the second is OFU.
struct OfuTotals {
  double ofu_seconds = 0;
  double measured_seconds = 0;
};

// One GPU or MIG instance with what the driver does not know of it.
struct HostGpu {
  nvml::GpuSample sample;
  std::vector<sources::ProcessOwner> owners;  // distinct; more than one: the GPU is shared
  // Absent where activity, clock or the reference clock is.
  std::optional<double> ofu_ratio;
  std::optional<units::Hertz> reference_clock;
  std::string reference_source;
  OfuTotals totals;
};

struct HostGpus {
  std::string host;
  units::Instant time;
  bool driver = false;
  std::string problem;
  std::string processes_problem;
  std::string driver_version;
  std::uint64_t driver_restarts = 0;
  std::uint64_t samples_taken = 0;
  std::uint64_t owners_dropped = 0;  // past kOwnersMax of a GPU
  std::vector<HostGpu> gpus;
};
inline constexpr std::size_t kOwnersMax = 32;

// `stale`: the driver has not answered for longer than it should take. What was known then is not shown as if it were now.
std::string gpu_page(const HostGpus& gpus, bool stale);

// The part of the page that dcgm-exporter has as well, and which GPUs there are: what a service takes in.
std::string gpu_samples(const HostGpus& gpus);

// One line for people: "GPU 3 (GPU-…): no OFU: …"; empty where there is OFU.
std::string missing_ofu(const HostGpu& gpu);

}  // namespace flopsight::app
