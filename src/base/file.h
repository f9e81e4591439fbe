#pragma once
// Files of the real disk, read whole. Errors name the path: kNotFound, kLimit, kIo.

#include <cstddef>
#include <string>

#include "base/result.h"

namespace flopsight::base {

// "-" reads standard input.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = std::size_t{1} << 30);

}  // namespace flopsight::base
