#include "tuning/settings.h"

#include <algorithm>
#include <array>

#include "flops/experts.h"

namespace flopsight::tuning {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::array<std::string_view, 2> kKernels = {"eager", "fused"};
constexpr std::array<std::string_view, 4> kAttentions = {"standard", "flash1", "flash2", "flash3"};
constexpr std::array<std::string_view, 5> kOptimizers = {"adam", "adam-bf16", "adam8bit", "sgd-momentum", "sgd"};
constexpr std::array<std::string_view, 3> kRecomputes = {"none", "selective", "full"};
constexpr std::array<std::string_view, 2> kDispatches = {"all-to-all", "deepep"};

template <typename Enum, std::size_t kCount>
std::optional<Enum> find_name(const std::array<std::string_view, kCount>& names, std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

std::string text(std::uint64_t n) { return std::to_string(n); }

constexpr std::uint64_t kBlocksAtEnds = 2;  // that embedding and head stand for

// Until all parts have as many as the fullest.
std::uint64_t missing_blocks(std::uint64_t blocks, std::uint64_t parts) { return (parts - blocks % parts) % parts; }

Error wrong(std::string message) { return Error{ErrorCode::kInvalid, std::move(message)}; }

// Without interleaving stages may differ, as 61 blocks on 16 GPUs do; parts that take turns are alike, but for embedding and head.
base::Status check_stages(const flops::Model& model, const Layout& l) {
  const std::uint64_t parts = l.pipeline * l.virtual_stages, blocks = model.shape.blocks;
  if (l.virtual_stages == 1) {
    if (parts > blocks) return wrong("--pp " + text(l.pipeline) + ": the model's " + text(blocks) + " layers cannot be divided over " + text(parts));
    return {};
  }
  // A prediction module stands for one as well; and trainers that place layers one by one give some GPUs one fewer (61 in 4 x 4 parts).
  const std::uint64_t ends = kBlocksAtEnds + (model.prediction_steps > 0 ? 1 : 0);
  const std::uint64_t missing = missing_blocks(blocks, parts);
  if (missing <= ends || (parts <= blocks && missing <= l.pipeline)) return {};
  return wrong("--pp " + text(l.pipeline) + " x --vp " + text(l.virtual_stages) + ": the model's " + text(blocks) + " layers cannot be divided by " + text(parts) +
               ", nor with one layer fewer on each GPU");
}

base::Status check_experts(const flops::Model& model, const Layout& l) {
  if (l.expert == 1 && !l.expert_tensor) return {};
  const std::uint64_t experts = flops::routed_experts(model), cut = l.expert_tensor_gpus();
  if (experts == 0) return wrong((l.expert > 1 ? "--ep " + text(l.expert) : "--etp " + text(cut)) + ": the model has no routed experts");
  if (experts % l.expert != 0) return wrong("--ep " + text(l.expert) + ": the model's " + text(experts) + " experts cannot be divided by it");
  if (l.tensor % cut != 0) return wrong("--etp " + text(cut) + ": expected a divisor of --tp " + text(l.tensor));
  const std::uint64_t all = l.tensor * l.context * l.data;
  if (all % (cut * l.expert) == 0) return {};
  if (l.expert_tensor) return wrong("--ep " + text(l.expert) + " x --etp " + text(cut) + ": the " + text(all) + " GPUs of --tp x --cp x --dp cannot be divided by it");
  return wrong("--ep " + text(l.expert) + ": the " + text(l.context * l.data) + " GPUs of --cp x --dp cannot be divided by it" +
               (all % l.expert == 0 ? "; with --etp 1 experts are whole and lie on tensor-parallel GPUs as well" : ""));
}

base::Status check_degrees(const flops::Model& model, const TrainSettings& s) {
  const Layout& l = s.layout;
  std::uint64_t product = 1;
  for (const std::uint64_t degree : {l.tensor, l.pipeline, l.context, l.data}) {
    if (product <= kGpusMax) product *= degree;  // each is at most kGpusMax: no overflow
  }
  if (product > kGpusMax) return wrong("--tp x --pp x --cp x --dp: more than " + text(kGpusMax) + " GPUs, expected --gpus " + text(s.gpus));
  if (product != s.gpus) {
    return wrong("--tp " + text(l.tensor) + " x --pp " + text(l.pipeline) + " x --cp " + text(l.context) + " x --dp " + text(l.data) + " = " + text(product) +
                 ", expected --gpus " + text(s.gpus));
  }
  if (l.virtual_stages > 1 && l.pipeline == 1) return wrong("--vp " + text(l.virtual_stages) + " needs --pp");
  FLOPSIGHT_RETURN_IF_ERROR(check_stages(model, l));
  if (model.shape.heads > 0 && model.shape.heads % l.tensor != 0) {
    return wrong("--tp " + text(l.tensor) + ": the model's " + text(model.shape.heads) + " attention heads cannot be divided by it");
  }
  if (s.sequence_tokens % l.context != 0) return wrong("--cp " + text(l.context) + ": --seq-len " + text(s.sequence_tokens) + " cannot be divided by it");
  return check_experts(model, l);
}

}  // namespace

std::string_view kernels_name(Kernels kernels) { return kKernels[static_cast<std::size_t>(kernels)]; }
std::string_view attention_kernel_name(AttentionKernel kernel) { return kAttentions[static_cast<std::size_t>(kernel)]; }
std::string_view optimizer_name(Optimizer optimizer) { return kOptimizers[static_cast<std::size_t>(optimizer)]; }
std::string_view recompute_name(flops::Recompute recompute) { return kRecomputes[static_cast<std::size_t>(recompute)]; }

std::string_view dispatch_name(Dispatch dispatch) { return kDispatches[static_cast<std::size_t>(dispatch)]; }

std::optional<Kernels> parse_kernels(std::string_view text) { return find_name<Kernels>(kKernels, text); }
std::optional<AttentionKernel> parse_attention_kernel(std::string_view text) { return find_name<AttentionKernel>(kAttentions, text); }
std::optional<Optimizer> parse_optimizer(std::string_view text) { return find_name<Optimizer>(kOptimizers, text); }
std::optional<flops::Recompute> parse_recompute(std::string_view text) { return find_name<flops::Recompute>(kRecomputes, text); }
std::optional<Dispatch> parse_dispatch(std::string_view text) { return find_name<Dispatch>(kDispatches, text); }

bool is_training_precision(catalog::Precision precision) {
  using P = catalog::Precision;
  constexpr std::array<P, 6> kAll = {P::kFp32, P::kTf32, P::kFp16, P::kBf16, P::kFp8, P::kFp4};
  return std::find(kAll.begin(), kAll.end(), precision) != kAll.end();
}

StageRatios stage_ratios(std::uint64_t blocks, const Layout& l) {
  const double even = 1 / static_cast<double>(l.pipeline);
  if (blocks == 0 || l.pipeline == 1) return {even, even, even};
  const std::uint64_t fullest = (blocks + l.pipeline - 1) / l.pipeline, missing = missing_blocks(blocks, l.pipeline);
  const auto ratio = [&](std::uint64_t n) { return static_cast<double>(n) / static_cast<double>(blocks); };
  if (missing <= kBlocksAtEnds) {
    const std::uint64_t first = fullest - (missing == kBlocksAtEnds ? 1 : 0), last = fullest - (missing > 0 ? 1 : 0);
    return {ratio(l.pipeline > kBlocksAtEnds ? fullest : std::max(first, last)), ratio(first), ratio(last)};
  }
  return {ratio(fullest), ratio(fullest), std::max(0.0, 1 - ratio(fullest) * static_cast<double>(l.pipeline - 1))};
}

std::string layout_text(const Layout& l) {
  std::string out = "tp " + text(l.tensor) + ", pp " + text(l.pipeline);
  if (l.virtual_stages > 1) out += ", vp " + text(l.virtual_stages);
  if (l.context > 1) out += ", cp " + text(l.context);
  if (l.expert > 1) out += ", ep " + text(l.expert);
  if (l.expert_tensor_gpus() != l.tensor) out += ", etp " + text(l.expert_tensor_gpus());
  return out + ", dp " + text(l.data);
}

flops::Sequence TrainSettings::sequence() const {
  flops::Sequence out;
  out.tokens = sequence_tokens;
  out.documents = document_tokens;
  return out;
}

flops::Workload TrainSettings::workload() const {
  flops::Workload out;
  out.sequence = sequence();
  out.prediction_steps = prediction_steps;
  return out;
}

base::Status check_settings(const flops::Model& model, const TrainSettings& s) {
  const Layout& l = s.layout;
  for (const std::uint64_t degree : {s.gpus, l.tensor, l.pipeline, l.virtual_stages, l.context, l.expert, l.expert_tensor_gpus(), l.data}) {
    if (degree == 0 || degree > kGpusMax) return wrong("a number of GPUs of " + text(degree) + ": expected 1 to " + text(kGpusMax));
  }
  if (s.sequence_tokens == 0 || s.sequence_tokens > kSequenceTokensMax) return wrong("--seq-len " + text(s.sequence_tokens) + ": expected 1 to " + text(kSequenceTokensMax));
  if (s.global_batch == 0 || s.global_batch > kBatchMax) return wrong("--global-batch " + text(s.global_batch) + ": expected 1 to " + text(kBatchMax));
  if (s.micro_batch == 0 || s.micro_batch > s.global_batch) return wrong("--micro-batch " + text(s.micro_batch) + ": expected 1 to --global-batch " + text(s.global_batch));
  if (s.zero_stage < 0 || s.zero_stage > kZeroStageMax) return wrong("--zero: expected 0, 1, 2 or 3");
  if (s.prediction_steps > 0 && model.prediction_steps == 0) return wrong("--mtp " + text(s.prediction_steps) + ": the configuration has no multi-token prediction layers");
  FLOPSIGHT_RETURN_IF_ERROR(check_degrees(model, s));
  if (s.global_batch % (s.micro_batch * l.data) != 0) {
    return wrong("--global-batch " + text(s.global_batch) + " cannot be divided by --micro-batch " + text(s.micro_batch) + " x " + text(l.data) + " data-parallel GPUs");
  }
  if (l.virtual_stages > 1 && s.accumulation() % l.pipeline != 0) {
    return wrong("--vp " + text(l.virtual_stages) + ": interleaving needs micro-batches in multiples of --pp " + text(l.pipeline) + ", there are " + text(s.accumulation()));
  }
  return {};
}

}  // namespace flopsight::tuning
