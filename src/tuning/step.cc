#include "tuning/step.h"

#include <algorithm>
#include <cmath>

#include "tuning/memory.h"
#include "tuning/step_messages_internal.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using flops::Layer;
using flops::Pass;
using flops::Recompute;
using units::Bytes;

constexpr double kBackwardPerForward = 2;
constexpr double kFlashBackward = 2.5;   // the scores are computed again
constexpr double kTileKeys = 128;        // keys that a block of a causal kernel takes together: half a block is masked work
constexpr double kLaunchEagerSeconds = 6e-6;
constexpr double kLaunchFusedSeconds = 4e-6;
constexpr double kKernelStartSeconds = 3e-6;

double number(std::uint64_t n) { return static_cast<double>(n); }

bool is_narrow(Precision precision) { return precision == Precision::kFp8 || precision == Precision::kFp4; }

// Products outside of blocks and small ones stay in 16 bits: recipes of FP8 name linear layers of blocks only (docs/flops.md).
bool runs_narrow(const flops::Gemm& gemm) {
  if (gemm.layer == flops::LayerKind::kHead) return false;
  for (const flops::Operation operation : gemm.operations) {
    using O = flops::Operation;
    if (operation == O::kRouter || operation == O::kSharedGate || operation == O::kIndexQuery || operation == O::kIndexKey || operation == O::kIndexWeights) return false;
  }
  return true;
}

// What attention and recurrent cores take for a micro-batch through the whole model, on one GPU.
struct Cores {
  double forward_seconds = 0;
  double backward_seconds = 0;
  double forward_peak_seconds = 0;  // FLOPs over the peak of their format
  double backward_peak_seconds = 0;
};

Cores cores_of(const flops::Model& model, const TrainSettings& s, const Rates& rates, Precision precision, double peak) {
  Cores out;
  // There is no third generation in wider formats.
  const bool third_wide = is_wide(precision) && s.attention == AttentionKernel::kFlash3;
  const AttentionRate rate = rates.attention(third_wide ? AttentionKernel::kFlash2 : s.attention);
  const bool standard = s.attention == AttentionKernel::kStandard;
  const double product_ratio = rates.attainable_ratio(precision);
  for (const Layer& layer : model.layers) {
    const double times = number(times_of(layer, model, s)) * tokens_of(s) / number(s.layout.tensor);
    if (times == 0) continue;
    const flops::Cost cost = flops::layer_forward(layer, s.sequence(), {});
    const double core = cost.of(flops::Part::kAttentionCore);
    if (core > 0) {
      const double context = flops::mean_context(*layer.attention, s.sequence(), {});
      const double executed = standard ? core * number(s.sequence_tokens) / context : core * (1 + kTileKeys / 2 / context);
      const double backward = (standard ? kBackwardPerForward : kFlashBackward) * executed;
      out.forward_seconds += times * executed / peak / (standard ? product_ratio : rate.forward_ratio);
      out.backward_seconds += times * backward / peak / (standard ? product_ratio : rate.backward_ratio);
      out.forward_peak_seconds += times * executed / peak;
      out.backward_peak_seconds += times * backward / peak;
    }
    // Chunked recurrences are products of small matrices; half of what large ones reach is assumed. Scans and convolutions are in the passes.
    const double recurrent = cost.of(flops::Part::kRecurrentCore) * times / peak;
    out.forward_seconds += recurrent / (product_ratio / 2);
    out.backward_seconds += kBackwardPerForward * recurrent / (product_ratio / 2);
    out.forward_peak_seconds += recurrent;
    out.backward_peak_seconds += kBackwardPerForward * recurrent;
  }
  return out;
}

struct Passes {
  double blocks_seconds = 0;
  double blocks_forward_seconds = 0;
  double head_seconds = 0;
  double launches_total = 0;
};

Passes passes_of(const flops::Model& model, const TrainSettings& s, double bandwidth) {
  Passes out;
  const double tokens = tokens_of(s);
  for (const Layer& layer : model.layers) {
    const double times = number(times_of(layer, model, s));
    const ElementwiseBytes bytes = elementwise_bytes(layer, s);
    const double reached = bandwidth * elementwise_share_ratio(layer);
    const double forward = times * (tokens * bytes.forward_bytes / reached + bytes.launches_forward_total * kKernelStartSeconds);
    const double backward = times * (tokens * bytes.backward_bytes / reached + bytes.launches_backward_total * kKernelStartSeconds);
    out.launches_total += times * (bytes.launches_forward_total + bytes.launches_backward_total);
    if (layer.kind == flops::LayerKind::kHead) {
      out.head_seconds += forward + backward;
    } else {
      out.blocks_seconds += forward + backward;
      out.blocks_forward_seconds += forward;
    }
  }
  return out;
}

