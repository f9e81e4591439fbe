#include "wire/column_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "wire/test_columns.h"
#include "wire/zstd.h"

namespace flopsight::wire {
namespace {

using base::ErrorCode;
using Column = std::vector<std::int64_t>;
using Columns = std::vector<Column>;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::string block_of(const Columns& columns, int level = 3) {
  ColumnWriter writer;
  for (const Column& column : columns) writer.add(column);
  return writer.finish(level);
}

void expect_round_trip(const Columns& columns) {
  const auto read = read_columns(block_of(columns));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, columns);
}

void expect_error(const std::string& block, ErrorCode code, const std::string& message,
                  const ColumnLimits& limits = {}) {
  const auto read = read_columns(block, limits);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, code);
  EXPECT_EQ(read.error().message, message);
}

double bytes_a_value(const Column& column) {
  return static_cast<double>(block_of({column}).size()) / static_cast<double>(column.size());
}

TEST(Columns, of_rollups_come_back_as_they_were_at_every_length) {
  for (const std::size_t size : {1U, 2U, 3U, 63U, 64U, 65U, 66U, 67U, 1'440U}) {
    Columns columns;
    for (NamedColumn& column : rollup_columns(size)) columns.push_back(std::move(column.values));
    expect_round_trip(columns);
  }
}

TEST(Columns, extremes_come_back) {
  expect_round_trip({{kMin}, {kMax}, {kMin, kMax}, {kMax, kMin}, {kMin, kMax, kMin, kMax, 0, -1}});
  expect_round_trip({{0, kMax, kMin}, {kMin, kMin + 1, kMin}, {kMax, kMax - 2}, {-1, 1, -1, 1}});
  Column walk;
  for (int i = 0; i < 300; ++i) walk.push_back(i % 3 == 0 ? kMin + i : i % 3 == 1 ? kMax - i : i);
  expect_round_trip({walk, ColumnMaker(1'000).any()});
  Column far(200, kMin);
  far[100] = kMax;
  expect_round_trip({far});
}

TEST(Columns, none_and_empty_ones_come_back) {
  expect_round_trip({});
  expect_round_trip({{}, {1}, {}});
}

TEST(Columns, one_wild_value_does_not_spoil_its_neighbours) {
  Column column = ColumnMaker(1'440).noisy(30'000, 100, 0, 65'535);
  const double calm = bytes_a_value(column);
  column[700] = kMin;
  expect_round_trip({column});
  EXPECT_LT(bytes_a_value(column), calm + 0.05);
}

TEST(Columns, a_writer_is_as_new_after_finish) {
  ColumnWriter writer;
  writer.add(Column{1, 2, 3});
  const std::string first = writer.finish(3);
  EXPECT_EQ(read_columns(writer.finish(3)).value(), Columns{});
  writer.add(Column{1, 2, 3});
  EXPECT_EQ(writer.finish(3), first);
}

TEST(ColumnSize, what_says_nothing_costs_nothing) {
  ColumnMaker make(1'440);
  EXPECT_LT(bytes_a_value(make.constant(7)), 0.01);
  EXPECT_LT(bytes_a_value(make.clock(60'000, 0)), 0.03);
  EXPECT_LT(bytes_a_value(make.sparse()), 0.06);
}

TEST(ColumnSize, what_varies_costs_little_more_than_its_entropy) {
  ColumnMaker make(1'440);
  // log2(3000 * sqrt(2 pi e)) = 13.6 bits, less what neighbours tell.
  EXPECT_LT(bytes_a_value(make.noisy(30'000, 3'000, 0, 65'535)), 1.01 * 13.6 / 8 + 0.1);
  EXPECT_LT(bytes_a_value(make.gpu_clock()), 0.17);
  EXPECT_LT(bytes_a_value(make.one_of({60'000, 59'985, 60'015})), 0.16);
  EXPECT_LT(bytes_a_value(make.any()), 8.1);
}

TEST(ColumnSize, equal_columns_are_paid_once) {
  const Column noise = ColumnMaker(1'440).noisy(30'000, 3'000, 0, 65'535);
  EXPECT_LT(block_of({noise, noise, noise, noise}).size(), block_of({noise}).size() + 60);
}

TEST(ColumnsBroken, what_is_no_block_is_corrupt) {
  expect_error("", ErrorCode::kCorrupt, "an empty block of columns");
  expect_error("\x03", ErrorCode::kCorrupt, "not a block of columns");
  expect_error("\x02zstd", ErrorCode::kCorrupt, "not a zstd frame");
  expect_error("\x01", ErrorCode::kCorrupt, "at byte 0 of the columns: the end, within a number");
  expect_error("\x01\x01\x05", ErrorCode::kCorrupt,
               "at byte 2 of the columns: the end, before a column");
  expect_error("\x01\x01\x05\x06", ErrorCode::kCorrupt,
               "at byte 3 of the columns: a column written in an unknown way");
  expect_error(std::string("\x01\x01\x05\x00\x02!", 6), ErrorCode::kCorrupt,
               "at byte 4 of the columns: bytes after the last column");
  expect_error("\x01\x01\x05\x01\x02\x01\x05\x02", ErrorCode::kCorrupt,
               "at byte 7 of the columns: an exception past the end of its column");
  // A parameter of 3, and rank 5 in a dictionary of one.
  expect_error("\x01\x01\x02\x02\x01\x02\x83\x02", ErrorCode::kCorrupt,
               "at byte 7 of the columns: a value that is not in its dictionary");
  expect_error(std::string("\x01") + std::string(9, '\xff') + "\x02", ErrorCode::kCorrupt,
               "at byte 9 of the columns: a number of more than 64 bits");
}

TEST(ColumnsBroken, a_length_that_its_bytes_cannot_hold_is_found_before_memory_is_taken) {
  // 2^24 values as differences, and not a byte of them.
  expect_error(std::string("\x01\x01\x80\x80\x80\x08\x04\x00\x01\x00", 10), ErrorCode::kCorrupt,
               "at byte 6 of the columns: the end, before all values of a column");
}

TEST(ColumnsBroken, a_block_cut_short_anywhere_is_no_block) {
  Columns columns;
  for (NamedColumn& column : rollup_columns(70)) columns.push_back(std::move(column.values));
  for (const Columns& some : {columns, Columns{{1, 2, 3}, {9}, {5, 5, 5, 9}}}) {
    const std::string block = block_of(some);
    for (std::size_t size = 0; size < block.size(); ++size) {
      const auto read = read_columns(block.substr(0, size));
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    }
    std::string payload;
    if (zstd_decompress(block.substr(1), 1 << 20, payload).ok()) {
      for (std::size_t size = 0; size < payload.size(); ++size) {
        EXPECT_FALSE(read_columns("\x01" + payload.substr(0, size)).ok());
      }
    }
  }
}

TEST(ColumnsLimits, at_them_a_block_is_read_and_past_them_it_is_not) {
  const std::string block = block_of({{1, 2, 3}, {4, 5}});
  EXPECT_TRUE(read_columns(block, {.columns_max = 2, .values_max = 5}).ok());
  expect_error(block, ErrorCode::kLimit, "more than 1 columns", {.columns_max = 1});
  expect_error(block, ErrorCode::kLimit, "more than 4 values", {.values_max = 4});
  expect_error(block, ErrorCode::kLimit, "more than 9 bytes of columns", {.bytes_max = 9});
  const std::string packed = block_of(Columns(500, {1, 2, 3}));
  ASSERT_EQ(packed.front(), '\x02');
  EXPECT_EQ(read_columns(packed, {.bytes_max = 900}).error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::wire
