#pragma once
// One zstd frame. Its header says how long the bytes are, and no frame without that is taken.
// Threads: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::wire {

// level: 1 (fast) to 19 (small), checked.
std::string zstd_compress(std::string_view bytes, int level);

// The uncompressed bytes. Errors: kCorrupt when it is no whole frame, or more than one; kLimit when its header announces
// more than bytes_max (nothing is allocated then). `into` is overwritten and keeps its capacity between calls.
base::Status zstd_decompress(std::string_view compressed, std::size_t bytes_max, std::string& into);

}  // namespace flopsight::wire
