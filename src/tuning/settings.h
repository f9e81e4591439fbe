#pragma once
// How a model is trained, as far as time and memory depend on it. What is not said has the value that the usual trainers have, and
// every value that was not given is told in the assumptions of an answer.
//
// Names are those of the command line ("full", "adam8bit", "flash2"). Units: tokens, sequences, GPUs. Threads: plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "flops/count.h"

namespace flopsight::tuning {

// Element-wise kernels (norms, activations, residuals, the loss): one operator after another, or fused by hand or by a compiler.
enum class Kernels : std::uint8_t { kEager, kFused };
// Attention: scores written to memory and read again, or tiled in on-chip memory (Dao et al. 2022, arXiv 2205.14135), in the second
// generation (arXiv 2307.08691), or in the third, for Hopper and newer (arXiv 2407.08608; cuDNN's is like it).
enum class AttentionKernel : std::uint8_t { kStandard, kFlash1, kFlash2, kFlash3 };
// How tokens go to experts on other GPUs: once for each expert (NCCL's all-to-all), or once to each GPU that has one of its experts, and over the network
// once to each node, which hands it on (DeepEP, HybridEP; arXiv 2412.19437, section 3.2.2).
enum class Dispatch : std::uint8_t { kAllToAll, kOnce };
// Bytes of state that a parameter has beside weight and gradient: two moments in FP32, in BF16 or in 8 bits, one, none.
enum class Optimizer : std::uint8_t { kAdam, kAdamBf16, kAdam8Bit, kSgdMomentum, kSgd };

std::string_view kernels_name(Kernels kernels);
std::string_view attention_kernel_name(AttentionKernel kernel);
std::string_view optimizer_name(Optimizer optimizer);
std::string_view recompute_name(flops::Recompute recompute);
std::string_view dispatch_name(Dispatch dispatch);  // "all-to-all", "deepep"
// Of such a name; nothing for another.
std::optional<Kernels> parse_kernels(std::string_view text);
std::optional<AttentionKernel> parse_attention_kernel(std::string_view text);
std::optional<Optimizer> parse_optimizer(std::string_view text);
std::optional<flops::Recompute> parse_recompute(std::string_view text);
std::optional<Dispatch> parse_dispatch(std::string_view text);
// Formats that matrix products of training run in: fp32, tf32, fp16, bf16, fp8, fp4.
bool is_training_precision(catalog::Precision precision);
// Of four bytes: FP32 and TF32, which FlashAttention does not take.
inline bool is_wide(catalog::Precision precision) { return precision == catalog::Precision::kFp32 || precision == catalog::Precision::kTf32; }

// Over how many GPUs what is divided. gpus = tensor * pipeline * context * data.
struct Layout {
  std::uint64_t tensor = 1;    // of each weight (Shoeybi et al. 2019, arXiv 1909.08053)
  std::uint64_t pipeline = 1;  // of the blocks (Narayanan et al. 2021, arXiv 2104.04473)
  std::uint64_t virtual_stages = 1;  // parts of the model that each pipeline GPU has (interleaving)
  std::uint64_t context = 1;   // of each sequence (ring attention)
  std::uint64_t expert = 1;    // of the routed experts, within tensor * context * data
  std::uint64_t data = 1;
  std::optional<std::uint64_t> expert_tensor{};  // of each routed expert's weights; absent: as tensor. Fewer is parallel folding (arXiv 2504.14960)

  std::uint64_t expert_tensor_gpus() const { return expert_tensor.value_or(tensor); }
  std::uint64_t expert_data() const { return tensor * context * data / (expert_tensor_gpus() * expert); }  // GPUs that have the same experts
  bool operator==(const Layout&) const = default;
};
// Parts of `blocks` blocks that pipeline GPUs have: 1/pipeline where they divide. One or two blocks too few are missing at the ends, where head and
// embedding stand for one each (arXiv 2407.21783, section 3.3.2: 126 blocks in 16 x 8 parts); more, on the last GPU.
struct StageRatios {
  double largest_ratio = 1;
  double first_ratio = 1;
  double last_ratio = 1;
};
StageRatios stage_ratios(std::uint64_t blocks, const Layout& layout);
std::string layout_text(const Layout& layout);  // "tp 4, pp 4, cp 2, dp 2"

// What is divided over data-parallel GPUs: nothing, optimizer state, gradients too, weights too (Rajbhandari et al. 2019, arXiv
// 1910.02054). 3 is what FSDP does with full sharding.
inline constexpr int kZeroStageMax = 3;

struct TrainSettings {
  std::uint64_t gpus = 1;
  std::uint64_t sequence_tokens = 0;
  std::uint64_t global_batch = 0;  // sequences of an optimizer step
  std::uint64_t micro_batch = 1;   // sequences that a GPU takes at once
  Layout layout;
  catalog::Precision precision = catalog::Precision::kBf16;
  flops::Recompute recompute = flops::Recompute::kNone;
  Optimizer optimizer = Optimizer::kAdam;
  bool fp32_gradients = false;  // gradients are added up in four bytes
  bool fp32_master = true;      // 16-bit and narrower weights have a copy in FP32
  bool narrow_weights = false;  // with FP8 or FP4: no 16-bit weights beside
  int zero_stage = 1;
  Kernels kernels = Kernels::kFused;
  AttentionKernel attention = AttentionKernel::kFlash2;
  bool sequence_parallel = true;  // norms between tensor-parallel parts are divided as well (arXiv 2205.05198)
  bool overlap_tensor = false;    // tensor-parallel messages go while products run
  bool overlap_data = true;       // gradients and weights go while products run
  bool overlap_expert = false;
  Dispatch dispatch = Dispatch::kAllToAll;
  std::uint64_t prediction_steps = 0;
  std::vector<std::uint64_t> document_tokens;  // packed documents of a sequence that do not see each other; empty: one

  // Micro-batches of a step on one GPU.
  std::uint64_t accumulation() const { return global_batch / (micro_batch * layout.data); }
  flops::Sequence sequence() const;
  flops::Workload workload() const;
};

inline constexpr std::uint64_t kGpusMax = 1'048'576;
inline constexpr std::uint64_t kSequenceTokensMax = std::uint64_t{1} << 27;
inline constexpr std::uint64_t kBatchMax = std::uint64_t{1} << 27;

// Whether the settings fit each other and the model. Errors: kInvalid, naming the option and the size that does not divide.
base::Status check_settings(const flops::Model& model, const TrainSettings& settings);

}  // namespace flopsight::tuning
