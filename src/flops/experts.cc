#include "flops/experts.h"

#include <algorithm>

namespace flopsight::flops {

std::uint64_t routed_experts(const Model& model) {
  std::uint64_t experts = 0;
  for (const Layer& layer : model.layers) {
    for (const Matmul& m : layer.matmuls) {
      if (m.expert == Expert::kRouted) experts = std::max(experts, m.stored);
    }
  }
  return experts;
}

std::uint64_t routed_experts_of_token(const Model& model) {
  std::uint64_t experts = 0;
  for (const Layer& layer : model.layers) {
    for (const Matmul& m : layer.matmuls) {
      if (m.expert == Expert::kRouted) experts = std::max(experts, m.active);
    }
  }
  return experts;
}

}  // namespace flopsight::flops
