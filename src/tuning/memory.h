#pragma once
// Memory that training takes on the fullest GPU, and whether it fits.
//
// State, in bytes a parameter: weights 4 (FP32, TF32) or 2, in FP8 2 and a copy of 1, or 1 where FP8 is the only one; gradients as the
// weights (2 with FP8), or 4; master copy 4; Adam's moments 8, 4 or 2. ZeRO (arXiv 1910.02054) divides optimizer state, gradients and weights by
// the data-parallel GPUs from stage 1, 2 and 3 on; with stage 3 the weights of two blocks are there in full.
//
// Activations that the backward pass needs, in 16-bit elements of a token and layer: what each matrix product reads, and what
// the functions between read: norms 2h; attention q, k, v and its output; a gated feed-forward layer 3f, another 2f. For a transformer this is
// Korthikanti et al. 2022 (arXiv 2205.05198) without dropout masks: 32 instead of 34 s*b*h bytes; standard attention adds
// 5*heads*s bytes a token. Recomputation of scores (selective) or of blocks (full) keeps them of no layer, but has them of one while it is computed
// again, and with any, the gradients of one layer's scores and weights are there, 4*heads*s. Full recomputation keeps h a token and block, and one block in full. Operators one by one keep 28
// where fused ones keep 17 in blocks with gates and RMSNorm (measured for Llama-3-8B by Bekman, ml-engineering, performance chapter). Logits: 6 bytes each.
// Pipeline stage r of p holds p-r micro-batches, interleaved with v parts (2(p-r-1) + (v-1)p + 1)/v (arXiv 2104.04473; Megatron-LM's schedules.py: its
// warm-up and one), and never more than a step has. First, second and last stage are looked at: blocks may be missing at the ends (settings.h).
//
// Assumed: 1.4 GiB for the driver's context and NCCL's buffers (aiconfigurator, ai-dynamo: 551 MiB to 3.5 GiB, and 0.4), and 5 % of the rest
// for fragmentation. A gigabyte in the name of a GPU is 2^30 bytes, as its driver reports. Units: bytes. Threads: pure.

#include <optional>
#include <string>

#include "catalog/devices.h"
#include "flops/layer.h"
#include "tuning/settings.h"

namespace flopsight::tuning {

struct StateBytes {  // of a parameter, undivided
  double weights_bytes = 0;
  double gradients_bytes = 0;
  double optimizer_bytes = 0;  // with the master copy

  double total_bytes() const { return weights_bytes + gradients_bytes + optimizer_bytes; }
};
StateBytes state_bytes(const TrainSettings& settings);

struct Memory {
  double weights_bytes = 0;
  double gradients_bytes = 0;
  double optimizer_bytes = 0;
  double activations_bytes = 0;
  double kv_cache_bytes = 0;
  double reserved_bytes = 0;  // context, buffers, fragmentation
  std::optional<double> capacity_bytes;  // absent where the catalogue has no size

  double total_bytes() const { return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes + kv_cache_bytes + reserved_bytes; }
  // Nothing where the capacity is not known.
  std::optional<bool> fits() const;
  // "213.4 GiB are needed, 80.0 GiB are there: optimizer 105.1, …"; empty where it fits.
  std::string over() const;
};

std::optional<double> device_memory_bytes(const catalog::Device& device);
// That the smallest of several sizes is taken, in words; empty where there is one.
std::string assumed_memory_text(const catalog::Device& device);
// Adds what the driver, NCCL and fragmentation take.
void reserve(Memory& memory);

// Parameters on one GPU of a stage, by what data parallelism divides them over.
struct ParameterShare {
  double dense_total = 0;
  double routed_total = 0;  // of routed experts

  double total() const { return dense_total + routed_total; }
};
struct StageParameters {
  ParameterShare blocks;     // of one pipeline stage
  ParameterShare embedding;  // first stage; with towers
  ParameterShare head;       // last stage; with prediction modules
};
StageParameters stage_parameters(const flops::Model& model, const Layout& layout);

// Bytes of activations that one layer keeps for a token, before recomputation.
double activation_bytes_per_token(const flops::Model& model, const flops::Layer& layer, const TrainSettings& settings);

Memory train_memory(const flops::Model& model, const TrainSettings& settings, const catalog::Device& device);

}  // namespace flopsight::tuning
