#include "flops/adapters.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/text.h"

namespace flopsight::flops {
namespace {

constexpr std::uint64_t kRankMax = 65536;
constexpr std::array<std::string_view, 11> kTargets = {"q", "k", "v", "o", "gate", "up", "down", "experts", "in", "out", "all"};

// The target that a weight belongs to; empty: none.
std::string_view target_of(const Matmul& m) {
  switch (m.operation) {
    case Operation::kQuery:
    case Operation::kOutputGate:
    case Operation::kQueryDown:
    case Operation::kQueryUp: return "q";
    case Operation::kKey: return "k";
    case Operation::kValue:
    case Operation::kKeyValueDown:
    case Operation::kKeyValueUp: return "v";
    case Operation::kAttentionOutput: return "o";
    case Operation::kGate: return m.expert == Expert::kRouted ? "experts" : "gate";
    case Operation::kUp: return m.expert == Expert::kRouted ? "experts" : "up";
    case Operation::kDown: return m.expert == Expert::kRouted ? "experts" : "down";
    case Operation::kRecurrentIn: return "in";
    case Operation::kRecurrentOut: return "out";
    default: return "";
  }
}

void add_adapters(Layer& layer, std::uint64_t rank, const std::set<std::string, std::less<>>& targets) {
  const bool all = targets.contains("all");
  std::vector<Matmul> added;
  for (Matmul& m : layer.matmuls) {
    m.training = Training::kFrozen;
    const std::string_view target = target_of(m);
    if (target.empty() || !(targets.contains(target) || (all && target != "experts"))) continue;
    Matmul down = m;
    down.operation = Operation::kAdapterDown;
    down.training = Training::kTrained;
    down.split = Split::kNone;
    down.out = rank;
    Matmul up = down;
    up.operation = Operation::kAdapterUp;
    up.in = rank;
    up.out = m.out;
    added.push_back(down);
    added.push_back(up);
  }
  layer.matmuls.insert(layer.matmuls.end(), added.begin(), added.end());
}

bool is_adapter(const Matmul& m) { return m.operation == Operation::kAdapterDown || m.operation == Operation::kAdapterUp; }

}  // namespace

base::Result<Model> with_adapters(const Model& model, const Adapters& adapters) {
  if (adapters.rank < 1 || adapters.rank > kRankMax) {
    return base::Error{base::ErrorCode::kInvalid, "rank of adapters " + std::to_string(adapters.rank) + ": expected 1 to " + std::to_string(kRankMax)};
  }
  std::set<std::string, std::less<>> targets;
  for (const std::string& target : adapters.targets) {
    if (std::find(kTargets.begin(), kTargets.end(), target) == kTargets.end()) {
      return base::Error{base::ErrorCode::kInvalid, "target of adapters " + base::printable(target, 40) + ": expected q, k, v, o, gate, up, down, experts, in, out or all"};
    }
    targets.insert(target);
  }
  Model trained = model;
  for (Layer& layer : trained.layers) {
    if (layer.section == Section::kText || layer.section == Section::kEncoder) add_adapters(layer, adapters.rank, targets);
  }
  if (adapter_parameters(trained) == 0) return base::Error{base::ErrorCode::kInvalid, "targets of adapters: the model has none of these weights"};
  return trained;
}

std::uint64_t adapter_parameters(const Model& model) {
  std::uint64_t sum = 0;
  for (const Layer& layer : model.layers) {
    for (const Matmul& m : layer.matmuls) {
      if (is_adapter(m)) sum += layer.stored * m.in * m.out * m.stored;
    }
  }
  return sum;
}

}  // namespace flopsight::flops
