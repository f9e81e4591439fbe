#include "store/job_columns.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "store/gpu_runs.h"
#include "wire/column_codec.h"
#include "wire/crc32.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;

constexpr std::int64_t kHour = 3'600'000;
const units::Seconds kSlot(3600);

// Cells with some fields, none, or all of what there can be.
std::vector<JobCell> some_cells(std::mt19937_64& random, std::size_t count) {
  std::vector<JobCell> cells;
  for (std::size_t i = 0; i < count; ++i) {
    JobCell cell{static_cast<JobId>(i / 2), static_cast<ModelId>(1 + i % 2), {kHour * static_cast<std::int64_t>(random() % 3)}, {}, {}};
    for (std::size_t f = 0; f < rollups::kCellFieldCount; ++f) {
      const auto field = static_cast<CellField>(f);
      if (rollups::cell_fields()[f].merge != rollups::Merge::kSum || random() % 2 == 0) continue;
      cell.cell[field] = static_cast<std::int64_t>(random() >> (1 + random() % 63)) - 1000;
    }
    if (random() % 2 == 0) {
      for (const CellField field : {CellField::kOfuMin, CellField::kOfuMax, CellField::kOfuLast}) {
        cell.cell[field] = static_cast<std::int64_t>(random() % 1'000'000);
      }
      cell.cell[CellField::kOfuLastTime] = cell.slot_start.unix_milliseconds + static_cast<std::int64_t>(random() % 5);
    }
    if (random() % 2 == 0) cell.cell[CellField::kClockMin] = cell.cell[CellField::kClockMax] = static_cast<std::int64_t>(random() % 2'000);
    if (random() % 2 == 0) cell.cell[CellField::kHoldersMax] = static_cast<std::int64_t>(random() % 3);
    for (std::uint64_t bins = random() % 4; bins > 0; --bins) cell.spread.add(static_cast<double>(random() % 120) / 100, 1 + static_cast<std::int64_t>(random() % 1'000'000));
    cells.push_back(std::move(cell));
  }
  return cells;
}

// What was written before there were causes of losses: the same columns without the last.
TEST(Block, blocks_of_the_first_version_are_read_and_have_no_causes) {
  std::mt19937_64 random(8);
  std::vector<JobCell> cells = some_cells(random, 30);
  const std::string now = encode_job_block(cells, kSlot);
  wire::ColumnLimits limits;
  limits.columns_max = kCellColumns + 3;
  auto columns = wire::read_columns(now.substr(5), limits);
  ASSERT_TRUE(columns.ok()) << columns.error().message;
  columns->erase(columns->begin() + kFirstCellColumns, columns->begin() + kCellColumns);
  wire::ColumnWriter writer;
  for (const auto& column : *columns) writer.add(column);
  const std::string payload = writer.finish(3);
  std::string first(1, '\x01');
  for (int i = 0; i < 4; ++i) first.push_back(static_cast<char>(wire::crc32(payload) >> (8 * i) & 0xFF));
  const auto read = decode_job_block(first + payload, kSlot);
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<std::vector<std::int64_t>> sums(kFirstCellColumns);
  for (JobCell& cell : cells) {
    for (std::size_t f = rollups::kFirstCellFieldCount; f < rollups::kCellFieldCount; ++f) cell.cell[static_cast<CellField>(f)] = 0;
    const std::int64_t start = cell.slot_start.unix_milliseconds;
    const PackedCell values = packed(cell.cell, start);
    const std::int64_t head[] = {start / kHour, cell.job, cell.model, presence(cell.cell)};
    for (std::size_t i = 0; i < kFirstCellColumns; ++i) sums[i].push_back(i < kHeadColumns ? head[i] : values[i - kHeadColumns]);
  }
  JobColumns of_sums;
  ASSERT_TRUE(of_sums.read_sums(write_fixed_columns(sums), kSlot).ok());
  ASSERT_EQ(read->size(), cells.size());
  ASSERT_EQ(of_sums.size(), cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ((*read)[i].cell, cells[i].cell) << i;
    EXPECT_EQ(of_sums.cell(i), cells[i].cell) << i;
  }
}

TEST(JobColumns, sums_are_read_as_they_were_written_and_added_as_cells_are_merged) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 200; ++round) {
    const std::vector<JobCell> cells = some_cells(random, random() % 40);
    JobColumns columns;
    ASSERT_TRUE(columns.read_sums(encode_job_sums(cells, kSlot), kSlot).ok());
    JobColumns small;
    ASSERT_TRUE(small.read_block(encode_job_block(cells, kSlot), kSlot).ok());
    ASSERT_EQ(columns.size(), cells.size());
    std::vector<Cell> merged(5), added(5), added_small(5);
    std::vector<Cell*> targets, small_targets;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      EXPECT_EQ(columns.job(i), cells[i].job);
      EXPECT_EQ(columns.model(i), cells[i].model);
      EXPECT_EQ(columns.slot_start(i), cells[i].slot_start);
      ASSERT_TRUE(columns.cell(i) == cells[i].cell);
      const std::size_t to = random() % 6;
      targets.push_back(to == 5 ? nullptr : &added[to]);
      small_targets.push_back(to == 5 ? nullptr : &added_small[to]);
      if (to != 5) merged[to].merge(cells[i].cell);
    }
    columns.add_to(targets);
    small.add_to(small_targets);
    EXPECT_TRUE(added == merged);
    EXPECT_TRUE(added_small == merged);
  }
}

