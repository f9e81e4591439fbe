#include "store/block.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "store/cell_columns_internal.h"
#include "wire/column_codec.h"
#include "wire/crc32.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;
using rollups::kCellFieldCount;

constexpr char kFirstVersion = 1;
constexpr char kVersion = 3;
constexpr std::size_t kBlockHeadBytes = 5;  // version, crc32 of what follows
constexpr int kCompressionLevel = 3;

using Column = std::vector<std::int64_t>;

// The part of a loss that is stored as what is left of it, which is nothing where all of it has a cause: left = whole - parts - field. The
// same once more gives the field back.
struct Part {
  CellField field;
  int sign;
};
struct Remainder {
  CellField field;
  std::array<Part, 6> of;
  std::size_t count;
};
constexpr std::array<Remainder, 2> kRemainders = {{
    // Within SM-known time is the difference to tensor activity, and SM-known time to measured (kNear).
    {CellField::kOtherKernels,
     {{{CellField::kSmActive, 1}, {CellField::kTensorWithinSmKnown, -1}, {CellField::kTensorMeasured, -1}, {CellField::kMemoryBound, -1}}},
     4},
    {CellField::kHost,
     {{{CellField::kSmKnown, 1}, {CellField::kMeasured, 1}, {CellField::kSmActive, -1}, {CellField::kStalled, -1},
       {CellField::kCommunication, -1}, {CellField::kSmallKernels, -1}}},
     6},
}};
// A clock is below the reference or above it, seldom both within a cell. Power cap and gain are stored as what is left of the loss to the clock
// without all its parts, and as the one of the two that the loss does not call for; which one that is, the other columns say.
void fold_clock(std::vector<Column>& columns, bool unfold) {
  const auto column = [&](CellField field) -> Column& { return columns[kHeadColumns + static_cast<std::size_t>(field)]; };
  Column &power = column(CellField::kClockPower), &gain = column(CellField::kClockGain);
  const Column &tensor = column(CellField::kTensorMeasured), &delivered = column(CellField::kDelivered),
               &thermal = column(CellField::kClockThermal), &setting = column(CellField::kClockSetting);
  for (std::size_t i = 0; i < power.size(); ++i) {
    const std::int64_t loss = minus(minus(minus(tensor[i], delivered[i]), thermal[i]), setting[i]);
    std::int64_t &left = power[i], &other = gain[i];
    if (unfold) {
      const std::int64_t difference = minus(loss, left), least = other;
      power[i] = loss >= 0 ? plus(least, difference) : least;
      gain[i] = loss >= 0 ? least : minus(least, difference);
    } else {
      const std::int64_t rest = minus(loss, minus(power[i], gain[i]));
      other = loss >= 0 ? gain[i] : power[i];
      left = rest;
    }
  }
}

void swap_remainders(std::vector<Column>& columns) {
  const auto column = [&](CellField field) -> Column& { return columns[kHeadColumns + static_cast<std::size_t>(field)]; };
  for (const Remainder& remainder : kRemainders) {
    Column& own = column(remainder.field);
    for (std::int64_t& value : own) value = minus(0, value);
    for (std::size_t part = 0; part < remainder.count; ++part) {
      const auto [field, sign] = remainder.of[part];
      const Column& other = column(field);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = sign > 0 ? plus(own[i], other[i]) : minus(own[i], other[i]);
    }
  }
}

class Columns {
 public:
  explicit Columns(std::size_t rows) : columns_(kCellColumns) {
    for (Column& column : columns_) column.reserve(rows);
  }
  void add(std::int64_t slot_index, std::int64_t first_id, std::int64_t second_id, const Cell& cell,
           std::int64_t slot_start) {
    columns_[0].push_back(slot_index);
    columns_[1].push_back(first_id);
    columns_[2].push_back(second_id);
    columns_[3].push_back(presence(cell));
    const auto values = packed(cell, slot_start);
    for (std::size_t i = 0; i < kCellFieldCount; ++i) columns_[kHeadColumns + i].push_back(values[i]);
  }
  std::vector<Column>& columns() { return columns_; }
  std::string finish() {
    swap_remainders(columns_);
    fold_clock(columns_, false);
    wire::ColumnWriter writer;
    for (const Column& column : columns_) writer.add(column);
    const std::string payload = writer.finish(kCompressionLevel);
    const std::uint32_t checksum = wire::crc32(payload);
    std::string block(1, kVersion);
    for (int i = 0; i < 4; ++i) block.push_back(static_cast<char>(checksum >> (8 * i) & 0xFF));
    return block + payload;
  }