double optimizer_seconds(const flops::Model& model, const TrainSettings& s, double bandwidth) {
  const StageParameters stage = stage_parameters(model, s.layout);
  const double ends = std::max(stage.embedding.dense_total, stage.head.dense_total);
  const double over = s.zero_stage >= 1 ? number(s.layout.data * s.layout.context) : 1;
  const double parameters = (stage.blocks.dense_total + ends) / over + stage.blocks.routed_total / (s.zero_stage >= 1 ? number(s.layout.expert_data()) : 1);
  double seconds = parameters * optimizer_bytes_per_parameter(s) / bandwidth;
  // Gradients of several micro-batches are added up in memory.
  if (s.accumulation() > 1) {
    const double held = s.zero_stage >= 3 ? parameters : (stage.blocks.total() + ends);
    seconds += number(s.accumulation()) * held * (2 * (s.fp32_gradients ? 4 : 2) - 2) / bandwidth;
  }
  return seconds;
}

}  // namespace

base::Result<StepModel::Products> StepModel::products(const TrainSettings& s) {
  const std::uint64_t tokens = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(tokens_of(s)));
  const auto key = std::make_tuple(tokens, s.layout.tensor, s.layout.expert, s.layout.expert_tensor_gpus(), static_cast<int>(s.precision), s.prediction_steps);
  const auto known = products_.find(key);
  if (known != products_.end()) return known->second;
  flops::GemmOptions options;
  options.tokens = tokens;
  options.tensor_parallel = s.layout.tensor;
  options.expert_parallel = s.layout.expert;
  options.expert_tensor_parallel = s.layout.expert_tensor;
  options.prediction_steps = s.prediction_steps;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<flops::Gemm> gemms, flops::gemms_of(model_, options));
  Products out;
  for (const flops::Gemm& gemm : gemms) {
    const bool narrow = is_narrow(s.precision) && runs_narrow(gemm);
    const Precision precision = narrow ? s.precision : is_narrow(s.precision) ? rates_.sixteen_bit() : s.precision;
    FLOPSIGHT_ASSIGN_OR_RETURN(const double peak, rates_.peak_flops_per_second(precision));
    const auto shape = std::make_tuple(gemm.m, gemm.n, gemm.k, static_cast<int>(precision));
    auto found = product_.find(shape);
    if (found == product_.end()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const Rates::Product product, rates_.product(gemm.m, gemm.n, gemm.k, precision));
      found = product_.emplace(shape, product).first;
    }
    const double count = number(gemm.count), seconds = count * found->second.seconds / kSustainedRatio;
    // What runs outside of tensor pipes is not in OFU.
    const double peak_seconds = precision == Precision::kFp32 ? 0 : count * found->second.executed_flops / peak;
    out.launches_total += count;
    out.lost_seconds += seconds - gemm.flops() / (peak * rates_.attainable_ratio(precision) * kSustainedRatio);
    if (gemm.layer == flops::LayerKind::kHead) {
      out.head_seconds += seconds;
      out.head_peak_seconds += peak_seconds;
      continue;
    }
    out.all_seconds += seconds;
    out.peak_seconds += peak_seconds;
    if (runs_narrow(gemm)) out.linear_seconds += seconds;
    if (narrow) out.narrow_seconds += seconds;
    if (gemm.pass == Pass::kForward) {
      out.forward_seconds += seconds;
      out.forward_peak_seconds += peak_seconds;
    }
  }
  return products_.emplace(key, out).first->second;
}

