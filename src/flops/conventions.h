#pragma once
// What different trainers and papers call the FLOPs of a token. Each is a set of CountingRules, or a formula over parameter counts
// and attention cores, applied to the same description; none repeats a formula of a layer. A figure is "what that framework
// would print for this model", right or wrong; audit_causal is the one to trust.
//
// Threads: pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flops/count.h"

namespace flopsight::flops {

// Per token; absent with the reason where the convention has no figure for the model.
struct ConventionCost {
  std::optional<double> flops_forward;
  std::optional<double> flops_train;
  std::string absent_reason;
};

struct Convention {
  std::string_view name;    // in JSON: "audit_causal"
  std::string_view counts;  // in a line: what is peculiar to it
  std::string_view source;  // where the formula stands
  ConventionCost (*cost)(const Model& model, const Workload& workload) = nullptr;
  // The rules it follows, where it is a set of rules and nothing else.
  std::optional<CountingRules> (*rules)(const Model& model) = nullptr;
  // For a formula: the rules that come nearest to it, which say what it leaves out and adds for this model.
  CountingRules (*nearest)(const Model& model) = nullptr;
};

const std::vector<Convention>& conventions();
// Whether it counts packed documents that do not see each other each by itself. The others take the sequence for one document, as their
// program does.
bool knows_documents(const Convention& convention);
// Whether its figure of the workload is that of another one: of one document, where there are several and attention is counted.
bool takes_for_one_document(const Convention& convention, const Model& model, const Workload& workload);
// The convention's figure of what it knows of the workload, absent for a model that is a tower and nothing else.
ConventionCost convention_cost(const Convention& convention, const Model& model, const Workload& workload);
// Its own rules or, of a formula, those that come nearest to it.
CountingRules nearest_rules(const Convention& convention, const Model& model);
const Convention* find_convention(std::string_view name);  // nullptr if there is none

}  // namespace flopsight::flops
