#pragma once
// Low-rank adapters (LoRA; Hu et al. 2021, arXiv 2106.09685): the weights of the model are frozen, and beside each chosen weight of
// in x out there are two trained ones, in x rank and rank x out. A frozen weight still costs the gradient of its input:
// training is 4 x frozen weights + 6 x adapter weights + 3 x forward attention cores, per token. Threads: pure.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "flops/layer.h"

namespace flopsight::flops {

struct Adapters {
  std::uint64_t rank = 0;
  // q, k, v, o, gate, up, down, experts (gate, up and down of routed ones), in, out (of recurrent layers); or all of these but
  // the routed experts: "all". Down and up projections of latent attention belong to q, k and v.
  std::vector<std::string> targets = {"all"};
};

// Errors: kInvalid for a target that there is not, a rank of 0 or over 65536, or targets that name no weight of the model.
base::Result<Model> with_adapters(const Model& model, const Adapters& adapters);

// Of all adapters, in parameters.
std::uint64_t adapter_parameters(const Model& model);

}  // namespace flopsight::flops
