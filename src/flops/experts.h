#pragma once
// How many experts a model routes to. Threads: pure.

#include <cstdint>

#include "flops/layer.h"

namespace flopsight::flops {

// The most routed experts that a layer of the model has; 0: none.
std::uint64_t routed_experts(const Model& model);
// To the most of them a token goes; 0: none.
std::uint64_t routed_experts_of_token(const Model& model);

}  // namespace flopsight::flops
