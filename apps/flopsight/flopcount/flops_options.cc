#include "flopcount/flops_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "flops/adapters.h"
#include "flops/conventions.h"

namespace flopsight::app {
namespace {

constexpr std::uint64_t kSequenceTokensMax = std::uint64_t{1} << 32;
constexpr std::uint64_t kPredictionStepsMax = 64;

}  // namespace

void add_flops(CLI::App& app, FlopsArguments& a, FlopsTexts& t) {
  app.add_option("config", a.config_path, "config.json of a model, a folder that has one, or - for stdin")->required();
  app.add_option("--seq-len", a.sequence_tokens, "tokens of a training sequence (default: 4096, or as many positions as the model has)")
      ->check(CLI::Range(std::uint64_t{1}, kSequenceTokensMax));
  app.add_option("--convention", a.convention, "what to count, by name, or all")->capture_default_str();
  app.add_option("--lora-rank", a.adapter_rank, "train adapters of this rank, the weights are frozen")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{65536}));
  app.add_option("--lora-targets", t.targets, "with --lora-rank: of q,k,v,o,gate,up,down,experts,in,out (default: all but experts)");
  app.add_option("--mtp", a.prediction_steps, "multi-token prediction steps that are trained (default: 0)")->check(CLI::Range(std::uint64_t{0}, kPredictionStepsMax));
  app.add_option("--recompute", t.recompute, "none|selective|full: what is run forward again in the backward pass")->capture_default_str();
  app.add_option("--ignore-key", a.ignored_keys, "a key of the configuration that is not known here, and leaves the count alone");
  app.add_option("--format", t.format, "table|json")->capture_default_str();
}

std::optional<std::string> set_flops(FlopsArguments& a, const FlopsTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + t.format + ": expected table or json";
  a.json = t.format == "json";
  if (t.recompute == "selective") {
    a.recompute = flops::Recompute::kSelective;
  } else if (t.recompute == "full") {
    a.recompute = flops::Recompute::kFull;
  } else if (t.recompute != "none") {
    return "--recompute " + base::printable(t.recompute, 40) + ": expected none, selective or full";
  }
  if (a.convention != "all" && flops::find_convention(a.convention) == nullptr) {
    std::string names;
    for (const flops::Convention& convention : flops::conventions()) names += std::string(convention.name) + ", ";
    return "--convention " + base::printable(a.convention, 40) + ": expected " + names + "or all";
  }
  if (!t.targets.empty()) {
    if (a.adapter_rank == 0) return "--lora-targets needs --lora-rank";
    a.adapter_targets = base::split(t.targets, ',');
  }
  return std::nullopt;
}

}  // namespace flopsight::app
