#include "store/job_columns.h"

#include <algorithm>

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;
using rollups::kCellFieldCount;

base::Error corrupt(const char* what) { return {base::ErrorCode::kCorrupt, std::string("block: ") + what}; }

constexpr std::size_t column_of(CellField field) { return kHeadColumns + static_cast<std::size_t>(field); }

void add(std::int64_t& into, std::int64_t value) { into = plus(into, value); }

}  // namespace

std::string encode_job_sums(std::span<const JobCell> cells, units::Seconds slot) {
  std::vector<std::vector<std::int64_t>> columns(kCellColumns);
  for (auto& column : columns) column.reserve(cells.size());
  for (const JobCell& cell : cells) {
    const std::int64_t start = cell.slot_start.unix_milliseconds;
    columns[0].push_back(start / milliseconds(slot));
    columns[1].push_back(cell.job);
    columns[2].push_back(cell.model);
    columns[3].push_back(presence(cell.cell));
    const PackedCell values = packed(cell.cell, start);
    for (std::size_t i = 0; i < kCellFieldCount; ++i) columns[kHeadColumns + i].push_back(values[i]);
  }
  return write_fixed_columns(columns);
}

// Slot, job, model and how many bins of each cell; then bin and time of all bins.
std::string encode_job_spreads(std::span<const JobCell> cells, units::Seconds slot) {
  std::vector<std::vector<std::int64_t>> columns(6);
  for (const JobCell& cell : cells) {
    columns[0].push_back(cell.slot_start.unix_milliseconds / milliseconds(slot));
    columns[1].push_back(cell.job);
    columns[2].push_back(cell.model);
    columns[3].push_back(static_cast<std::int64_t>(cell.spread.bins().size()));
    for (const rollups::Spread::Bin& bin : cell.spread.bins()) {
      columns[4].push_back(bin.bin);
      columns[5].push_back(bin.microseconds);
    }
  }
  return write_fixed_columns(columns);
}

base::Status JobColumns::read_block(std::string_view block, units::Seconds slot) {
  slot_milliseconds_ = milliseconds(slot);
  return take(job_block_columns(block));
}

base::Status JobColumns::read_gpu_block(std::string_view block, units::Seconds slot) {
  slot_milliseconds_ = milliseconds(slot);
  return take(gpu_block_columns(block));
}

base::Status JobColumns::take(base::Result<std::vector<std::vector<std::int64_t>>> columns) {
  if (!columns.ok()) {
    for (FixedColumn& column : columns_) column.values.clear();
    return columns.error();
  }
  for (std::size_t i = 0; i < kCellColumns; ++i) {
    columns_[i].values = std::move((*columns)[i]);
    columns_[i].is_zero = std::all_of(columns_[i].values.begin(), columns_[i].values.end(), [](std::int64_t v) { return v == 0; });
  }
  return check();
}

base::Status JobColumns::read_sums(std::string_view block, units::Seconds slot) {
  slot_milliseconds_ = milliseconds(slot);
  base::Status read = read_fixed_columns(block, kBlockCellsMax, columns_);
  if (!read.ok() && read_fixed_columns(block, kBlockCellsMax, std::span(columns_).first(kFirstCellColumns)).ok()) {
    for (std::size_t i = kFirstCellColumns; i < kCellColumns; ++i) {
      columns_[i].values.assign(size(), 0);
      columns_[i].is_zero = true;
    }
    read = {};
  }
  if (!read.ok()) {
    for (FixedColumn& column : columns_) column.values.clear();
    return read;
  }
  return check();
}

base::Status JobColumns::check() {
  constexpr std::int64_t kIdMax = 0xFFFFFFFF;
  constexpr std::int64_t kSlotIndexMax = std::int64_t{1} << 40;
  const char* wrong = nullptr;
  const auto within = [&](std::size_t column, std::int64_t most, const char* what) {
    const auto& values = columns_[column].values;
    if (std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v < 0 || v > most; })) wrong = what;
  };
  within(0, kSlotIndexMax, "a time out of range");
  within(1, kIdMax, "an id out of range");
  within(2, kIdMax, "an id out of range");
  for (const FixedColumn& column : columns_) {
    if (column.values.size() != size()) wrong = "columns of different lengths";
  }
  if (wrong == nullptr) return {};
  for (FixedColumn& column : columns_) column.values.clear();
  return corrupt(wrong);
}

rollups::Cell JobColumns::cell(std::size_t i) const {
  PackedCell values{};
  for (std::size_t f = 0; f < kCellFieldCount; ++f) values[f] = columns_[kHeadColumns + f].values[i];
  return unpacked(values, columns_[3].values[i], slot_start(i).unix_milliseconds);
}

