#pragma once
// gzip and zlib streams (zlib underneath). Limits guard against a small file that inflates without end.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::wire {

bool looks_like_gzip(std::string_view bytes);

// Inflates one or more concatenated gzip members. Errors: kCorrupt ("at byte N"), kLimit when the output
// would pass bytes_max.
base::Result<std::string> gunzip(std::string_view bytes, std::size_t bytes_max);

std::string gzip(std::string_view bytes, int level = 6);

}  // namespace flopsight::wire
