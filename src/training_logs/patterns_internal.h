#pragma once
// A user's pattern on a line.

#include <optional>
#include <string_view>

#include "training_logs/formats_internal.h"
#include "training_logs/line_internal.h"
#include "training_logs/patterns.h"

namespace flopsight::training_logs {

struct PatternMatch {
  std::size_t pattern = 0;
  Extract extract;
  std::optional<PrintedTime> time;
  std::optional<std::int64_t> rank;
};

// The first pattern that matches.
std::optional<PatternMatch> match(const PatternFile& patterns, std::string_view text);

// "%Y-%m-%d %H:%M:%S,%f", "unix", "unix_ms", "rfc3339"; the whole text has to fit.
std::optional<PrintedTime> read_time(std::string_view text, std::string_view format);

}  // namespace flopsight::training_logs
