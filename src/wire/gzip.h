#pragma once
// gzip and zlib streams (zlib underneath). Limits guard against a small file that inflates without end.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::wire {

bool looks_like_gzip(std::string_view bytes);

// Inflates one zlib stream, or one or more gzip members one after another; nothing else may follow.
// Errors: kCorrupt ("at byte N: …", N counted in the input), kLimit when the output would pass bytes_max.
base::Result<std::string> gunzip(std::string_view bytes, std::size_t bytes_max);

// One gzip member without a time stamp, so equal bytes give equal output. level: 0 to 9 (checked).
std::string gzip(std::string_view bytes, int level = 6);

}  // namespace flopsight::wire
