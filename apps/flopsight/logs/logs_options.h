#pragma once
// The options of `flopsight logs`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace flopsight::app {

struct LogsArguments {
  std::vector<std::string> files;  // "-" is standard input
  bool json = false;
  bool steps = false;  // with json: every step that is kept
  std::string zone;
  std::string patterns_path;
  std::string log_format;  // only this one
  std::optional<std::uint32_t> warm_up_steps;
};

// As text; turned into settings after parsing.
struct LogsTexts {
  std::string format = "table";
};

void add_logs(CLI::App& app, LogsArguments& arguments, LogsTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_logs(LogsArguments& arguments, const LogsTexts& texts);

}  // namespace flopsight::app
