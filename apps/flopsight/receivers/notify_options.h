#pragma once
// The options of `flopsight notify`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <optional>
#include <string>

#include "detect/finding.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct NotifyArguments {
  std::string config_path;
  std::string receiver;  // only this one; empty: all but commands
  detect::Severity severity = detect::Severity::kWarning;
};

// As text; turned into settings after parsing.
struct NotifyTexts {
  std::string severity = "warning";
};

void add_notify(CLI::App& app, NotifyArguments& arguments, NotifyTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_notify(NotifyArguments& arguments, const NotifyTexts& texts);

}  // namespace flopsight::app
