#pragma once
// What `flopsight flops` says, before it is written down as a table or JSON.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "flopcount/flops_options.h"
#include "flops/conventions.h"

namespace flopsight::app {

struct ConventionRow {
  const flops::Convention* convention = nullptr;
  flops::ConventionCost cost;
};

struct FlopsAnswer {
  flops::Model model;
  flops::Workload workload;
  flops::Parameters parameters;
  flops::Cache cache;
  flops::Cost forward;   // audit_causal, by part
  flops::Cost train;
  flops::Cost executed;  // with the recompute that was asked for
  flops::Recompute recompute = flops::Recompute::kNone;
  std::optional<flops::Cost> vision_forward_per_image;
  bool has_text = true;  // false: a tower and nothing else
  std::uint64_t adapter_parameters = 0;
  std::vector<ConventionRow> conventions;
  std::vector<std::string> assumptions;
};

// Forward FLOPs of a layer in all its runs: for a token of text, or for the image where it is the tower's.
double layer_forward_flops(const FlopsAnswer& answer, const flops::Layer& layer);

// Errors: of the file, or an option that does not fit the model.
base::Result<FlopsAnswer> flops_answer(const FlopsArguments& arguments);

std::string flops_json(const FlopsAnswer& answer);
std::string flops_table(const FlopsAnswer& answer);

}  // namespace flopsight::app
