#pragma once
// A cell as the numbers that its columns hold: slot, two ids, presence, then every field, where a field that nearly always equals another
// is the difference from it. Both forms of a block (block.h, job_columns.h) are made of these.
//
// Threads: pure functions.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "rollups/cell.h"
#include "units/milliseconds.h"

namespace flopsight::store {

inline constexpr std::size_t kHeadColumns = 4;
inline constexpr std::size_t kCellColumns = kHeadColumns + rollups::kCellFieldCount;
// Of blocks that were written before there were causes of losses; what they lack is zero.
inline constexpr std::size_t kFirstCellColumns = kHeadColumns + rollups::kFirstCellFieldCount;

// Known and integrated times that nearly always equal another field.
struct Near {
  rollups::CellField field;
  rollups::CellField base;
};
inline constexpr std::array<Near, 9> kNear = {{
    {rollups::CellField::kTensor, rollups::CellField::kTensorMeasured},
    {rollups::CellField::kTensorWithinSmKnown, rollups::CellField::kTensorMeasured},
    {rollups::CellField::kTensorKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kClockKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kSmKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kDramKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kEnergyKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kEventKnown, rollups::CellField::kMeasured},
    {rollups::CellField::kOfuMax, rollups::CellField::kOfuMin},
}};

// Sums that wrap instead of overflowing: bytes of a damaged block may say anything.
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// Which extremes there are, that is, something other than the identity of their merge.
inline constexpr std::int64_t kHasOfu = 1;
inline constexpr std::int64_t kHasClock = 2;
inline constexpr std::int64_t kHasHolders = 4;
std::int64_t presence(const rollups::Cell& cell);

// The columns of a block of GPUs as they are (block.h has those of jobs).
base::Result<std::vector<std::vector<std::int64_t>>> gpu_block_columns(std::string_view block);

using PackedCell = std::array<std::int64_t, rollups::kCellFieldCount>;
PackedCell packed(const rollups::Cell& cell, std::int64_t slot_start_milliseconds);
rollups::Cell unpacked(PackedCell in, std::int64_t bits, std::int64_t slot_start_milliseconds);

}  // namespace flopsight::store
