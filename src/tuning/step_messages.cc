#include "tuning/step_messages_internal.h"

#include <algorithm>

#include "flops/experts.h"
#include "tuning/formulas.h"
#include "tuning/memory.h"

namespace flopsight::tuning {
namespace {

using flops::Layer;
using flops::Matmul;
using units::Bytes;

constexpr double kMessageSlowdownRatio = 0.15;
constexpr double kExpertAloneRatio = 0.125;  // of overlapped messages of experts: the first and the last layer's

double number(std::uint64_t n) { return static_cast<double>(n); }

const Matmul* routed_of(const Layer& layer) {
  const auto found = std::find_if(layer.matmuls.begin(), layer.matmuls.end(), [](const Matmul& m) { return m.expert == flops::Expert::kRouted && m.operation == flops::Operation::kUp; });
  return found == layer.matmuls.end() ? nullptr : &*found;
}

// Whether something of a layer is cut by tensor parallelism, beside routed experts that have GPUs of their own.
bool is_cut(const Layer& layer, bool own_experts) {
  return std::any_of(layer.matmuls.begin(), layer.matmuls.end(),
                     [&](const Matmul& m) { return m.split != flops::Split::kNone && !(own_experts && m.expert == flops::Expert::kRouted); });
}

// Tokens to their experts, or back, once.
double dispatch_seconds(const TrainSettings& s, const Fabric& fabric, const Matmul& routed) {
  const Layout& l = s.layout;
  const double rows = tokens_of(s) / (s.sequence_parallel ? number(l.tensor) : 1), row_bytes = 2 * number(routed.in);
  const Group group = group_of(fabric, l.expert, l.expert_tensor_gpus());
  double seconds = 0;
  if (s.dispatch == Dispatch::kOnce) {
    seconds = dispatch_once_time(fabric, group, {Bytes(rows * row_bytes), number(routed.stored), number(routed.active)}).value;
  } else {
    seconds = all_to_all_time(fabric, group, Bytes(rows * row_bytes * number(routed.active))).value;
  }
  // GPUs that share an expert's weights gather what each of them got.
  const double gathered = rows * number(l.expert_tensor_gpus()) * row_bytes * number(routed.active);
  return seconds + gather_time(fabric, group_of(fabric, l.expert_tensor_gpus(), 1), Bytes(gathered)).value;
}

}  // namespace

double tokens_of(const TrainSettings& s) { return number(s.micro_batch) * number(s.sequence_tokens) / number(s.layout.context); }

std::uint64_t times_of(const Layer& layer, const flops::Model& model, const TrainSettings& s) {
  if (layer.section == flops::Section::kVision) return 0;
  if (layer.section != flops::Section::kPrediction) return layer.executed;
  return model.prediction_steps == 0 ? 0 : layer.executed * s.prediction_steps / model.prediction_steps;
}

Overlapped overlap(const Messages& m) {
  Overlapped out;
  out.hidden_seconds = std::min(std::max(0.0, m.all_seconds - m.alone_seconds), m.beside_seconds);
  out.exposed_seconds = m.all_seconds - out.hidden_seconds + kMessageSlowdownRatio * out.hidden_seconds;
  return out;
}

LayerMessages layer_messages(const flops::Model& model, const TrainSettings& s, const Fabric& fabric, const Beside& beside) {
  LayerMessages out;
  const Layout& l = s.layout;
  const double tokens = tokens_of(s), again = s.recompute == flops::Recompute::kFull ? 1 : 0;
  const Group tensor = group_of(fabric, l.tensor, 1), context = group_of(fabric, l.context, l.tensor);
  const bool own_experts = l.expert > 1 || l.expert_tensor_gpus() != l.tensor;
  double ring = 0;
  for (const Layer& layer : model.layers) {
    const double times = number(times_of(layer, model, s));
    if (times == 0 || layer.matmuls.empty()) continue;
    const double width = 2 * number(layer.matmuls.front().in);
    // A gather and a scatter each way, which without sequence parallelism are one all-reduce of the same volume.
    const double collectives = layer.kind == flops::LayerKind::kHead ? 2 : 4 + 2 * again;
    if (is_cut(layer, own_experts)) out.tensor_all_seconds += times * collectives * gather_time(fabric, tensor, Bytes(tokens * width)).value;
    if (layer.attention && l.context > 1) {
      const double block = 2 * tokens * number(layer.attention->kv_heads * (layer.attention->qk_dim + layer.attention->v_dim)) / number(l.tensor);
      // Keys and values forward; backward these again, and their gradients.
      ring += times * (3 + again) * number(l.context - 1) * send_time(fabric, context, Bytes(block)).value;
    }
    const Matmul* routed = own_experts ? routed_of(layer) : nullptr;
    if (routed != nullptr) out.expert_seconds += times * (4 + 2 * again) * dispatch_seconds(s, fabric, *routed);
  }
  const double first_part = out.tensor_all_seconds / number(l.tensor);
  out.tensor_seconds = s.overlap_tensor ? overlap({out.tensor_all_seconds, beside.products_seconds, first_part}).exposed_seconds : out.tensor_all_seconds;
  out.context_seconds = overlap({ring, beside.attention_seconds, 0}).exposed_seconds;
  if (s.overlap_expert) out.expert_seconds = overlap({out.expert_seconds, beside.products_seconds / 2, out.expert_seconds * kExpertAloneRatio}).exposed_seconds;
  return out;
}

Overlapped data_messages(const flops::Model& model, const TrainSettings& s, const Fabric& fabric, double micro_batch_seconds) {
  const Layout& l = s.layout;
  const StageParameters stage = stage_parameters(model, l);
  const double ends = std::max(stage.embedding.dense_total, stage.head.dense_total) + (l.pipeline == 1 ? std::min(stage.embedding.dense_total, stage.head.dense_total) : 0);
  const double dense = stage.blocks.dense_total + ends, routed = stage.blocks.routed_total;
  const Group all = group_of(fabric, l.data * l.context, l.tensor);
  const Group of_experts = group_of(fabric, l.expert_data(), l.expert_tensor_gpus() * l.expert);
  const double blocks = std::max(1.0, number(model.shape.blocks) / number(l.pipeline));
  const auto gather = [&](double bytes_each, double parts) {
    return parts * (gather_time(fabric, all, Bytes(bytes_each * dense / parts)).value + gather_time(fabric, of_experts, Bytes(bytes_each * routed / parts)).value);
  };
  const double gradient = s.fp32_gradients && s.zero_stage < 3 ? 4 : 2;
  if (all.count <= 1 && of_experts.count <= 1) return {};
  if (s.zero_stage >= 3) {
    const double gathers = gather(2, blocks);
    const double each = 3 * gathers, alone = 2 * gathers / blocks, beside = s.overlap_data ? micro_batch_seconds : 0;
    Overlapped out = overlap({each, beside, alone});
    out.exposed_seconds *= number(s.accumulation());
    out.hidden_seconds *= number(s.accumulation());
    return out;
  }
  // In buckets, as many as blocks at most. Weights come back with the next forward pass.
  const double scatter = s.zero_stage == 0 ? all_reduce_time(fabric, all, Bytes(gradient * dense)).time.value + all_reduce_time(fabric, of_experts, Bytes(gradient * routed)).time.value
                                           : gather(gradient, std::min(blocks, 8.0));
  const double back = s.zero_stage == 0 ? 0 : gather(2, std::min(blocks, 8.0));
  const double beside = s.overlap_data ? micro_batch_seconds : 0;
  const Overlapped out_gradients = overlap({scatter, beside * 2 / 3, scatter / blocks}), out_weights = overlap({back, beside / 3, back / blocks});
  return {out_gradients.exposed_seconds + out_weights.exposed_seconds, out_gradients.hidden_seconds + out_weights.hidden_seconds};
}

double pipeline_messages(const flops::Model& model, const TrainSettings& s, const Fabric& fabric) {
  const Layout& l = s.layout;
  if (l.pipeline <= 1) return 0;
  const double bytes = 2 * tokens_of(s) * number(model.shape.hidden_size) / (s.sequence_parallel ? number(l.tensor) : 1);
  const Group group = group_of(fabric, l.pipeline, s.gpus / l.pipeline);
  const double each = send_time(fabric, group, Bytes(bytes)).value;
  // Interleaved schedules send while they compute, but for filling and emptying the pipeline.
  const double shown = l.virtual_stages > 1 ? number(l.pipeline - 1) : number(s.accumulation() + l.pipeline - 1);
  return 2 * shown * each;
}

}  // namespace flopsight::tuning
