#pragma once
// Many cells of jobs, column by column, for adding them up without making a cell of each: what a question about all jobs of a day spends
// its time with. Two forms of a block give them: the small one (block.h), and sums of long slots in a quick one (fixed_columns.h).
//
// Sums and their spreads are apart, as most questions do not need a spread.
// Bad input: kCorrupt or kLimit, and then nothing is held.
// Threads: values; one JobColumns is used for many blocks after another, so that its memory is.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/block.h"
#include "store/cell_columns_internal.h"
#include "store/fixed_columns.h"

namespace flopsight::store {

// Cells without their spreads, and the spreads of the same cells. `cells` by job and model, all of one slot or of several.
std::string encode_job_sums(std::span<const JobCell> cells, units::Seconds slot);
std::string encode_job_spreads(std::span<const JobCell> cells, units::Seconds slot);

class JobColumns {
 public:
  // Spreads come with it.
  base::Status read_block(std::string_view block, units::Seconds slot);
  base::Status read_sums(std::string_view block, units::Seconds slot);
  // Of GPUs: ids are a GPU and a job.
  base::Status read_gpu_block(std::string_view block, units::Seconds slot);

  std::size_t size() const { return columns_[0].values.size(); }
  std::uint32_t first_id(std::size_t i) const { return static_cast<std::uint32_t>(columns_[1].values[i]); }
  std::uint32_t second_id(std::size_t i) const { return static_cast<std::uint32_t>(columns_[2].values[i]); }
  JobId job(std::size_t i) const { return first_id(i); }
  ModelId model(std::size_t i) const { return second_id(i); }
  units::Instant slot_start(std::size_t i) const { return units::Instant{columns_[0].values[i] * slot_milliseconds_}; }
  rollups::Cell cell(std::size_t i) const;

  // Merges each cell into its target; one for each cell, those without one (null) are left out.
  void add_to(std::span<rollups::Cell* const> targets) const;

 private:
  base::Status take(base::Result<std::vector<std::vector<std::int64_t>>> columns);
  base::Status check();

  std::int64_t slot_milliseconds_ = 1;
  std::array<FixedColumn, kCellColumns> columns_;
};

struct JobSpread {
  JobId job = 0;
  ModelId model = 0;
  units::Instant slot_start;
  rollups::Spread spread;
};
base::Result<std::vector<JobSpread>> decode_job_spreads(std::string_view block, units::Seconds slot);

}  // namespace flopsight::store
