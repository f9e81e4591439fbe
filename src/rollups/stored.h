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

// A model of which jobs had GPUs, looked up: a store has few models and many jobs.
GpuTime time_of_model(const std::string& model_raw, const FleetOptions& options, samples::QualityLog& quality);

// All GPUs of one model that a job had, as one entry that stands for them. `members` are numbers of GPUs, for counting
// distinct ones across jobs.
GpuTime time_of_job(const GpuTime& model, const StoredPortion& portion, std::vector<std::uint32_t> members);
// The same in place of what `entry`, made of the same model, was before; members are the caller's to set.
void become_job(GpuTime& entry, std::optional<samples::HolderId> holder, const Cell& cell);
// Only what says which jobs to show and how far clocks scatter: holder, measured and delivered time, spread of clocks. Everything else is 0.
void become_outline(GpuTime& entry, std::optional<samples::HolderId> holder, const Cell& cell);

}  // namespace flopsight::rollups
