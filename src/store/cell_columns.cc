#include "store/cell_columns_internal.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;
using rollups::kCellFieldCount;

bool is_ofu_extreme(CellField field) {
  return field == CellField::kOfuMin || field == CellField::kOfuMax || field == CellField::kOfuLast ||
         field == CellField::kOfuLastTime;
}
bool is_clock_extreme(CellField field) { return field == CellField::kClockMin || field == CellField::kClockMax; }

bool is_there(CellField field, std::int64_t bits) {
  if (is_ofu_extreme(field)) return (bits & kHasOfu) != 0;
  if (is_clock_extreme(field)) return (bits & kHasClock) != 0;
  if (field == CellField::kHoldersMax) return (bits & kHasHolders) != 0;
  return true;
}

}  // namespace

std::int64_t presence(const Cell& cell) {
  return (cell.has(CellField::kOfuMin) ? kHasOfu : 0) | (cell.has(CellField::kClockMin) ? kHasClock : 0) |
         (cell.has(CellField::kHoldersMax) ? kHasHolders : 0);
}

PackedCell packed(const Cell& cell, std::int64_t slot_start_milliseconds) {
  PackedCell out{};
  const std::int64_t bits = presence(cell);
  for (std::size_t i = 0; i < kCellFieldCount; ++i) {
    const auto field = static_cast<CellField>(i);
    out[i] = is_there(field, bits) ? cell[field] : 0;
  }
  const auto at = [&](CellField field) -> std::int64_t& { return out[static_cast<std::size_t>(field)]; };
  if ((bits & kHasOfu) != 0) {
    at(CellField::kOfuLastTime) = minus(at(CellField::kOfuLastTime), slot_start_milliseconds);
    at(CellField::kOfuLast) = minus(at(CellField::kOfuLast), at(CellField::kOfuMin));
  }
  for (const Near& near : kNear) at(near.field) = minus(at(near.field), cell[near.base] * (is_there(near.base, bits) ? 1 : 0));
  return out;
}

Cell unpacked(PackedCell in, std::int64_t bits, std::int64_t slot_start_milliseconds) {
  const auto at = [&](CellField field) -> std::int64_t& { return in[static_cast<std::size_t>(field)]; };
  for (const Near& near : kNear) at(near.field) = plus(at(near.field), at(near.base));
  at(CellField::kOfuLastTime) = plus(at(CellField::kOfuLastTime), slot_start_milliseconds);
  at(CellField::kOfuLast) = plus(at(CellField::kOfuLast), at(CellField::kOfuMin));
  Cell cell;
  for (std::size_t i = 0; i < kCellFieldCount; ++i) {
    const auto field = static_cast<CellField>(i);
    if (is_there(field, bits)) cell[field] = in[i];
  }
  return cell;
}

}  // namespace flopsight::store
