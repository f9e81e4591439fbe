#pragma once
// Columns of integers in a form that is quick to read rather than small: each value of a column in as many bytes as the largest of
// them needs, above the column's smallest. What is added up over and over (sums of jobs) is kept so; what lies for years is in
// wire/column_codec.h. Lossless for every int64. Format: docs/formats/store.md, version in the first byte.
//
// Bad input: kCorrupt, saying what differs, or kLimit; never more memory than the limits allow.
// Threads: pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::store {

struct FixedColumn {
  std::vector<std::int64_t> values;
  bool is_zero = true;  // all of them, for those who add
};

std::string write_fixed_columns(std::span<const std::vector<std::int64_t>> columns);

// Exactly `columns.size()` columns of at most `values_max` values each. What `columns` held before is overwritten, and its memory used.
base::Status read_fixed_columns(std::string_view bytes, std::size_t values_max, std::span<FixedColumn> columns);

// Version and checksum put before columns that are written already.
std::string fixed_columns_of(std::string_view written);

}  // namespace flopsight::store
