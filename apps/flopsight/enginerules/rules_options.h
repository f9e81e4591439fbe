#pragma once
// The options of `flopsight rules`: registered with the parser and checked, one line for each mistake. Reads no file.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "units/units.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct RulesArguments {
  bool grafana = false;  // else a rule file for Prometheus
  std::string out;       // empty: standard output
  bool force = false;    // write over a file that is there
  units::Seconds interval{60};
  units::Seconds scrape_interval{30};
  std::string match;
  std::vector<std::string> group_by;
  std::vector<std::pair<std::string, units::Hertz>> clocks;
  std::vector<std::string> gpus;  // only these models
  std::string gpu_label = "UUID", model_label = "modelName";
  std::string rules_path, catalog_path;
  bool has_alerts = true;
};

// As text; turned into settings after parsing.
struct RulesTexts {
  std::string target, interval = "1m", scrape_interval = "30s";
  std::vector<std::string> clocks;
  std::vector<std::string> of_rules;  // options that were given and say something of the rules alone
};

void add_rules(CLI::App& app, RulesArguments& arguments, RulesTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_rules(RulesArguments& arguments, const RulesTexts& texts);

}  // namespace flopsight::app
