#pragma once
// The options of `flopsight import`: registered with the parser and checked, one line for each mistake. Reads no file
// and no clock.

#include <optional>
#include <string>
#include <vector>

#include "http_arguments.h"
#include "units/time.h"

namespace flopsight::app {

struct ImportArguments : HttpArguments {
  std::string store;
  std::string config_path;  // of serve: store, slot, rules, catalogue
  // Exactly one of the three.
  std::vector<std::string> files;
  std::string prometheus;
  std::string victoria_metrics;
  std::string match;  // further label matchers
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  std::optional<units::Seconds> step;  // with prometheus: evaluated at it, instead of raw samples
  std::string rules_path;
  std::string catalog_path;
  bool quiet = false;
};

// As text; turned into settings after parsing.
struct ImportTexts : HttpTexts {
  std::string start, end, since, step;
};

void add_import(CLI::App& app, ImportArguments& arguments, ImportTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_import(ImportArguments& arguments, const ImportTexts& texts);

}  // namespace flopsight::app
