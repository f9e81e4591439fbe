#pragma once
// Settings of `flopsight jobs import|list|show`.

#include <optional>
#include <string>
#include <vector>

#include "units/time.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct JobsArguments {
  enum class Action { kImport, kList, kShow };
  Action action = Action::kList;
  std::vector<std::string> files;  // "-" is standard input
  std::string store = "flopsight-data";
  std::string cluster;
  std::string zone;  // of times without an offset; empty: none is known
  bool dry_run = false;
  bool json = false;
  bool csv = false;  // of a list
  std::string id;
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  std::uint64_t limit = 1'000;
};

struct JobsTexts {
  std::string start, end, since, format = "table";
};

// Adds import, list and show to `app`.
void add_jobs(CLI::App& app, JobsArguments& a, JobsTexts& t);
// What is wrong, in one line.
std::optional<std::string> set_jobs(const CLI::App& app, JobsArguments& a, const JobsTexts& t);

}  // namespace flopsight::app
