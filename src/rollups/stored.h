#pragma once
// GPU time out of cells that were stored, in the same form as from samples, so that the same report is made of both.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rollups/cell.h"
#include "rollups/fleet.h"

namespace flopsight::rollups {

struct StoredPortion {
  std::optional<samples::HolderId> holder;
  Cell cell;
};

// One GPU, by its holders.
GpuTime time_of_gpu(const samples::GpuIdentity& gpu, std::span<const StoredPortion> portions,
                    const FleetOptions& options, samples::QualityLog& quality);

// All GPUs of one model that a job had, as one entry that stands for them. `members` are numbers of GPUs, for counting
// distinct ones across jobs.
GpuTime time_of_job(const std::string& model_raw, const StoredPortion& portion,
                    std::vector<std::uint32_t> members, const FleetOptions& options,
                    samples::QualityLog& quality);

}  // namespace flopsight::rollups
