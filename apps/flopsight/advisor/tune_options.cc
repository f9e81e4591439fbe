#include "advisor/tune_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "tuning/fabric.h"
#include "number_options.h"

namespace flopsight::app {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kLinkGigabytesMax = 1e6;
constexpr double kPriceMax = 1e6;

std::string fabric_names() {
  std::string out;
  for (const tuning::Fabric& fabric : tuning::fabrics()) out += (out.empty() ? "" : ", ") + std::string(fabric.name);
  return out;
}

}  // namespace

void add_tune_common(CLI::App& app, TuneCommon& a, TuneCommonTexts& t) {
  app.add_option("--config", a.config_path, "config.json of the model, a folder that has one, or -");
  app.add_option("--gpu", a.gpu, "a GPU by its name; there is no default");
  app.add_option("--fabric", t.fabric, "links between GPUs: " + fabric_names() + " (default: the GPU's reference system)")->group("Links");
  app.add_option("--node-gpus", a.node_gpus, "GPUs that reach each other by the fast link")->check(CLI::Range(std::uint64_t{1}, tuning::kGpusMax))->group("Links");
  in_range(app.add_option("--node-gb-per-second", t.node_rate, "of a GPU inside a node, one direction"), 1e-3, kLinkGigabytesMax)->group("Links");
  in_range(app.add_option("--network-gb-per-second", t.network_rate, "of a GPU's share of the network, one direction"), 1e-3, kLinkGigabytesMax)->group("Links");
  in_range(app.add_option("--usd-per-gpu-hour", t.price, "price of a GPU-hour, for gains in dollars; there is no default"), 0.0, kPriceMax);
  app.add_option("--ignore-key", a.ignored_keys, "a key of the configuration that is not known here, and leaves the model alone");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_option("--format", t.format, "table|json|html")->capture_default_str();
}

std::optional<std::string> set_tune_common(TuneCommon& a, const TuneCommonTexts& t, const std::optional<std::uint64_t>& gpus) {
  if (t.format != "table" && t.format != "json" && t.format != "html") return "--format " + base::printable(t.format, 40) + ": expected table, json or html";
  a.format = t.format == "json" ? TuneFormat::kJson : t.format == "html" ? TuneFormat::kHtml : TuneFormat::kTable;
  if (a.config_path.empty()) return "--config: expected the config.json of the model";
  if (a.gpu.empty()) return "--gpu: expected the name of a GPU; there is no default";
  if (!gpus) return "--gpus: expected how many GPUs there are";
  if (*gpus == 0 || *gpus > tuning::kGpusMax) return "--gpus " + std::to_string(*gpus) + ": expected 1 to " + std::to_string(tuning::kGpusMax);
  a.gpus = *gpus;
  if (!t.fabric.empty() && !tuning::find_fabric(t.fabric)) return "--fabric " + base::printable(t.fabric, 40) + ": expected " + fabric_names();
  a.fabric = t.fabric;
  if (t.node_rate) a.node_bytes_per_second = *t.node_rate * kGigabyte;
  if (t.network_rate) a.network_bytes_per_second = *t.network_rate * kGigabyte;
  a.usd_per_gpu_hour = t.price;
  return std::nullopt;
}

void add_tune(CLI::App& app, TuneArguments& a, TuneTexts& t) {
  app.require_subcommand(1, 1);
  add_tune_train(*app.add_subcommand("train", "training: predicted step time by part, memory, and what to change next"), a.train, t.train);
  add_tune_serve(*app.add_subcommand("serve", "inference: latency, throughput, memory, and what to change next"), a.serve, t.serve);
  add_tune_verify(*app.add_subcommand("verify", "what a change did gain, beside what was predicted, kept in a file"), a.verify, t.verify);
}

std::optional<std::string> set_tune(const CLI::App& app, TuneArguments& a, const TuneTexts& t) {
  using Action = TuneArguments::Action;
  a.action = app.got_subcommand("serve") ? Action::kServe : app.got_subcommand("verify") ? Action::kVerify : Action::kTrain;
  if (a.action == Action::kVerify) return set_tune_verify(a.verify, t.verify);
  return a.action == Action::kServe ? set_tune_serve(a.serve, t.serve) : set_tune_train(a.train, t.train);
}

}  // namespace flopsight::app
