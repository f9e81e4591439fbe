#pragma once
// What the files of the book of jobs share.

#include <cstdint>
#include <string>

#include "store/job_book.h"

namespace flopsight::store {

// In end_unix_milliseconds of a job that has none.
inline constexpr std::int64_t kNoEnd = INT64_MAX;

// Of the columns `told` and `told_unix_milliseconds`, the first of which is column `first` of the row.
base::Result<ToldJob> told_in(const Statement& row, int first);

// The column `hosts`: names of all hosts of a run, each once; empty where the scheduler left some out.
std::string hosts_text(const schedulers::Job& job);

}  // namespace flopsight::store
