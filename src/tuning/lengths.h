#pragma once
// Lengths of documents or outputs: CSV with the columns tokens and count. Threads: pure.

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "tuning/advice.h"

namespace flopsight::tuning {

inline constexpr std::size_t kLengthsMax = 1'000'000;

// Errors: kInvalid with line and column; kLimit for more than kLengthsMax rows.
base::Result<Histogram> read_lengths(std::string_view csv);

}  // namespace flopsight::tuning
