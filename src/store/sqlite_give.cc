// GPU time of nobody that turned out to be a job's: cells that are added to what there is, of which those of nobody are less than nothing.
#include <algorithm>

#include "store/sqlite_store_internal.h"

namespace flopsight::store {

base::Result<std::vector<GpuCell>> SqliteStore::unheld(const std::vector<GpuId>& gpus, units::Window window) {
  std::vector<GpuId> wanted = gpus;
  std::sort(wanted.begin(), wanted.end());
  std::vector<FoundBlock> found;
  const Part part{0, window};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0 && wanted[i] / kGroupSize == wanted[i - 1] / kGroupSize) continue;
    FLOPSIGHT_RETURN_IF_ERROR(find_blocks(BlockKind::kGpu, 0, part, wanted[i] / kGroupSize, found));
  }
  std::map<std::pair<GpuId, std::int64_t>, rollups::Cell> merged;
  FLOPSIGHT_RETURN_IF_ERROR(read_found(std::move(found), [&](const BlockRow& block, std::size_t) -> base::Status {
    if (block.slot_seconds != slot_seconds_) return {};
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuCell> cells, decode_gpu_block(block.bytes, options_.slot));
    for (const GpuCell& cell : cells) {
      const bool is_wanted = cell.job == 0 && cell.slot_start >= window.start && cell.slot_start + options_.slot <= window.end &&
                             std::binary_search(wanted.begin(), wanted.end(), cell.gpu);
      if (is_wanted) merged[{cell.gpu, cell.slot_start.unix_milliseconds}].merge(cell.cell);
    }
    return {};
  }));
  std::vector<GpuCell> out;
  for (const auto& [key, cell] : merged) {
    // What instances of a divided GPU leave over is nobody's whoever holds them.
    const std::int64_t unsplit = cell.absent(samples::AbsentReason::kUnsplitInstances);
    if (cell.allocated_microseconds() > unsplit) out.push_back({key.first, 0, {key.second}, cell});
  }
  return out;
}

base::Status SqliteStore::give(std::span<const GpuCell> cells, JobId job, ModelId model) {
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t end = first;
    std::int64_t next = cells[first].slot_start.unix_milliseconds;
    for (; end < cells.size() && cells[end].gpu == cells[first].gpu && cells[end].slot_start.unix_milliseconds == next; ++end) {
      next += milliseconds(slot_seconds_);
      GpuCell cell = cells[end];
      cell.job = job;
      FLOPSIGHT_RETURN_IF_ERROR(add_cell(cell, model));
      cell.job = 0;
      cell.cell = cell.cell.negated();
      FLOPSIGHT_RETURN_IF_ERROR(add_cell(cell, model));
    }
    spans_to_write_.emplace_back(cells[first].gpu, Span{job, false, cells[first].slot_start.unix_milliseconds, next});
    first = end;
  }
  return {};
}

}  // namespace flopsight::store