// The same as merge(cell(i)) for each, a field at a time only where it says something.
void JobColumns::add_to(std::span<rollups::Cell* const> targets) const {
  struct Sum {
    CellField field;
    const std::int64_t* values;
    const std::int64_t* more;  // of the field that this one is near to, or null
  };
  static constexpr std::int64_t kNone = 0;
  std::vector<Sum> sums;
  sums.reserve(kCellFieldCount);
  for (std::size_t f = 0; f < kCellFieldCount; ++f) {
    const auto field = static_cast<CellField>(f);
    if (rollups::cell_fields()[f].merge != rollups::Merge::kSum) continue;
    const auto near = std::find_if(kNear.begin(), kNear.end(), [&](const Near& n) { return n.field == field; });
    const FixedColumn& own = columns_[kHeadColumns + f];
    const FixedColumn* base = near == kNear.end() ? nullptr : &columns_[column_of(near->base)];
    if (base != nullptr && base->is_zero) base = nullptr;
    if (own.is_zero && base == nullptr) continue;
    if (own.is_zero) {
      sums.push_back({field, base->values.data(), nullptr});
    } else {
      sums.push_back({field, own.values.data(), base == nullptr ? nullptr : base->values.data()});
    }
  }
  const auto value = [&](CellField field, std::size_t i) { return columns_[column_of(field)].values[i]; };
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == nullptr) continue;
    Cell& into = *targets[i];
    for (const Sum& sum : sums) add(into[sum.field], plus(sum.values[i], sum.more == nullptr ? kNone : sum.more[i]));
    const std::int64_t bits = columns_[3].values[i];
    if ((bits & kHasOfu) != 0) {
      const std::int64_t least = value(CellField::kOfuMin, i);
      into[CellField::kOfuMin] = std::min(into[CellField::kOfuMin], least);
      into[CellField::kOfuMax] = std::max(into[CellField::kOfuMax], plus(value(CellField::kOfuMax, i), least));
      const std::pair later = std::max(std::pair(into[CellField::kOfuLastTime], into[CellField::kOfuLast]),
                                       std::pair(plus(value(CellField::kOfuLastTime, i), slot_start(i).unix_milliseconds),
                                                 plus(value(CellField::kOfuLast, i), least)));
      into[CellField::kOfuLastTime] = later.first;
      into[CellField::kOfuLast] = later.second;
    }
    if ((bits & kHasClock) != 0) {
      into[CellField::kClockMin] = std::min(into[CellField::kClockMin], value(CellField::kClockMin, i));
      into[CellField::kClockMax] = std::max(into[CellField::kClockMax], value(CellField::kClockMax, i));
    }
    if ((bits & kHasHolders) != 0) {
      into[CellField::kHoldersMax] = std::max(into[CellField::kHoldersMax], value(CellField::kHoldersMax, i));
    }
  }
}

base::Result<std::vector<JobSpread>> decode_job_spreads(std::string_view block, units::Seconds slot) {
  constexpr std::int64_t kIdMax = 0xFFFFFFFF;
  constexpr std::int64_t kSlotIndexMax = std::int64_t{1} << 40;
  std::array<FixedColumn, 6> columns;
  FLOPSIGHT_RETURN_IF_ERROR(read_fixed_columns(block, kBlockCellsMax * 8, columns));
  const auto& [starts, jobs, models, counts, bins, times] = columns;
  const std::size_t rows = starts.values.size();
  if (jobs.values.size() != rows || models.values.size() != rows || counts.values.size() != rows ||
      bins.values.size() != times.values.size()) {
    return corrupt("columns of different lengths");
  }
  std::vector<JobSpread> out(rows);
  std::size_t at = 0;
  std::vector<rollups::Spread::Bin> list;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int64_t start = starts.values[i], job = jobs.values[i], model = models.values[i], count = counts.values[i];
    if (start < 0 || start > kSlotIndexMax) return corrupt("a time out of range");
    if (job < 0 || job > kIdMax || model < 0 || model > kIdMax) return corrupt("an id out of range");
    if (count < 0 || count > rollups::Spread::kBins || at + static_cast<std::size_t>(count) > bins.values.size()) {
      return corrupt("a spread that is cut");
    }
    list.clear();
    for (std::int64_t n = 0; n < count; ++n, ++at) {
      if (bins.values[at] < 0 || bins.values[at] >= rollups::Spread::kBins) return corrupt("a spread out of range");
      list.push_back({static_cast<std::uint16_t>(bins.values[at]), times.values[at]});
    }
    out[i].job = static_cast<JobId>(job);
    out[i].model = static_cast<ModelId>(model);
    out[i].slot_start = units::Instant{start * milliseconds(slot)};
    if (!out[i].spread.assign(list)) return corrupt("a spread that does not ascend");
  }
  return out;
}

}  // namespace flopsight::store
