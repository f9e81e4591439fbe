#pragma once
// Columns of integers, small: what a block of rollups is stored as. Lossless for every int64.
//
// Each column is written in whichever of six ways is the shortest: one value; a common value and its exceptions; a
// dictionary; or, after scaling by the greatest common divisor, the values, their differences or the differences of
// those. Numbers that vary are Rice codes with a parameter for each 64 values: noise costs its entropy and a tenth of a
// bit, where bytes for zstd to squeeze cost a quarter more (column_codec_bench). zstd around it all finds columns that
// repeat.
//
// Threads: one ColumnWriter, one thread; read_columns is a pure function.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::wire {

class ColumnWriter {
 public:
  void add(std::span<const std::int64_t> column);
  // The block of all columns added, in their order. The writer is as new afterwards. level: as in zstd.h.
  std::string finish(int zstd_level);

 private:
  std::string payload_;
  std::uint64_t columns_ = 0;
};

struct ColumnLimits {
  std::size_t columns_max = 4'096;
  std::size_t values_max = std::size_t{1} << 24;  // of all columns
  std::size_t bytes_max = std::size_t{1} << 27;   // after zstd
};

// Errors: kCorrupt when it is no block, kLimit when it holds more than the limits say. No more memory is taken than
// they allow. Changed bytes may still be a block: whoever stores blocks keeps a checksum.
base::Result<std::vector<std::vector<std::int64_t>>> read_columns(std::string_view block,
                                                                  const ColumnLimits& limits = {});

}  // namespace flopsight::wire
