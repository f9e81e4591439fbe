#include "catalog/metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <vector>

namespace flopsight::catalog {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// DCGM ratios may pass 1 by rounding; a tensor ratio above 1.02 is no reading.
constexpr double kRatioMax = 1.02;
// DCGM issue 152: SM_ACTIVE above 1 is seen on MIG instances; up to this it is kept.
constexpr double kSmRatioMax = 1.2;

constexpr std::array<MetricInfo, kMetricCount> kMetrics = {{
    {Metric::kTensorActive, "tensor_active_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "share of SM cycles in which a tensor pipe is active (DCGM 1004, GPM 5)"},
    {Metric::kSmActive, "sm_active_ratio", MetricKind::kWindowMean, 0, kSmRatioMax, false,
     "share of cycles an SM holds at least one warp, mean over SMs (DCGM 1002)"},
    {Metric::kSmOccupancy, "sm_occupancy_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "resident warps over the maximum (DCGM 1003)"},
    {Metric::kGraphicsEngineActive, "graphics_engine_active_ratio", MetricKind::kWindowMean, 0,
     kRatioMax, false, "share of time a context is bound and a pipe busy (DCGM 1001)"},
    {Metric::kDramActive, "dram_active_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "share of cycles the memory interface moves data (DCGM 1005)"},
    {Metric::kFp64Active, "fp64_active_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "FP64 pipe, without tensor work (DCGM 1006)"},
    {Metric::kFp32Active, "fp32_active_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "FP32 pipe (DCGM 1007)"},
    {Metric::kFp16Active, "fp16_active_ratio", MetricKind::kWindowMean, 0, kRatioMax, false,
     "FP16 pipe, without tensor work (DCGM 1008)"},
    {Metric::kGpuUtil, "gpu_utilization_ratio", MetricKind::kWindowMean, 0, kRatioMax, true,
     "share of time any kernel ran (DCGM 203); context only, 1 says nothing of efficiency"},
    {Metric::kSmClock, "sm_clock_hertz", MetricKind::kInstant, 1e6, 5e9, true,
     "SM clock when read (DCGM 100)"},
    {Metric::kSmClockMax, "sm_clock_max_hertz", MetricKind::kInstant, 1e8, 5e9, true,
     "maximum SM clock by NVML (DCGM 113)"},
    {Metric::kPower, "power_watts", MetricKind::kInstant, 0, 5000, true,
     "board power (DCGM 155)"},
    {Metric::kPowerLimit, "power_limit_watts", MetricKind::kInstant, 0, 5000, true,
     "enforced power limit (DCGM 164)"},
    {Metric::kEnergy, "energy_joules", MetricKind::kCounter, 0, 9e15, true,
     "energy since the driver was loaded (DCGM 156)"},
    {Metric::kEventReasons, "clock_event_reasons_bits", MetricKind::kInstant, 0, 4294967295.0, true,
     "why the clock is where it is, a bit mask (DCGM 112)"},
    {Metric::kTemperature, "temperature_celsius", MetricKind::kInstant, -50, 200, true,
     "GPU temperature (DCGM 150)"},
    {Metric::kFramebufferUsed, "framebuffer_used_bytes", MetricKind::kInstant, 0, 1e15, false,
     "memory in use (DCGM 252)"},
    {Metric::kPcieTx, "pcie_tx_bytes_per_second", MetricKind::kWindowMean, 0, 1e13, true,
     "PCIe sent (DCGM 1009)"},
    {Metric::kPcieRx, "pcie_rx_bytes_per_second", MetricKind::kWindowMean, 0, 1e13, true,
     "PCIe received (DCGM 1010)"},
    {Metric::kNvlinkTx, "nvlink_tx_bytes_per_second", MetricKind::kWindowMean, 0, 1e13, true,
     "NVLink sent (DCGM 1011)"},
    {Metric::kNvlinkRx, "nvlink_rx_bytes_per_second", MetricKind::kWindowMean, 0, 1e13, true,
     "NVLink received (DCGM 1012)"},
    {Metric::kXid, "xid_last", MetricKind::kInstant, 0, 100000, true, "last Xid error (DCGM 230)"},
    {Metric::kSmCyclesElapsed, "sm_cycles_elapsed_total", MetricKind::kCounter, 0, kInfinity, false,
     "SM cycles, idle or not (DCGM 1084)"},
    {Metric::kSmCyclesActive, "sm_cycles_active_total", MetricKind::kCounter, 0, kInfinity, false,
     "SM cycles with a warp (DCGM 1085)"},
    {Metric::kMmaCyclesActive, "mma_cycles_active_total", MetricKind::kCounter, 0, kInfinity, false,
     "cycles with any tensor pipe active (DCGM 1086)"},
    {Metric::kInfo, "gpu_info", MetricKind::kLabel, -kInfinity, kInfinity, false,
     "labels name the GPU"},
    {Metric::kOther, "other", MetricKind::kLabel, -kInfinity, kInfinity, false,
     "not used; proves that the GPU exists"},
}};

constexpr std::string_view kDcgm = "dcgm-exporter";
constexpr std::string_view kDcgm46 = "dcgm-exporter, DCGM 4.6 names";
constexpr std::string_view kDcgm1 = "dcgm-exporter 1.x";
constexpr std::string_view kSmi = "nvidia_gpu_exporter";
constexpr std::string_view kJobstats = "jobstats NVML/GPM exporter";
constexpr std::string_view kGpud = "gpud GPM";
constexpr std::string_view kRezolus = "rezolus GPM";
constexpr std::string_view kSlurmJob = "slurm-job-exporter";
constexpr std::string_view kAmd = "AMD device-metrics-exporter";
constexpr double kMebibyte = 1048576.0;

constexpr MetricAlias kAliases[] = {
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Metric::kTensorActive, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_TENSOR_UTIL_RATIO", Metric::kTensorActive, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_pipe_tensor_active", Metric::kTensorActive, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_any_tensor_util_percent", Metric::kTensorActive, 0.01, kJobstats, "percent"},
    {"accelerator_nvidia_gpm_gpu_any_tensor_util_percent", Metric::kTensorActive, 0.01, kGpud, "percent"},
    {"gpu_tensor_utilization", Metric::kTensorActive, 0.01, kRezolus, "percent", "pipe", "any"},
    {"gpu_tensor_utilization", Metric::kTensorActive, 0.01, kRezolus, "percent", "pipe", ""},
    {"slurm_job_tensor_gpu", Metric::kTensorActive, 0.01, kSlurmJob, "percent"},
    {"gpu_prof_tensor_active_percent", Metric::kTensorActive, 0.01, kAmd, "percent", {}, {}, false},
    {"amd_gpu_prof_tensor_active_percent", Metric::kTensorActive, 0.01, kAmd, "percent", {}, {}, false},
    {"DCGM_FI_PROF_SM_ACTIVE", Metric::kSmActive, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_SM_UTIL_RATIO", Metric::kSmActive, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_sm_active", Metric::kSmActive, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_sm_util_percent", Metric::kSmActive, 0.01, kJobstats, "percent"},
    {"gpu_sm_utilization", Metric::kSmActive, 0.01, kRezolus, "percent"},
    {"uuid:ceems_gpu_sm_active:ratio", Metric::kSmActive, 0.01, "CEEMS rules", "percent"},
    {"slurm_job_utilization_gpu", Metric::kGpuUtil, 0.01, kSlurmJob, "percent"},
    {"DCGM_FI_PROF_SM_OCCUPANCY", Metric::kSmOccupancy, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_SM_OCCUPANCY_RATIO", Metric::kSmOccupancy, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_sm_occupancy", Metric::kSmOccupancy, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_sm_occupancy_percent", Metric::kSmOccupancy, 0.01, kJobstats, "percent"},
    {"accelerator_nvidia_gpm_gpu_sm_occupancy_percent", Metric::kSmOccupancy, 0.01, kGpud, "percent"},
    {"gpu_sm_occupancy", Metric::kSmOccupancy, 0.01, kRezolus, "percent"},
    {"slurm_job_sm_occupancy_gpu", Metric::kSmOccupancy, 0.01, kSlurmJob, "percent"},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", Metric::kGraphicsEngineActive, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", Metric::kGraphicsEngineActive, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_gr_engine_active", Metric::kGraphicsEngineActive, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_graphics_util_percent", Metric::kGraphicsEngineActive, 0.01, kJobstats, "percent"},
    {"DCGM_FI_PROF_DRAM_ACTIVE", Metric::kDramActive, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_DRAM_UTIL_RATIO", Metric::kDramActive, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_dram_active", Metric::kDramActive, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_dram_bw_util_percent", Metric::kDramActive, 0.01, kJobstats, "percent"},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", Metric::kFp64Active, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_FP64_UTIL_RATIO", Metric::kFp64Active, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_pipe_fp64_active", Metric::kFp64Active, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_fp64_util_percent", Metric::kFp64Active, 0.01, kJobstats, "percent"},
    {"slurm_job_fp64_gpu", Metric::kFp64Active, 0.01, kSlurmJob, "percent"},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", Metric::kFp32Active, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_FP32_UTIL_RATIO", Metric::kFp32Active, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_pipe_fp32_active", Metric::kFp32Active, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_fp32_util_percent", Metric::kFp32Active, 0.01, kJobstats, "percent"},
    {"slurm_job_fp32_gpu", Metric::kFp32Active, 0.01, kSlurmJob, "percent"},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", Metric::kFp16Active, 1, kDcgm, "ratio"},
    {"DCGM_FI_PROF_FP16_UTIL_RATIO", Metric::kFp16Active, 1, kDcgm46, "ratio"},
    {"dcgm_fi_prof_pipe_fp16_active", Metric::kFp16Active, 1, kDcgm1, "ratio"},
    {"nvidia_gpu_fp16_util_percent", Metric::kFp16Active, 0.01, kJobstats, "percent"},
    {"slurm_job_fp16_gpu", Metric::kFp16Active, 0.01, kSlurmJob, "percent"},
    {"DCGM_FI_DEV_GPU_UTIL", Metric::kGpuUtil, 0.01, kDcgm, "percent", {}, {}, true, true},
    {"DCGM_FI_DEV_GPU_UTIL_RATIO", Metric::kGpuUtil, 0.01, kDcgm46, "percent", {}, {}, true, true},
    {"dcgm_gpu_utilization", Metric::kGpuUtil, 0.01, kDcgm1, "percent"},
    {"nvidia_smi_utilization_gpu_ratio", Metric::kGpuUtil, 1, kSmi, "ratio"},
    {"nvidia_gpu_duty_cycle", Metric::kGpuUtil, 0.01, kJobstats, "percent"},
    {"gpu_usage", Metric::kGpuUtil, 0.01, kAmd, "percent"},
    {"gpu_gfx_activity", Metric::kGpuUtil, 0.01, kAmd, "percent"},
    {"amd_gpu_gfx_activity", Metric::kGpuUtil, 0.01, kAmd, "percent"},
    {"DCGM_FI_DEV_SM_CLOCK", Metric::kSmClock, 1e6, kDcgm, "MHz"},
    {"DCGM_FI_DEV_SM_CLOCK_MHZ", Metric::kSmClock, 1e6, kDcgm46, "MHz"},
    {"dcgm_sm_clock", Metric::kSmClock, 1e6, kDcgm1, "MHz"},
    {"nvidia_smi_clocks_current_sm_clock_hz", Metric::kSmClock, 1, kSmi, "Hz"},
    {"nvidia_smi_clocks_sm_hz", Metric::kSmClock, 1, kSmi, "Hz"},
    {"nvidia_gpu_sm_clock_mhz", Metric::kSmClock, 1e6, kJobstats, "MHz"},
    {"gpu_clock", Metric::kSmClock, 1e6, kAmd, "MHz", "clock_type", "GPU_CLOCK_TYPE_SYSTEM", false},
    {"DCGM_FI_DEV_MAX_SM_CLOCK", Metric::kSmClockMax, 1e6, kDcgm, "MHz"},
    {"nvidia_smi_clocks_max_sm_clock_hz", Metric::kSmClockMax, 1, kSmi, "Hz"},
    {"nvidia_smi_clocks_max_sm_hz", Metric::kSmClockMax, 1, kSmi, "Hz"},
    {"DCGM_FI_DEV_POWER_USAGE", Metric::kPower, 1, kDcgm, "W"},
    {"DCGM_FI_DEV_BOARD_POWER_WATTS", Metric::kPower, 1, kDcgm46, "W"},
    {"dcgm_power_usage", Metric::kPower, 1, kDcgm1, "W"},
    {"nvidia_smi_power_draw_watts", Metric::kPower, 1, kSmi, "W"},
    {"nvidia_gpu_power_usage_milliwatts", Metric::kPower, 0.001, kJobstats, "mW"},
    {"slurm_job_power_gpu", Metric::kPower, 0.001, kSlurmJob, "mW"},
    {"gpu_power_usage", Metric::kPower, 1, kAmd, "W"},
    {"gpu_average_package_power", Metric::kPower, 1, kAmd, "W"},
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Metric::kPowerLimit, 1, kDcgm, "W"},
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", Metric::kPowerLimit, 1, kDcgm, "W"},
    {"nvidia_smi_enforced_power_limit_watts", Metric::kPowerLimit, 1, kSmi, "W"},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Metric::kEnergy, 0.001, kDcgm, "mJ"},
    {"dcgm_total_energy_consumption", Metric::kEnergy, 0.001, kDcgm1, "mJ"},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Metric::kEventReasons, 1, kDcgm, "bits"},
    {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Metric::kEventReasons, 1, kDcgm46, "bits"},
    {"nvidia_smi_clocks_event_reasons_active", Metric::kEventReasons, 1, kSmi, "bits"},
    {"nvidia_smi_clocks_throttle_reasons_active", Metric::kEventReasons, 1, kSmi, "bits"},
    {"DCGM_FI_DEV_GPU_TEMP", Metric::kTemperature, 1, kDcgm, "C"},
    {"dcgm_gpu_temp", Metric::kTemperature, 1, kDcgm1, "C"},
    {"nvidia_smi_temperature_gpu", Metric::kTemperature, 1, kSmi, "C"},
    {"DCGM_FI_DEV_FB_USED", Metric::kFramebufferUsed, kMebibyte, kDcgm, "MiB"},
    {"dcgm_fb_used", Metric::kFramebufferUsed, kMebibyte, kDcgm1, "MiB"},
    {"nvidia_smi_memory_used_bytes", Metric::kFramebufferUsed, 1, kSmi, "bytes"},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", Metric::kPcieTx, 1, kDcgm, "bytes/s"},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", Metric::kPcieRx, 1, kDcgm, "bytes/s"},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", Metric::kNvlinkTx, 1, kDcgm, "bytes/s"},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", Metric::kNvlinkRx, 1, kDcgm, "bytes/s"},
    {"DCGM_FI_DEV_XID_ERRORS", Metric::kXid, 1, kDcgm, "code"},
    {"dcgm_xid_errors", Metric::kXid, 1, kDcgm1, "code"},
    {"DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", Metric::kSmCyclesElapsed, 1, kDcgm46, "cycles"},
    {"DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", Metric::kSmCyclesActive, 1, kDcgm46, "cycles"},
    {"DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", Metric::kMmaCyclesActive, 1, kDcgm46, "cycles"},
    {"nvidia_smi_gpu_info", Metric::kInfo, 1, kSmi, "-"},
    {"flopsight_gpu_up", Metric::kInfo, 1, "flopsight agent", "-"},
};

struct AliasIndex {
  std::vector<const MetricAlias*> by_name;  // sorted by raw_name, ties in table order
  AliasIndex() {
    for (const MetricAlias& alias : kAliases) by_name.push_back(&alias);
    std::stable_sort(by_name.begin(), by_name.end(), [](const auto* a, const auto* b) {
      return a->raw_name < b->raw_name;
    });
  }
};

std::string_view kind_text(MetricKind kind) {
  switch (kind) {
    case MetricKind::kWindowMean: return "mean since the last reading";
    case MetricKind::kInstant: return "instant";
    case MetricKind::kCounter: return "counter";
    case MetricKind::kLabel: return "labels";
  }
  return "";
}

}  // namespace

std::span<const MetricInfo> metrics() { return kMetrics; }
std::span<const MetricAlias> metric_aliases() { return kAliases; }

const MetricAlias* find_alias(std::string_view raw_name,
                              const std::optional<std::string_view>& pipe_label) {
  static const AliasIndex index;
  auto at = std::lower_bound(
      index.by_name.begin(), index.by_name.end(), raw_name,
      [](const MetricAlias* alias, std::string_view name) { return alias->raw_name < name; });
  for (; at != index.by_name.end() && (*at)->raw_name == raw_name; ++at) {
    if ((*at)->label_name.empty() || pipe_label.value_or("") == (*at)->label_value) return *at;
  }
  return nullptr;
}

bool is_gpu_metric_name(std::string_view raw_name) {
  for (const std::string_view prefix : {"DCGM_FI_", "DCGM_EXP_", "dcgm_", "nvidia_smi_", "nvidia_gpu_"}) {
    if (raw_name.starts_with(prefix)) return true;
  }
  return false;
}

std::string metrics_markdown() {
  std::string out =
      "# Metrics and the names they come under\n\n"
      "Printed by `flopsight docs metrics` from one table in the program; a test fails when this page is\n"
      "stale. Units are decided by the name alone. The raw value times *scale* is the value in our unit.\n"
      "A value outside the physical range is excluded and counted, never clamped.\n\n"
      "| quantity | kind | range | meaning |\n| --- | --- | --- | --- |\n";
  for (const MetricInfo& metric : kMetrics) {
    if (metric.kind == MetricKind::kLabel) continue;
    char range[64];
    std::snprintf(range, sizeof range, "%g to %g", metric.value_min, metric.value_max);
    out += "| `" + std::string(metric.name) + "` | " + std::string(kind_text(metric.kind)) + " | " +
           range + " | " + std::string(metric.meaning) +
           (metric.whole_gpu ? "; belongs to the whole GPU under MIG" : "") + " |\n";
  }
  out += "\n| name in the scrape | quantity | raw unit | scale | exporter |\n"
         "| --- | --- | --- | --- | --- |\n";
  for (const MetricAlias& alias : kAliases) {
    char scale[32];
    std::snprintf(scale, sizeof scale, "%g", alias.scale);
    std::string name(alias.raw_name);
    if (!alias.label_name.empty()) {
      name += "{" + std::string(alias.label_name) + "=\"" + std::string(alias.label_value) + "\"}";
    }
    out += "| `" + name + "` | `" + std::string(info(alias.metric).name) + "` | " +
           std::string(alias.raw_unit) + " | " + scale + " | " + std::string(alias.exporter) +
           (alias.calibrated ? "" : ", uncalibrated") + " |\n";
  }
  return out;
}

}  // namespace flopsight::catalog
