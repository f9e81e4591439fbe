#include "hostgpus/gpu_page.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "exposition_page.h"

namespace flopsight::app {
namespace {

using catalog::Metric;

// Names of dcgm-exporter's default-counters.csv and further fields of DCGM; metric and unit are those that the catalogue reads them by.
struct Name {
  std::string_view name;
  std::string_view help;
};

constexpr Name kNames[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "SM clock (in MHz)."},
    {"DCGM_FI_DEV_MAX_SM_CLOCK", "Maximum SM clock (in MHz)."},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."},
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "Power limit in force (in W)."},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ)."},
    {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "Why the clock is where it is (bits)."},
    {"DCGM_FI_DEV_GPU_UTIL", "Share of time that any kernel ran (in %)."},
    {"DCGM_FI_DEV_FB_USED", "Memory in use (in MiB)."},
    {"DCGM_FI_DEV_XID_ERRORS", "Last Xid error; 0: none since this process started."},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time that the graphics or compute engine is active."},
    {"DCGM_FI_PROF_SM_ACTIVE", "Ratio of cycles that an SM has a warp."},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "Ratio of resident warps to the maximum."},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles that a tensor pipe is active."},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles that the memory interface moves data."},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Ratio of cycles that the FP64 pipe is active."},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Ratio of cycles that the FP32 pipe is active."},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Ratio of cycles that the FP16 pipe is active."},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", "PCIe, sent by the GPU (in bytes/s)."},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", "PCIe, received by the GPU (in bytes/s)."},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLink, sent (in bytes/s)."},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLink, received (in bytes/s)."},
    {"DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", "SM cycles, idle or not."},
    {"DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", "SM cycles with a warp."},
    {"DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", "Cycles with any tensor pipe active."},
};

struct Published {
  std::string_view name;
  std::string_view help;
  Metric metric;
  double per_unit;  // published = ours * per_unit
  bool counter;
};

const std::vector<Published>& all_published() {
  static const std::vector<Published> kPublished = [] {
    std::vector<Published> out;
    for (const Name& name : kNames) {
      const catalog::MetricAlias* alias = catalog::find_alias(name.name, std::nullopt);
      FLOPSIGHT_CHECK(alias != nullptr);
      out.push_back({name.name, name.help, alias->metric, 1 / alias->scale, catalog::info(alias->metric).kind == catalog::MetricKind::kCounter});
    }
    return out;
  }();
  return kPublished;
}

std::string device_labels(const HostGpus& host, const HostGpu& gpu) {
  const samples::GpuIdentity& id = gpu.sample.gpu;
  std::string out = label("gpu", id.index) + label("UUID", id.uuid) + label("pci_bus_id", id.pci_bus_id);
  if (gpu.sample.minor_number) out += label("device", "nvidia" + std::to_string(*gpu.sample.minor_number));
  return out + label("modelName", id.model_raw) + label("GPU_I_PROFILE", id.mig_profile) + label("GPU_I_ID", id.mig_instance) +
         label("Hostname", host.host) + label("DCGM_FI_DRIVER_VERSION", id.driver_version);
}

// Labels that src/jobs reads. A pod that nobody names is known by its UID.
std::string owner_labels(const sources::ProcessOwner& owner) {
  return label("hpc_job", owner.slurm_job) + label("user", owner.slurm_user) + label("account", owner.slurm_account) +
         label("namespace", owner.name_space) + label("pod", owner.pod) + label("container", owner.container) + label("pod_uid", owner.pod_uid);
}

// As serve's own page names GPUs.
std::string own_labels(const HostGpus& host, const HostGpu& gpu) {
  const samples::GpuIdentity& id = gpu.sample.gpu;
  return label("uuid", id.uuid) + label("mig_instance", id.mig_instance) + label("host", host.host) + label("gpu", id.index);
}

