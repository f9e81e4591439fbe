// One new minute of a large fleet (test_fleet.h), as cells: points of GPUs and jobs, every detector, and the findings. Cells are made before the clock
// runs.
#include <benchmark/benchmark.h>

#include <memory>

#include "detect/test_fleet.h"

namespace flopsight::detect {
namespace {

void detectors_one_minute_of_100000_gpus(benchmark::State& state) {
  const auto fleet = std::make_unique<test::Fleet>();
  std::size_t findings = 0;
  for (auto _ : state) {
    state.PauseTiming();
    fleet->make_cells();
    state.ResumeTiming();
    findings = fleet->run().size();
  }
  state.SetLabel(std::to_string(findings) + " findings; the bar is 1 s");
}
BENCHMARK(detectors_one_minute_of_100000_gpus)->Unit(benchmark::kMillisecond)->MinTime(1);

}  // namespace
}  // namespace flopsight::detect
