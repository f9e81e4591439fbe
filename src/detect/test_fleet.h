#pragma once
// A minute of 100,000 GPUs in 1,000 jobs as cells, with two hours behind it, so that windows are full; two GPUs of a job in fifty and one job in
// twenty have something the matter, which is more than a fleet that is operated has. For benchmarks. Not part of the program.
// Threads: one at a time.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "detect/faults.h"
#include "detect/job.h"
#include "detect/test_noise.h"

namespace flopsight::detect::test {

using rollups::Cell;
using rollups::CellField;

inline constexpr std::uint32_t kJobs = 1'000, kGpusPerJob = 100;
inline constexpr std::int64_t kMinutesBefore = 120;

inline Cell cell_of_minute(Draws& draws, double tensor_ratio, double clock_megahertz) {
  constexpr std::int64_t kWhole = 60'000'000;
  Cell cell;
  for (const CellField field : {CellField::kMeasured, CellField::kTensorKnown, CellField::kClockKnown, CellField::kSmKnown,
                                CellField::kDramKnown, CellField::kEnergyKnown, CellField::kEventKnown}) {
    cell[field] = kWhole;
  }
  const auto part = [&](double value) { return static_cast<std::int64_t>(value * (0.98 + 0.04 * draws.unit())); };
  cell[CellField::kTensor] = cell[CellField::kTensorMeasured] = part(tensor_ratio * kWhole);
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
      (void)run();
    }
  }

  void make_cells() {
    Draws draws(static_cast<std::uint64_t>(minute));
    cells.clear();
    for (std::uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const std::uint32_t job = gpu / kGpusPerJob;
      const double tensor_ratio = minute > 80 && job % 20 == 0 ? 0.2 : 0.45;
      cells.push_back(cell_of_minute(draws, tensor_ratio, gpu % kGpusPerJob < 2 && job % 50 == 0 ? 1'200 : 1'700));
    }
  }

  // Of the cells, in the order of GPUs: all findings.
  std::vector<Finding> run() {
    const units::Instant start{kNoiseStart + minute++ * kMinuteMilliseconds};
    for (std::uint32_t i = 0; i < gpus.size(); ++i) gpus[i] = GpuMinute{i, i / 8, false, point_of(cells[i], start)};
    faults.add(gpus);
    const SubjectNames names{[&](std::uint32_t gpu) { return gpu_names[gpu]; }, host_names};
    std::vector<Finding> findings = faults.findings(names);
    for (std::uint32_t job = 0; job < kJobs; ++job) {
      const std::size_t first = job * kGpusPerJob;
      const MinutePoint whole = point_of(std::span(cells).subspan(first, kGpusPerJob), start);
      jobs[job].add(whole, std::span<const GpuMinute>(gpus).subspan(first, kGpusPerJob));
      for (Finding& finding : jobs[job].findings(names)) findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace flopsight::detect::test