 private:
  std::vector<Column> columns_;
};

struct Row {
  std::int64_t slot_start = 0;
  std::uint32_t first_id = 0;
  std::uint32_t second_id = 0;
  Cell cell;
};

base::Error corrupt(const std::string& what) { return {base::ErrorCode::kCorrupt, "block: " + what}; }

// Columns of cells, then `more` others.
base::Result<std::vector<Column>> read_columns(std::string_view block, std::size_t more) {
  if (block.empty() || (block[0] != kVersion && block[0] != kFirstVersion)) {
    return corrupt("version " + std::to_string(block.empty() ? -1 : block[0]) + ", expected 1 or 3");
  }
  const bool is_first = block[0] == kFirstVersion;
  const std::size_t count = more + (is_first ? kFirstCellColumns : kCellColumns);
  if (block.size() < kBlockHeadBytes) return corrupt("it is cut");
  std::uint32_t checksum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    checksum |= std::uint32_t{static_cast<unsigned char>(block[1 + i])} << (8 * i);
  }
  const std::string_view payload = block.substr(kBlockHeadBytes);
  if (wire::crc32(payload) != checksum) return corrupt("its checksum differs");
  wire::ColumnLimits limits;
  limits.columns_max = count;
  limits.values_max = kBlockCellsMax * kCellColumns;
  limits.bytes_max = std::size_t{1} << 30;
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Column> columns, wire::read_columns(payload, limits));
  if (columns.size() != count) {
    return corrupt(std::to_string(columns.size()) + " columns, expected " + std::to_string(count));
  }
  const std::size_t rows = columns[0].size();
  if (rows > kBlockCellsMax) return corrupt("too many rows");
  if (is_first) columns.insert(columns.begin() + kFirstCellColumns, kCellColumns - kFirstCellColumns, Column(rows, 0));
  for (std::size_t i = 0; i < kCellColumns; ++i) {
    if (columns[i].size() != rows) return corrupt("columns of different lengths");
  }
  if (!is_first) {
    swap_remainders(columns);
    fold_clock(columns, true);
  }
  return columns;
}

base::Result<Row> row_at(const std::vector<Column>& columns, std::size_t i, std::int64_t slot) {
  constexpr std::int64_t kIdMax = 0xFFFFFFFF;
  constexpr std::int64_t kSlotIndexMax = std::int64_t{1} << 40;
  Row row;
  const std::int64_t index = columns[0][i], first = columns[1][i], second = columns[2][i];
  if (index < 0 || index > kSlotIndexMax) return corrupt("a time out of range");
  if (first < 0 || first > kIdMax || second < 0 || second > kIdMax) return corrupt("an id out of range");
  row.slot_start = index * slot;
  row.first_id = static_cast<std::uint32_t>(first);
  row.second_id = static_cast<std::uint32_t>(second);
  std::array<std::int64_t, kCellFieldCount> values{};
  for (std::size_t f = 0; f < kCellFieldCount; ++f) values[f] = columns[kHeadColumns + f][i];
  row.cell = unpacked(values, columns[3][i], row.slot_start);
  return row;
}

std::int64_t slot_index(units::Instant start, std::int64_t slot) {
  FLOPSIGHT_CHECK(start.unix_milliseconds >= 0 && start.unix_milliseconds % slot == 0);
  return start.unix_milliseconds / slot;
}

// How many bins each spread has, then bins and times of all.
void add_spread(std::array<Column, 3>& into, const rollups::Spread& spread) {
  into[0].push_back(static_cast<std::int64_t>(spread.bins().size()));
  std::int64_t before = 0;
  for (const rollups::Spread::Bin& bin : spread.bins()) {
    into[1].push_back(bin.bin - before);
    into[2].push_back(bin.microseconds);
    before = bin.bin;
  }
}