TEST(JobColumns, spreads_are_read_as_they_were_written) {
  std::mt19937_64 random(22);
  const std::vector<JobCell> cells = some_cells(random, 100);
  const auto spreads = decode_job_spreads(encode_job_spreads(cells, kSlot), kSlot);
  ASSERT_TRUE(spreads.ok()) << spreads.error().message;
  ASSERT_EQ(spreads->size(), cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ((*spreads)[i].job, cells[i].job);
    EXPECT_TRUE((*spreads)[i].spread == cells[i].spread);
  }
}

TEST(JobColumns, any_byte_that_is_changed_is_noticed) {
  std::mt19937_64 random(23);
  const std::string bytes = encode_job_sums(some_cells(random, 9), kSlot);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    JobColumns columns;
    const auto read = columns.read_sums(damaged, kSlot);
    ASSERT_FALSE(read.ok()) << i;
    EXPECT_EQ(read.error().code, base::ErrorCode::kCorrupt);
    EXPECT_EQ(columns.size(), 0U);
  }
}

TEST(FixedColumns, every_width_and_the_ends_of_the_range_are_kept) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> columns = {{}, {0, 0}, {5}, {kMin, kMax, 0}, {kMin, kMin}, {-1, 0, 1}};
  for (int bits = 0; bits < 63; ++bits) columns.push_back({-7, -7 + (std::int64_t{1} << bits)});
  std::vector<FixedColumn> read(columns.size());
  ASSERT_TRUE(read_fixed_columns(write_fixed_columns(columns), 3, read).ok());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_EQ(read[i].values, columns[i]);
    EXPECT_EQ(read[i].is_zero, i < 2) << i;
  }
  const auto over = read_fixed_columns(write_fixed_columns(columns), 2, read);
  EXPECT_EQ(over.error().code, base::ErrorCode::kLimit);
  EXPECT_FALSE(read_fixed_columns(write_fixed_columns(columns), 3, std::span(read).subspan(1)).ok());
}

TEST(GpuRuns, numbers_come_back_and_neighbours_cost_nothing) {
  std::mt19937_64 random(24);
  for (int round = 0; round < 200; ++round) {
    std::vector<GpuId> gpus;
    GpuId next = static_cast<GpuId>(random() % 1'000'000);
    for (std::uint64_t left = random() % 300; left > 0; --left) {
      gpus.push_back(next);
      next += static_cast<GpuId>(random() % 4 == 0 ? 1 + random() % 9'000 : 1);
    }
    const auto read = decode_gpu_runs(encode_gpu_runs(gpus));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, gpus);
  }
  std::vector<GpuId> whole(512);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<GpuId>(70'000 + i);
  EXPECT_LE(encode_gpu_runs(whole).size(), 5U);
}

TEST(GpuRuns, what_no_fleet_has_is_refused) {
  const std::string cut("\x01", 1), none("\x01\x00", 2), long_run("\x00\xff\xff\xff\xff\x7f", 6);
  for (const std::string& bytes : {cut, none, long_run}) {
    EXPECT_EQ(decode_gpu_runs(bytes).error().code, base::ErrorCode::kCorrupt);
  }
  std::vector<GpuId> most{1};
  std::string bytes = encode_gpu_runs(most);
  EXPECT_TRUE(decode_gpu_runs(std::string("\x00\x80\xc8\xd0\x07", 5)).ok());   // kRunGpusMax
  EXPECT_FALSE(decode_gpu_runs(std::string("\x00\x81\xc8\xd0\x07", 5)).ok());  // and one more
}

}  // namespace
}  // namespace flopsight::store
