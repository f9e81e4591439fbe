#pragma once
// The metrics of a simulated exporter: names, types and decimals as dcgm-exporter prints them, in order of how much they tell.
// The default list is what a well configured dcgm-exporter has: its own default list with SM activity, event reasons and
// NVLink added; the rest is for load.
// Threads: immutable.

#include <cstdint>
#include <span>
#include <string_view>

#include "simulation/meter.h"

namespace flopsight::simulation {

struct SimulatedMetric {
  std::string_view name;
  std::string_view help;
  bool counter = false;
  bool decimals = false;      // six of them, as DCGM prints doubles; else whole
  bool on_instances = true;   // NVML says nothing of it under MIG
  bool per_process = false;   // of a shared GPU: each pod's own
  ReadingGroup group = kRatios;
  double (*value)(const Readings&, const catalog::Device&) = nullptr;
};

// The first 28 are the default list.
std::span<const SimulatedMetric> all_metrics();
inline constexpr std::uint32_t kDefaultMetrics = 28;

// What trainers export of themselves, from every rank; before the others where the scenario has jobs that report.
// The name is known to readers without a configuration (training_logs/exported_metrics.h).
inline constexpr std::string_view kReportedMfuMetric = "flopsight_training_mfu_ratio";

// Those that the options ask for.
std::span<const SimulatedMetric> metrics_of(const Options& options);

}  // namespace flopsight::simulation