base::Result<rollups::Spread> take_spread(const Column& counts, const Column& bins, const Column& times,
                                          std::size_t row, std::size_t& at) {
  const std::int64_t count = counts[row];
  if (count < 0 || static_cast<std::uint64_t>(count) > rollups::Spread::kBins ||
      at + static_cast<std::size_t>(count) > bins.size() || bins.size() != times.size()) {
    return corrupt("a spread that is cut");
  }
  std::vector<rollups::Spread::Bin> out;
  std::int64_t bin = 0;
  for (std::int64_t i = 0; i < count; ++i, ++at) {
    bin = plus(bin, bins[at]);
    if (bin < 0 || bin >= rollups::Spread::kBins) return corrupt("a spread out of range");
    out.push_back({static_cast<std::uint16_t>(bin), times[at]});
  }
  rollups::Spread spread;
  if (!spread.assign(out)) return corrupt("a spread that does not ascend");
  return spread;
}

}  // namespace

std::string encode_gpu_block(std::span<const GpuCell> cells, units::Seconds slot) {
  const std::int64_t slot_milliseconds = milliseconds(slot);
  Columns columns(cells.size());
  for (const GpuCell& cell : cells) {
    columns.add(slot_index(cell.slot_start, slot_milliseconds), cell.gpu, cell.job, cell.cell,
                cell.slot_start.unix_milliseconds);
  }
  return columns.finish();
}

std::string encode_job_block(std::span<const JobCell> cells, units::Seconds slot) {
  const std::int64_t slot_milliseconds = milliseconds(slot);
  Columns columns(cells.size());
  std::array<Column, 3> spreads;
  for (const JobCell& cell : cells) {
    columns.add(slot_index(cell.slot_start, slot_milliseconds), cell.job, cell.model, cell.cell,
                cell.slot_start.unix_milliseconds);
    add_spread(spreads, cell.spread);
  }
  for (Column& column : spreads) columns.columns().push_back(std::move(column));
  return columns.finish();
}

base::Result<std::vector<GpuCell>> decode_gpu_block(std::string_view block, units::Seconds slot) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Column> columns, read_columns(block, 0));
  std::vector<GpuCell> cells;
  cells.reserve(columns[0].size());
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const Row row, row_at(columns, i, milliseconds(slot)));
    cells.push_back({row.first_id, row.second_id, {row.slot_start}, row.cell});
  }
  return cells;
}

base::Result<std::vector<Column>> job_block_columns(std::string_view block) { return read_columns(block, 3); }
base::Result<std::vector<Column>> gpu_block_columns(std::string_view block) { return read_columns(block, 0); }

base::Result<std::vector<JobCell>> decode_job_block(std::string_view block, units::Seconds slot) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Column> columns, job_block_columns(block));
  const Column &counts = columns[kCellColumns], &bins = columns[kCellColumns + 1],
               &times = columns[kCellColumns + 2];
  if (counts.size() != columns[0].size()) return corrupt("columns of different lengths");
  std::vector<JobCell> cells;
  cells.reserve(columns[0].size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const Row row, row_at(columns, i, milliseconds(slot)));
    FLOPSIGHT_ASSIGN_OR_RETURN(rollups::Spread spread, take_spread(counts, bins, times, i, at));
    cells.push_back({row.first_id, row.second_id, {row.slot_start}, row.cell, std::move(spread)});
  }
  return cells;
}

// Small, and merged by SQL a row at a time: plain numbers, no compression.
std::string encode_spread(const rollups::Spread& spread) {
  std::string bytes;
  for (const rollups::Spread::Bin& bin : spread.bins()) {
    for (int i = 0; i < 2; ++i) bytes.push_back(static_cast<char>(bin.bin >> (8 * i) & 0xFF));
    const auto time = static_cast<std::uint64_t>(bin.microseconds);
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(time >> (8 * i) & 0xFF));
  }
  return bytes;
}

base::Result<rollups::Spread> decode_spread(std::string_view bytes) {
  constexpr std::size_t kBinBytes = 10;
  if (bytes.size() % kBinBytes != 0) return corrupt("a spread that is cut");
  std::vector<rollups::Spread::Bin> bins;
  for (std::size_t at = 0; at < bytes.size(); at += kBinBytes) {
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(bytes[at + i])}; };
    rollups::Spread::Bin bin;
    bin.bin = static_cast<std::uint16_t>(byte(0) | byte(1) << 8);
    std::uint64_t time = 0;
    for (std::size_t i = 0; i < 8; ++i) time |= byte(2 + i) << (8 * i);
    bin.microseconds = static_cast<std::int64_t>(time);
    bins.push_back(bin);
  }
  rollups::Spread spread;
  if (!spread.assign(bins)) return corrupt("a spread that does not ascend");
  return spread;
}

}  // namespace flopsight::store
