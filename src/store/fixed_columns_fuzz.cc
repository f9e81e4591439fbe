// Any bytes as sums of jobs, their spreads, or runs of GPUs, as the first byte says. Version and checksum are put before columns, so that
// reading gets past them; what is read is written and read again.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "store/gpu_runs.h"
#include "store/job_columns.h"

namespace {

using namespace flopsight::store;
using flopsight::base::ErrorCode;
using flopsight::units::Seconds;

const Seconds kSlot(3600);

bool is_known(ErrorCode code) { return code == ErrorCode::kCorrupt || code == ErrorCode::kLimit; }

void as_sums(std::string_view bytes) {
  JobColumns columns;
  if (const auto read = columns.read_sums(bytes, kSlot); !read.ok()) {
    FLOPSIGHT_CHECK(is_known(read.error().code));
    return;
  }
  std::vector<JobCell> cells;
  flopsight::rollups::Cell sum;
  std::vector<flopsight::rollups::Cell*> targets;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cells.push_back({columns.job(i), columns.model(i), columns.slot_start(i), columns.cell(i), {}});
    targets.push_back(i % 2 == 0 ? &sum : nullptr);
  }
  columns.add_to(targets);
  JobColumns again;
  FLOPSIGHT_CHECK(again.read_sums(encode_job_sums(cells, kSlot), kSlot).ok());
  FLOPSIGHT_CHECK(again.size() == cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) FLOPSIGHT_CHECK(again.cell(i) == cells[i].cell);
}

void as_spreads(std::string_view bytes) {
  const auto spreads = decode_job_spreads(bytes, kSlot);
  if (!spreads.ok()) {
    FLOPSIGHT_CHECK(is_known(spreads.error().code));
    return;
  }
  std::vector<JobCell> cells;
  for (const JobSpread& one : *spreads) cells.push_back({one.job, one.model, one.slot_start, {}, one.spread});
  FLOPSIGHT_CHECK(decode_job_spreads(encode_job_spreads(cells, kSlot), kSlot).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: as_sums(fixed_columns_of(bytes)); break;
    case 1: as_spreads(fixed_columns_of(bytes)); break;
    case 2:
      if (const auto gpus = decode_gpu_runs(bytes); gpus.ok()) {
        FLOPSIGHT_CHECK(*decode_gpu_runs(encode_gpu_runs(*gpus)) == *gpus);
      } else {
        FLOPSIGHT_CHECK(gpus.error().code == ErrorCode::kCorrupt);
      }
      break;
    default:
      as_sums(bytes);
      as_spreads(bytes);
  }
  return 0;
}