double published_value(const Published& published, double value) {
  const double scaled = value * published.per_unit;
  // Six decimals, as DCGM prints; and the whole numbers that NVML gave are whole again.
  return published.counter ? std::round(scaled) : std::abs(scaled) < 1e9 ? std::round(scaled * 1e6) / 1e6 : scaled;
}

class Lines {
 public:
  Lines(const HostGpus& host, const HostGpu& gpu) : gpu_(gpu) {
    device_ = device_labels(host, gpu);
    for (const sources::ProcessOwner& owner : gpu.owners) owned_.push_back(joined(device_ + owner_labels(owner)));
    device_ = joined(std::move(device_));
  }
  void write(const Published& published, ExpositionPage& page) const {
    const nvml::Value& value = gpu_.sample.values[published.metric];
    // What a lost GPU still has is its last error.
    if (!value.present() || (gpu_.sample.absence && published.metric != Metric::kXid)) return;
    const double number = published_value(published, value.number());
    // Of a shared GPU every job gets a copy, as dcgm-exporter does. Utilization it gives to each process; here it is the device's.
    if (owned_.empty() || (published.metric == Metric::kGpuUtil && owned_.size() > 1)) {
      page.sample(number, device_);
      return;
    }
    for (const std::string& labels : owned_) page.sample(number, labels);
  }
  void write_up(bool known, ExpositionPage& page) const { page.sample(known && !gpu_.sample.absence ? 1 : 0, device_); }

 private:
  const HostGpu& gpu_;
  std::string device_;
  std::vector<std::string> owned_;
};

// `known`: as of now; otherwise only that there are such GPUs.
void add_samples(const HostGpus& host, bool known, ExpositionPage& page) {
  std::vector<Lines> lines;
  for (const HostGpu& gpu : host.gpus) lines.emplace_back(host, gpu);
  for (const Published& published : all_published()) {
    if (!known) break;
    page.family(published.name, published.counter ? "counter" : "gauge", published.help);
    for (const Lines& gpu : lines) gpu.write(published, page);
  }
  page.family("flopsight_gpu_up", "gauge", "1: the GPU answers; 0: it is known and does not");
  for (const Lines& gpu : lines) gpu.write_up(known, page);
}

void add_ofu(const HostGpus& host, ExpositionPage& page) {
  page.family("flopsight_gpu_ofu_ratio", "gauge", "OFU of the last interval; absent where it is not known");
  for (const HostGpu& gpu : host.gpus) {
    if (gpu.ofu_ratio) page.sample(std::round(*gpu.ofu_ratio * 1e6) / 1e6, joined(own_labels(host, gpu)));
  }
  page.family("flopsight_gpu_ofu_seconds_total", "counter", "OFU integrated over time since the start; over flopsight_gpu_measured_seconds_total it is mean OFU");
  for (const HostGpu& gpu : host.gpus) page.sample(gpu.totals.ofu_seconds, joined(own_labels(host, gpu)));
  page.family("flopsight_gpu_measured_seconds_total", "counter", "time for which OFU was known");
  for (const HostGpu& gpu : host.gpus) page.sample(gpu.totals.measured_seconds, joined(own_labels(host, gpu)));
  page.family("flopsight_gpu_reference_clock_hertz", "gauge", "the clock that OFU is counted by, and where it is from");
  for (const HostGpu& gpu : host.gpus) {
    if (gpu.reference_clock) page.sample(gpu.reference_clock->value, joined(own_labels(host, gpu) + label("source", gpu.reference_source)));
  }
}

