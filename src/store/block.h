#pragma once
// Cells to bytes and back: the columns of one block, compressed together. A block holds cells of up to a few hundred GPUs (or
// jobs) over some slots. Format: docs/formats/store.md, version in the first byte.
//
// Columns are stored as differences from what they nearly always equal (known time from measured time, extremes from nothing
// where there are none), so that most of them are constant and cost nothing.
// Bad input: kCorrupt, saying what differs; never more memory than kBlockCellsMax cells.
// Threads: pure functions.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "rollups/cell.h"
#include "units/time.h"

namespace flopsight::store {

using GpuId = std::uint32_t;    // from 1
using JobId = std::uint32_t;    // 0: nobody
using ModelId = std::uint32_t;  // from 1

inline constexpr std::size_t kBlockCellsMax = 250'000;

struct GpuCell {
  GpuId gpu = 0;
  JobId job = 0;
  units::Instant slot_start;
  rollups::Cell cell;
};

struct JobCell {
  JobId job = 0;
  ModelId model = 0;
  units::Instant slot_start;
  rollups::Cell cell;
  rollups::Spread spread;
};

// `slot` is the length of the cells' slots; every slot_start is a multiple of it.
std::string encode_gpu_block(std::span<const GpuCell> cells, units::Seconds slot);
std::string encode_job_block(std::span<const JobCell> cells, units::Seconds slot);

base::Result<std::vector<GpuCell>> decode_gpu_block(std::string_view block, units::Seconds slot);
base::Result<std::vector<JobCell>> decode_job_block(std::string_view block, units::Seconds slot);

// The columns of a block of jobs as they are: of cells (cell_columns_internal.h), then how many bins each spread has, and bins and times.
base::Result<std::vector<std::vector<std::int64_t>>> job_block_columns(std::string_view block);

// The spread alone, as version 1 of the store had it in a column of SQL.
std::string encode_spread(const rollups::Spread& spread);
base::Result<rollups::Spread> decode_spread(std::string_view bytes);

}  // namespace flopsight::store
