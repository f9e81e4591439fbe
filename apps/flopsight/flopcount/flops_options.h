#pragma once
// The options of `flopsight flops`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flops/count.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct FlopsArguments {
  std::string config_path;  // a config.json, a folder that has one, or "-"
  std::optional<std::uint64_t> sequence_tokens;
  std::string convention = "audit_causal";  // or "all"
  std::uint64_t adapter_rank = 0;           // 0: no adapters
  std::vector<std::string> adapter_targets = {"all"};
  std::uint64_t prediction_steps = 0;
  flops::Recompute recompute = flops::Recompute::kNone;
  std::vector<std::string> ignored_keys;
  bool json = false;
};

// As text; turned into settings after parsing.
struct FlopsTexts {
  std::string recompute = "none", format = "table", targets;
};

void add_flops(CLI::App& app, FlopsArguments& arguments, FlopsTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_flops(FlopsArguments& arguments, const FlopsTexts& texts);

}  // namespace flopsight::app