void add_absences(const HostGpus& host, ExpositionPage& page) {
  page.family("flopsight_gpu_absent", "gauge", "1: there is no such value, and why (docs/agent.md)");
  for (const HostGpu& gpu : host.gpus) {
    const std::string labels = own_labels(host, gpu);
    if (gpu.sample.absence) {
      page.sample(1, joined(labels + label("metric", "gpu") + label("reason", nvml::absence_name(*gpu.sample.absence))));
      continue;
    }
    for (const Published& published : all_published()) {
      const nvml::Value& value = gpu.sample.values[published.metric];
      if (value.present()) continue;
      // Tensor activity stands for all activity that is missing for the same reason.
      const nvml::Value& tensor = gpu.sample.values[Metric::kTensorActive];
      const bool is_told = !tensor.present() && tensor.absence() == value.absence() && published.name.starts_with("DCGM_FI_PROF_");
      if (is_told && published.metric != Metric::kTensorActive) continue;
      page.sample(1, joined(labels + label("metric", catalog::info(published.metric).name) + label("reason", nvml::absence_name(value.absence()))));
    }
  }
  for (const HostGpu& gpu : host.gpus) {
    if (const std::string line = missing_ofu(gpu); !line.empty()) page.comment(line);
  }
  if (!host.processes_problem.empty()) page.comment("no jobs: " + host.processes_problem);
}

void add_agent(const HostGpus& host, bool stale, ExpositionPage& page) {
  page.one("flopsight_agent_driver_up", "gauge", "1: the NVIDIA driver answers", host.driver && !stale ? 1 : 0);
  if (!host.driver || stale) page.comment("no driver: " + (stale ? "NVML has not answered for longer than it should take" : host.problem));
  page.one("flopsight_agent_driver_restarts_total", "counter", "times that the driver went away", static_cast<double>(host.driver_restarts));
  page.one("flopsight_agent_samples_total", "counter", "samples taken", static_cast<double>(host.samples_taken));
  page.one("flopsight_agent_sample_timestamp_seconds", "gauge", "when the last one was taken (Unix time)", static_cast<double>(host.time.unix_milliseconds) / 1000);
  page.one("flopsight_agent_owners_dropped_total", "counter", "jobs of a GPU past the first 32, which are not shown", static_cast<double>(host.owners_dropped));
  page.one("process_resident_memory_bytes", "gauge", "resident memory", resident_bytes());
}

}  // namespace

std::string missing_ofu(const HostGpu& gpu) {
  const nvml::GpuSample& sample = gpu.sample;
  std::string who = "GPU " + sample.gpu.index;
  if (!sample.gpu.mig_instance.empty()) who += " instance " + sample.gpu.mig_instance;
  if (!sample.gpu.uuid.empty()) who += " (" + sample.gpu.uuid + ")";
  if (sample.absence) return who + ": nothing is known: " + std::string(nvml::absence_meaning(*sample.absence));
  if (gpu.ofu_ratio) return {};
  who += ": no OFU: ";
  if (sample.activity_absence) {
    const nvml::Absence why = *sample.activity_absence;
    if (why == nvml::Absence::kNotSupported) {
      return who + "NVML counts tensor activity (GPM) on Hopper and newer only; on " + sample.gpu.model_raw + " it takes a dcgm-exporter";
    }
    if (why == nvml::Absence::kNoFunction) return who + "driver " + sample.gpu.driver_version + " is older than NVML's counters (GPM), which came with 520";
    return who + "no tensor activity: " + std::string(nvml::absence_meaning(why));
  }
  if (!sample.values[Metric::kSmClock].present()) return who + "no SM clock: " + std::string(nvml::absence_meaning(sample.values[Metric::kSmClock].absence()));
  return who + sample.gpu.model_raw + " is not in the GPU catalogue, and NVML tells no maximum clock";
}

std::string gpu_samples(const HostGpus& host) {
  ExpositionPage page;
  add_samples(host, true, page);
  return page.take();
}

std::string gpu_page(const HostGpus& host, bool stale) {
  ExpositionPage page;
  // A driver that hangs is as good as one that is gone, but for what it said before.
  add_samples(host, !stale, page);
  if (!stale) {
    add_ofu(host, page);
    add_absences(host, page);
  }
  add_agent(host, stale, page);
  return page.take();
}

}  // namespace flopsight::app
