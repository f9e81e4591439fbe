#include "simulation/metric_list.h"

#include <algorithm>

namespace flopsight::simulation {
namespace {

using D = const catalog::Device&;
using R = const Readings&;

double mem_clock(R, D d) {
  // NVML's memory clock by generation; H200 has HBM3E.
  if (d.model.starts_with("H200")) return 3201;
  if (d.architecture == "Hopper") return 2619;
  if (d.architecture.starts_with("Blackwell")) return 3996;
  return 1593;
}
double zero(R, D) { return 0; }
double board_watts(R, D d) { return d.board_power->value; }

constexpr SimulatedMetric gauge(std::string_view name, std::string_view help, ReadingGroup group,
                                double (*value)(R, D)) {
  return {name, help, false, false, true, false, group, value};
}
constexpr SimulatedMetric ratio(std::string_view name, std::string_view help, double (*value)(R, D)) {
  return {name, help, false, true, true, false, kRatios, value};
}
constexpr SimulatedMetric counter(std::string_view name, std::string_view help, double (*value)(R, D)) {
  return {name, help, true, false, true, false, kCounters, value};
}
constexpr SimulatedMetric util(std::string_view name, std::string_view help, bool per_process, double (*value)(R, D)) {
  return {name, help, false, false, false, per_process, kRatios, value};
}

constexpr SimulatedMetric kMetrics[] = {
    {kReportedMfuMetric, "Model FLOPs utilization that the trainer reports (0 to 1).", false, true, true, false, kReported,
     [](R r, D) { return r.mfu_ratio; }},
    ratio("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.",
          [](R r, D) { return r.tensor_ratio; }),
    gauge("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", kInstants,
          [](R r, D) { return r.clock_hertz / 1e6; }),
    ratio("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.",
          [](R r, D) { return r.sm_ratio; }),
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", false, true, true, false, kInstants,
     [](R r, D) { return r.power_watts; }},
    ratio("DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.",
          [](R r, D) { return r.dram_ratio; }),
    ratio("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.",
          [](R r, D) { return r.engine_ratio; }),
    util("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", true, [](R r, D) { return r.utilization_percent_value; }),
    counter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).",
            [](R r, D) { return r.energy_millijoules_total; }),
    gauge("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Current clock throttle reasons (bitmask).", kInstants,
          [](R r, D) { return static_cast<double>(r.event_reasons); }),
    gauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", kInstants,
          [](R r, D) { return r.temperature_celsius; }),
    gauge("DCGM_FI_PROF_NVLINK_TX_BYTES", "The rate of data transmitted over NVLink (in bytes/s).", kRatios,
          [](R r, D) { return r.nvlink_tx_bytes; }),
    gauge("DCGM_FI_PROF_NVLINK_RX_BYTES", "The rate of data received over NVLink (in bytes/s).", kRatios,
          [](R r, D) { return r.nvlink_rx_bytes; }),
    gauge("DCGM_FI_PROF_PCIE_TX_BYTES", "The rate of data transmitted over PCIe (in bytes/s).", kRatios,
          [](R r, D) { return r.pcie_tx_bytes; }),
    gauge("DCGM_FI_PROF_PCIE_RX_BYTES", "The rate of data received over PCIe (in bytes/s).", kRatios,
          [](R r, D) { return r.pcie_rx_bytes; }),
    gauge("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", kMemory,
          [](R r, D) { return r.framebuffer_used_mebibytes_total; }),
    gauge("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", kMemory,
          [](R r, D) { return r.framebuffer_free_mebibytes_total; }),
    gauge("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", kInstants,
          [](R r, D) { return static_cast<double>(r.xid); }),
    ratio("DCGM_FI_PROF_SM_OCCUPANCY", "The ratio of number of warps resident on an SM.",
          [](R r, D) { return r.occupancy_ratio; }),
    gauge("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", kMemory, mem_clock),
    gauge("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", kInstants,
          [](R r, D) { return r.temperature_celsius + 7; }),
    util("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", false,
         [](R r, D) { return static_cast<double>(static_cast<int>(100 * r.dram_ratio)); }),
    counter("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "Total number of NVLink bandwidth counters for all lanes.",
            [](R r, D) { return r.nvlink_megabytes_total; }),
    counter("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", zero),
    gauge("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", kMemory,
          [](R r, D) { return r.framebuffer_reserved_mebibytes_total; }),
    util("DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", false, zero),
    util("DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", false, zero),
    gauge("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for uncorrectable errors", kMemory, zero),
    gauge("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "vGPU License status", kMemory, zero),
    // From here on: not in the default list.
    gauge("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for correctable errors", kMemory, zero),
    gauge("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed", kMemory, zero),
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "Enforced power limit (in W).", false, true, true, false, kMemory, board_watts},
    gauge("DCGM_FI_DEV_MAX_SM_CLOCK", "Maximum SM clock (in MHz).", kMemory,
          [](R, D d) { return d.nvml_max_sm_clock->value / 1e6; }),
    counter("DCGM_FI_DEV_POWER_VIOLATION", "Throttling duration due to power constraints (in us).",
            [](R r, D) { return r.power_violation_microseconds_total; }),
    counter("DCGM_FI_DEV_THERMAL_VIOLATION", "Throttling duration due to thermal constraints (in us).", zero),
    ratio("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipes are active.", zero),
    ratio("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipes are active.",
          [](R r, D) { return r.fp32_ratio; }),
    ratio("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipes are active.",
          [](R r, D) { return r.fp16_ratio; }),
    counter("DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", "SM cycles elapsed.",
            [](R r, D) { return r.sm_cycles_elapsed_total; }),
    counter("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", "SM cycles with a warp assigned.",
            [](R r, D) { return r.sm_cycles_active_total; }),
    counter("DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", "Cycles with any tensor pipe active.",
            [](R r, D) { return r.mma_cycles_total; }),
};

}  // namespace

std::span<const SimulatedMetric> all_metrics() { return std::span(kMetrics).subspan(1); }

std::span<const SimulatedMetric> metrics_of(const Options& options) {
  const std::size_t wanted = options.metrics == 0 ? kDefaultMetrics : options.metrics;
  const std::size_t count = std::min(wanted, all_metrics().size());
  return options.reports_mfu() ? std::span(kMetrics).first(count + 1) : all_metrics().first(count);
}

}  // namespace flopsight::simulation
