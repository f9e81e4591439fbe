#pragma once
// Every quantity the program reads, and under which names and units exporters publish it. One table of
// metrics, one table of aliases; docs/metrics.md is printed from them and a test fails when it is stale.
//
// Units come from the name only, never from HELP text or from guessing at one value: dcgm-exporter's HELP says
// "(in %)" of a 0..1 ratio, and DCGM 4.6's GPU_UTIL_RATIO is field 203, 0..100.
// Threads: immutable tables.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flopsight::catalog {

enum class Metric : std::uint8_t {
  kTensorActive,
  kSmActive,
  kSmOccupancy,
  kGraphicsEngineActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kGpuUtil,
  kSmClock,
  kSmClockMax,
  kPower,
  kPowerLimit,
  kEnergy,
  kEventReasons,
  kTemperature,
  kFramebufferUsed,
  kPcieTx,
  kPcieRx,
  kNvlinkTx,
  kNvlinkRx,
  kXid,
  kSmCyclesElapsed,
  kSmCyclesActive,
  kMmaCyclesActive,
  kInfo,   // a metric whose labels name the GPU (value 1)
  kOther,  // a GPU metric that carries no quantity we use: its labels still prove that the GPU is there
};
inline constexpr std::size_t kMetricCount = 27;

enum class MetricKind {
  kWindowMean,  // averaged by the hardware since the previous reading
  kInstant,     // as it was when read
  kCounter,     // grows; a fall is a reset
  kLabel,       // the value means nothing
};

struct MetricInfo {
  Metric metric;
  std::string_view name;  // ours, with its unit: "tensor_active_ratio"
  MetricKind kind;
  double value_min;  // physical range in our unit; outside it a reading is not a reading
  double value_max;
  bool whole_gpu;  // under MIG the value belongs to the GPU and is repeated on every instance
  std::string_view meaning;
};

// In the order of Metric.
std::span<const MetricInfo> metrics();
inline const MetricInfo& info(Metric metric) { return metrics()[static_cast<std::size_t>(metric)]; }

struct MetricAlias {
  std::string_view raw_name;
  Metric metric;
  double scale;  // ours = raw * scale
  std::string_view exporter;
  std::string_view raw_unit;
  // Only series with this label match (empty: all): gpu_tensor_utilization{pipe="any"}.
  std::string_view label_name = {};
  std::string_view label_value = {};
  bool calibrated = true;   // false: AMD activity, which no public measurement ties to FLOPs
  bool per_process = false;  // one value per process or pod on a shared GPU; they add up
};

std::span<const MetricAlias> metric_aliases();

// The alias of a raw name, or nullptr. `label` looks a label of the series up (empty when it has none).
const MetricAlias* find_alias(std::string_view raw_name,
                              const std::optional<std::string_view>& pipe_label);

// A fleet that does not exist says so with a sample of this name, and everything made of it says so too.
inline constexpr std::string_view kSimulatedMetric = "flopsight_simulated";

// A name that belongs to a GPU exporter although no alias knows it: "DCGM_FI_…", "nvidia_smi_…", "dcgm_…".
bool is_gpu_metric_name(std::string_view raw_name);

// docs/metrics.md.
std::string metrics_markdown();

}  // namespace flopsight::catalog
