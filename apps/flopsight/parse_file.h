#pragma once
// A file read and parsed; the parser's mistake with the path in front.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace flopsight::app {

// What people write by hand or a script for them: prices, jobs, rules.
inline constexpr std::size_t kParsedFileBytesMax = std::size_t{256} << 20;

template <typename T>
base::Result<T> parse_file(const std::string& path, base::Result<T> (*parse)(std::string_view)) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text, base::read_file(path, kParsedFileBytesMax));
  return parse(text).within(path);
}

// Into `value`, where a path is given.
template <typename T>
base::Status parse_file_if(const std::string& path, base::Result<T> (*parse)(std::string_view), T& value) {
  if (path.empty()) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(value, parse_file(path, parse));
  return {};
}

}  // namespace flopsight::app
