// What a sample costs on its way into rows, and what a GPU's minute costs on its way into a cell. The shape is that of a training
// fleet: a scrape of a GPU every 15 s, eleven quantities that are rolled up, one label set a GPU, jobs of 64 GPUs.
#include <benchmark/benchmark.h>

#include "live/live_fleet.h"

namespace flopsight::live {
namespace {

constexpr std::int64_t kStart = 1'790'000'040'000 / 60'000 * 60'000;
constexpr std::string_view kNames[] = {
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_SM_CLOCK",      "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",        "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE",         "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"};
constexpr double kValues[] = {0.4375, 1755, 0.92, 0.41, 0.99, 98, 652.31, 1.2e11, 1.1e9, 2.3e11, 4};

struct Fleet {
  samples::QualityLog quality;
  LiveFleet fleet{LiveOptions{}, jobs::LabelRules::builtin(), quality};
  std::vector<LabelSetId> sets;
  std::vector<MetricUse> uses;
  std::int64_t t = kStart;

  explicit Fleet(std::size_t gpus) {
    for (std::size_t i = 0; i < gpus; ++i) {
      const std::string uuid = "GPU-" + std::to_string(i), pod = "train-" + std::to_string(i / 64);
      const jobs::LabelView labels[] = {{"UUID", uuid}, {"modelName", "NVIDIA H100 80GB HBM3"}, {"Hostname", "n1"}, {"pod", pod}};
      sets.push_back(fleet.bind(labels, "").value());
    }
    for (const std::string_view name : kNames) uses.push_back(metric_use(name));
  }
  void round() {
    for (const LabelSetId set : sets) {
      for (std::size_t m = 0; m < uses.size(); ++m) {
        const double jitter = 1 + 1e-4 * static_cast<double>((set * 31 + static_cast<std::uint32_t>(t / 1000)) % 97);
        fleet.add(set, uses[m], kNames[m], units::Instant{t}, m == 6 || m == 0 ? kValues[m] * jitter : kValues[m], units::Instant{t}, 1);
      }
    }
    t += 15'000;
  }
};

void samples_into_rows(benchmark::State& state) {
  Fleet fleet(10'000);
  std::int64_t samples = 0;
  for (auto _ : state) {
    fleet.round();
    samples += static_cast<std::int64_t>(fleet.sets.size() * fleet.uses.size());
    state.PauseTiming();
    fleet.fleet.close(units::Instant{fleet.t}, [](const ClosedCell&) {});
    state.ResumeTiming();
  }
  state.SetItemsProcessed(samples);
}
BENCHMARK(samples_into_rows)->Unit(benchmark::kMillisecond);

void minutes_into_cells(benchmark::State& state) {
  Fleet fleet(10'000);
  std::int64_t cells = 0;
  for (int i = 0; i < 16; ++i) fleet.round();
  fleet.fleet.close(units::Instant{fleet.t}, [](const ClosedCell&) {});
  for (auto _ : state) {
    state.PauseTiming();
    for (int i = 0; i < 4; ++i) fleet.round();
    state.ResumeTiming();
    fleet.fleet.close(units::Instant{fleet.t}, [&](const ClosedCell& cell) {
      ++cells;
      benchmark::DoNotOptimize(cell.cell.values().data());
    });
  }
  state.SetItemsProcessed(cells);
  state.counters["bytes_per_gpu"] = static_cast<double>(fleet.fleet.memory_bytes()) / 10'000;
}
BENCHMARK(minutes_into_cells)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace flopsight::live
