#pragma once
// A file of sources: which logs a service follows, and whose they are.
//
//   training-logs:
//     - {path: "/logs/*/job-*/out.log", job-regex: "/job-(?P<job>\\d+)/", zone: Europe/Berlin}
//
// Limit: 1,000 sources. Threads: pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::training_logs {

inline constexpr std::size_t kLogSourcesMax = 1'000;

// One entry of a file of sources (docs/training-logs.md).
struct LogSource {
  std::string path;       // with * ? [ ]
  std::string job;        // fixed; or by the group `job` of job_regex on the path
  std::string job_regex;
  std::string format;     // empty: whichever matches
  std::string zone;       // empty: dates without an offset are no times
  std::string pattern_file;
  int line = 0;
};
// Errors: kInvalid and kLimit, "line L: what was found, what was expected". Opens nothing.
base::Result<std::vector<LogSource>> parse_log_sources(std::string_view yaml);

}  // namespace flopsight::training_logs
