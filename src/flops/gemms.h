#pragma once
// The matrix products that a GPU is given for a batch of tokens, as m x n x k: C (m x n) = A (m x k) * B (k x n), 2*m*n*k FLOPs. They
// follow from the same Matmul records as everything else: forward m = tokens, k = in, n = out; the gradient of the input has n and k
// exchanged; that of the weight is in x out over k = tokens.
//
// Tensor parallelism gives each GPU a part of the outputs or of the inputs of a weight (layer.h: Split); what is not cut is done
// by every GPU (`replicated`). Routed experts may be cut over fewer GPUs than the rest (parallel folding), whose tokens they then share. Heads stay whole: with fewer heads of keys and values than GPUs, several have the same one. Weights of the same input are one product where trainers fuse them: queries, keys and values;
// gate and up. Routed experts: tokens spread evenly, `tokens * top_k / experts` each, rounded up.
//
// Threads: pure.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flops/layer.h"

namespace flopsight::flops {

enum class Pass : std::uint8_t { kForward, kInputGradient, kWeightGradient };
std::string_view pass_name(Pass pass);            // "forward", "input_gradient", "weight_gradient"
std::string_view operation_name(Operation operation);  // "query", "gate", …

struct Gemm {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t count = 0;  // executed on one GPU
  Pass pass = Pass::kForward;
  LayerKind layer = LayerKind::kAttention;
  Section section = Section::kText;
  std::vector<Operation> operations;  // more than one where they are fused
  Expert expert = Expert::kNone;
  bool replicated = false;  // done in full by each GPU of the tensor-parallel group

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(count); }
};

struct GemmOptions {
  std::uint64_t tokens = 0;  // of the micro-batch that one GPU sees
  std::uint64_t tensor_parallel = 1;
  std::uint64_t expert_parallel = 1;  // experts are spread over so many GPUs, each with its own tokens
  bool fuse = true;
  bool backward = true;
  std::uint64_t prediction_steps = 0;
  std::optional<std::uint64_t> expert_tensor_parallel{};  // GPUs that each expert's weights are cut over; absent: as tensor_parallel
};

// Distinct products with how often they are executed; without vision. Attention cores are no Gemm here: kernels fuse them.
// Errors: kInvalid for no tokens, or sizes that the parallel degrees do not divide (the layer and the size are named).
base::Result<std::vector<Gemm>> gemms_of(const Model& model, const GemmOptions& options);

}  // namespace flopsight::flops