base::Result<Step> StepModel::predict(const TrainSettings& s) {
  FLOPSIGHT_RETURN_IF_ERROR(check_settings(model_, s));
  FLOPSIGHT_ASSIGN_OR_RETURN(const double peak, rates_.peak_flops_per_second(s.precision));
  // Attention is no narrower than 16 bits, and in a run in FP32 or TF32 no narrower than that.
  const Precision core_precision = is_wide(s.precision) ? s.precision : rates_.sixteen_bit();
  FLOPSIGHT_ASSIGN_OR_RETURN(const double core_peak, rates_.peak_flops_per_second(core_precision));
  FLOPSIGHT_ASSIGN_OR_RETURN(const Products products, this->products(s));
  const double bandwidth = rates_.bandwidth_bytes_per_second() * kSustainedRatio;
  Cores cores = cores_of(model_, s, rates_, core_precision, core_peak * kSustainedRatio);
  if (core_precision == Precision::kFp32) cores.forward_peak_seconds = cores.backward_peak_seconds = 0;
  const Passes passes = passes_of(model_, s, bandwidth);
  const double again = s.recompute == Recompute::kFull ? 1 : 0, core_again = s.recompute == Recompute::kNone ? 0 : 1;
  // Flash kernels keep no scores, so that selective recomputation has nothing to do again.
  const double core_repeat = s.attention == AttentionKernel::kStandard ? core_again : again;
  const double attention = cores.forward_seconds * (1 + core_repeat) + cores.backward_seconds;
  const double block_products = products.all_seconds + again * products.forward_seconds;
  const double block_passes = passes.blocks_seconds + again * passes.blocks_forward_seconds;
  const LayerMessages messages = layer_messages(model_, s, fabric_, {block_products, attention});

  const double p = number(s.layout.pipeline), v = number(s.layout.virtual_stages), m = number(s.accumulation());
  const double blocks = block_products + attention + block_passes + messages.tensor_seconds + messages.context_seconds + messages.expert_seconds;
  const double head = products.head_seconds + passes.head_seconds;
  const StageRatios stages = stage_ratios(model_.shape.blocks, s.layout);
  const double mean = (blocks + head) / p, slowest = std::max(blocks * stages.largest_ratio, blocks * stages.last_ratio + head);

  Step out;
  Breakdown& b = out.breakdown;
  b.compute_seconds = m * (block_products + attention + products.head_seconds) / p;
  out.elementwise_seconds = m * (block_passes + passes.head_seconds) / p;
  out.optimizer_seconds = optimizer_seconds(model_, s, bandwidth);
  b.memory_seconds = out.elementwise_seconds + out.optimizer_seconds;
  b.tensor_parallel_seconds = m * messages.tensor_seconds / p;
  b.context_parallel_seconds = m * messages.context_seconds / p;
  b.expert_parallel_seconds = m * messages.expert_seconds / p;
  b.pipeline_bubble_seconds = m * (slowest - mean) + (p - 1) / v * slowest;
  b.pipeline_parallel_seconds = pipeline_messages(model_, s, fabric_);
  const Overlapped data = data_messages(model_, s, fabric_, mean);
  b.data_parallel_seconds = data.exposed_seconds;
  out.launches_total = m * (products.launches_total + passes.launches_total) / p * (1 + again / 3);
  const double launching = out.launches_total * (s.kernels == Kernels::kEager ? kLaunchEagerSeconds : kLaunchFusedSeconds);
  b.host_seconds = std::max(0.0, launching - m * mean);

  out.products_seconds = m * (block_products + products.head_seconds) / p;
  out.products_narrow_seconds = m * products.narrow_seconds / p * (block_products / std::max(products.all_seconds, 1e-30));
  out.products_linear_seconds = m * products.linear_seconds / p * (block_products / std::max(products.all_seconds, 1e-30));
  out.attention_seconds = m * attention / p;
  out.recompute_seconds = m * (again * (products.forward_seconds + passes.blocks_forward_seconds) + core_repeat * cores.forward_seconds) / p;
  out.tile_lost_seconds = m * products.lost_seconds / p;
  out.data_parallel_hidden_seconds = data.hidden_seconds;
  out.tensor_parallel_all_seconds = m * messages.tensor_all_seconds / p;
  const double tokens = number(s.global_batch) * number(s.sequence_tokens);
  out.model_flops_total = flops::train_cost(model_, s.workload()).total() * tokens / number(s.gpus);
  out.tokens_per_second = tokens / out.step_seconds();
  out.mfu_ratio = out.model_flops_total / (peak * out.step_seconds());
  const double busy = products.peak_seconds + again * products.forward_peak_seconds + products.head_peak_seconds +
                      kSustainedRatio * (cores.forward_peak_seconds * (1 + core_repeat) + cores.backward_peak_seconds);
  out.attainable_ofu_ratio = m * busy / p / out.step_seconds();
  if (!std::isfinite(out.step_seconds())) return base::Error{base::ErrorCode::kUnsupported, no_finite_time(fabric_)};
  return out;
}

}  // namespace flopsight::tuning
