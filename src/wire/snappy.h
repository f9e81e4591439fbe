#pragma once
// Snappy block format, as remote write uses it (not the framing format).
// Threads: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::wire {

// The uncompressed bytes. Errors: kInvalid when it is no snappy block; kLimit when its header announces more than
// bytes_max (nothing is allocated then). `into` is overwritten and keeps its capacity between calls.
base::Status snappy_decompress(std::string_view compressed, std::size_t bytes_max, std::string& into);

std::string snappy_compress(std::string_view bytes);

}  // namespace flopsight::wire
