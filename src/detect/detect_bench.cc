// One new minute of 100,000 GPUs in 1,000 jobs, as cells: points of GPUs and jobs, every detector, and the findings. Everything has two hours behind
// it, so that windows are full; two GPUs of a job in fifty and one job in twenty have something the matter, which is more than a fleet that is
// operated has. Cells are made before the clock runs.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "detect/faults.h"
#include "detect/job.h"
#include "detect/test_noise.h"

namespace flopsight::detect {
namespace {

using rollups::Cell;
using rollups::CellField;

constexpr std::uint32_t kJobs = 1'000, kGpusPerJob = 100;
constexpr std::int64_t kMinutesBefore = 120;

Cell cell_of_minute(test::Draws& draws, double level, double clock_megahertz) {
  constexpr std::int64_t kWhole = 60'000'000;
  Cell cell;
  for (const CellField field : {CellField::kMeasured, CellField::kTensorKnown, CellField::kClockKnown, CellField::kSmKnown,
                                CellField::kDramKnown, CellField::kEnergyKnown, CellField::kEventKnown}) {
    cell[field] = kWhole;
  }
  const auto part = [&](double value) { return static_cast<std::int64_t>(value * (0.98 + 0.04 * draws.unit())); };
  cell[CellField::kTensor] = cell[CellField::kTensorMeasured] = part(level * kWhole);
  cell[CellField::kDelivered] = cell[CellField::kTensor] * 95 / 100;
  cell[CellField::kSmActive] = part(0.8 * kWhole);
  cell[CellField::kClock] = part(clock_megahertz * 60);
  cell[CellField::kEnergy] = part(550 * 60);
  cell[CellField::kNvlinkTx] = cell[CellField::kNvlinkRx] = 4'000;
  cell[CellField::kHoldersMax] = 1;
  return cell;
}

struct Fleet {
  std::vector<std::string> gpu_names, host_names;
  std::vector<Cell> cells;
  std::vector<GpuMinute> gpus;
  std::vector<JobDetector> jobs;
  FaultDetector faults;
  std::int64_t minute = 0;

  Fleet() {
    for (std::uint32_t gpu = 0; gpu < kJobs * kGpusPerJob; ++gpu) {
      gpu_names.push_back("GPU-" + std::to_string(gpu));
      if (gpu % 8 == 0) host_names.push_back("host" + std::to_string(gpu / 8));
    }
    for (std::uint32_t job = 0; job < kJobs; ++job) jobs.emplace_back("job" + std::to_string(job));
    gpus.resize(gpu_names.size());
    for (std::int64_t i = 0; i < kMinutesBefore; ++i) {
      make_cells();
      benchmark::DoNotOptimize(run());
    }
  }

  void make_cells() {
    test::Draws draws(static_cast<std::uint64_t>(minute));
    cells.clear();
    for (std::uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const std::uint32_t job = gpu / kGpusPerJob;
      const double level = minute > 80 && job % 20 == 0 ? 0.2 : 0.45;
      cells.push_back(cell_of_minute(draws, level, gpu % kGpusPerJob < 2 && job % 50 == 0 ? 1'200 : 1'700));
    }
  }

  std::size_t run() {
    const units::Instant start{test::kNoiseStart + minute++ * test::kMinuteMilliseconds};
    for (std::uint32_t i = 0; i < gpus.size(); ++i) gpus[i] = GpuMinute{i, i / 8, false, point_of(cells[i], start)};
    faults.add(gpus);
    const SubjectNames names{gpu_names, host_names};
    std::size_t findings = faults.findings(names).size();
    for (std::uint32_t job = 0; job < kJobs; ++job) {
      const std::size_t first = job * kGpusPerJob;
      const MinutePoint whole = point_of(std::span(cells).subspan(first, kGpusPerJob), start);
      jobs[job].add(whole, std::span<const GpuMinute>(gpus).subspan(first, kGpusPerJob));
      findings += jobs[job].findings(names).size();
    }
    return findings;
  }
};

void detectors_one_minute_of_100000_gpus(benchmark::State& state) {
  const auto fleet = std::make_unique<Fleet>();
  std::size_t findings = 0;
  for (auto _ : state) {
    state.PauseTiming();
    fleet->make_cells();
    state.ResumeTiming();
    findings = fleet->run();
  }
  state.SetLabel(std::to_string(findings) + " findings; the bar is 1 s");
}
BENCHMARK(detectors_one_minute_of_100000_gpus)->Unit(benchmark::kMillisecond)->MinTime(1);

}  // namespace
}  // namespace flopsight::detect
