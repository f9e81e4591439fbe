#pragma once
// What the files of the book of jobs share.

#include <cstdint>

#include "store/job_book.h"

namespace flopsight::store {

// In end_unix_milliseconds of a job that has none.
inline constexpr std::int64_t kNoEnd = INT64_MAX;

// Of the columns `told` and `told_unix_milliseconds`, the first of which is column `first` of the row.
base::Result<ToldJob> told_in(const Statement& row, int first);

}  // namespace flopsight::store
