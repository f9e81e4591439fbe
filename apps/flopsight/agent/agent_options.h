#pragma once
// The options of `flopsight agent`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <optional>
#include <string>

#include "units/units.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct AgentArguments {
  std::string listen = "127.0.0.1:9401";
  units::Seconds interval{1};
  bool once = false;  // one page on standard output, and no server
  std::string library_path;
  std::string root;
  std::string host;
  bool no_jobs = false;
  std::string catalog_path;
  std::string web_config;
  std::string tokens_path;
  bool allow_insecure = false;
};

// As text; turned into settings after parsing.
struct AgentTexts {
  std::string interval = "1s";
};

void add_agent(CLI::App& app, AgentArguments& arguments, AgentTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_agent(AgentArguments& arguments, const AgentTexts& texts);

}  // namespace flopsight::app
