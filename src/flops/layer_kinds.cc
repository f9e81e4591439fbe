#include "flops/layer_kinds.h"

namespace flopsight::flops {
namespace {

Layer once(LayerKind kind) {
  Layer layer;
  layer.kind = kind;
  layer.executed = 1;
  layer.stored = 1;
  return layer;
}

Matmul matmul(Operation operation, std::uint64_t in, std::uint64_t out, Split split = Split::kNone) {
  Matmul m;
  m.operation = operation;
  m.in = in;
  m.out = out;
  m.split = split;
  return m;
}

void extra(Layer& layer, Extra kind, std::uint64_t elements, std::uint64_t stored = 1, std::uint64_t active = 1) {
  if (elements > 0) layer.vectors.push_back({kind, elements, stored, active});
}

void norms(Layer& layer, const Norms& n) { extra(layer, Extra::kNorm, n.count * n.width * n.vectors_each); }

// Gate, up and down of `copies` experts, of which a token goes through `active`.
struct FeedForward {
  std::uint64_t width = 0;
  std::uint64_t intermediate = 0;
  bool gated = true;
  bool bias = false;
  Expert expert = Expert::kNone;
  std::uint64_t stored = 1;
  std::uint64_t active = 1;
};
void feed_forward(Layer& layer, const FeedForward& f) {
  const auto add = [&](Operation operation, std::uint64_t in, std::uint64_t out, Split split) {
    Matmul m = matmul(operation, in, out, split);
    m.expert = f.expert;
    m.stored = f.stored;
    m.active = f.active;
    layer.matmuls.push_back(m);
    if (f.bias) extra(layer, Extra::kBias, out, f.stored, f.active);
  };
  if (f.gated) add(Operation::kGate, f.width, f.intermediate, Split::kOutputs);
  add(Operation::kUp, f.width, f.intermediate, Split::kOutputs);
  add(Operation::kDown, f.intermediate, f.width, Split::kInputs);
}

LayerKind attention_kind(Mask mask) {
  switch (mask) {
    case Mask::kWindow: return LayerKind::kWindowAttention;
    case Mask::kChunk: return LayerKind::kChunkedAttention;
    case Mask::kSource: return LayerKind::kCrossAttention;
    default: return LayerKind::kAttention;
  }
}

}  // namespace

std::string_view layer_kind_name(LayerKind kind) {
  constexpr std::array<std::string_view, 21> kNames = {
      "embedding", "attention", "window_attention", "chunked_attention", "latent_attention", "sparse_latent_attention",
      "cross_attention", "mlp", "moe", "mamba1", "mamba2", "gated_delta_net", "kimi_delta_attention", "linear", "norm",
      "lm_head", "mtp_projection", "patch_embedding", "projector", "per_layer_input", "linear_attention"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view section_name(Section section) {
  constexpr std::array<std::string_view, 4> kNames = {"text", "mtp", "encoder", "vision"};
  return kNames[static_cast<std::size_t>(section)];
}

Layer attention_layer(const AttentionShape& s) {
  Layer layer = once(attention_kind(s.mask));
  const std::uint64_t q = s.heads * s.head_dim;
  const std::uint64_t kv = s.kv_heads * s.head_dim;
  const std::uint64_t kv_in = s.kv_hidden > 0 ? s.kv_hidden : s.hidden;
  const std::uint64_t out = s.out_hidden > 0 ? s.out_hidden : s.hidden;
  layer.matmuls.push_back(matmul(Operation::kQuery, s.hidden, q, Split::kOutputs));
  if (s.output_gate) layer.matmuls.push_back(matmul(Operation::kOutputGate, s.hidden, q, Split::kOutputs));
  if (s.owns_kv) {
    layer.matmuls.push_back(matmul(Operation::kKey, kv_in, kv, Split::kOutputs));
    if (!s.value_is_key) layer.matmuls.push_back(matmul(Operation::kValue, kv_in, kv, Split::kOutputs));
  }
  layer.matmuls.push_back(matmul(Operation::kAttentionOutput, q, out, Split::kInputs));
  if (s.bias_qkv) extra(layer, Extra::kBias, (s.output_gate ? 2 * q : q) + (!s.owns_kv ? 0 : s.value_is_key ? kv : 2 * kv));
  if (s.bias_out) extra(layer, Extra::kBias, out);
  extra(layer, Extra::kNorm, s.query_norm + (s.owns_kv ? s.key_norm : 0));
  extra(layer, Extra::kSink, s.sinks);
  norms(layer, s.norms);
  AttentionCore core;
  core.mask = s.mask;
  core.span = s.span;
  core.heads = s.heads;
  core.kv_heads = s.kv_heads;
  core.qk_dim = s.head_dim;
  core.v_dim = s.head_dim;
  core.cache_elements = s.owns_kv && s.mask != Mask::kBidirectional ? 2 * kv : 0;
  layer.attention = core;
  return layer;
}

Layer latent_attention_layer(const LatentAttentionShape& s) {
  Layer layer = once(s.index_topk > 0 ? LayerKind::kSparseLatentAttention : LayerKind::kLatentAttention);
  const std::uint64_t qk = s.qk_nope_head_dim + s.qk_rope_head_dim;
  const std::uint64_t kv_a = s.kv_lora_rank + s.qk_rope_head_dim;
  if (s.q_lora_rank > 0) {
    layer.matmuls.push_back(matmul(Operation::kQueryDown, s.hidden, s.q_lora_rank));
    layer.matmuls.push_back(matmul(Operation::kQueryUp, s.q_lora_rank, s.heads * qk, Split::kOutputs));
    extra(layer, Extra::kNorm, s.q_lora_rank);
    if (s.bias) extra(layer, Extra::kBias, s.q_lora_rank);
  } else {
    layer.matmuls.push_back(matmul(Operation::kQuery, s.hidden, s.heads * qk, Split::kOutputs));
  }
  layer.matmuls.push_back(matmul(Operation::kKeyValueDown, s.hidden, kv_a));
  layer.matmuls.push_back(matmul(Operation::kKeyValueUp, s.kv_lora_rank, s.heads * (s.qk_nope_head_dim + s.v_head_dim), Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kAttentionOutput, s.heads * s.v_head_dim, s.hidden, Split::kInputs));
  extra(layer, Extra::kNorm, s.kv_lora_rank);
  if (s.bias) extra(layer, Extra::kBias, kv_a + s.hidden);
  norms(layer, s.norms);
  AttentionCore core;
  core.heads = s.heads;
  core.kv_heads = s.heads;
  core.qk_dim = qk;
  core.v_dim = s.v_head_dim;
  core.cache_elements = kv_a;
  core.latent_dim = s.kv_lora_rank;
  core.rope_dim = s.qk_rope_head_dim;
  if (s.index_topk > 0) {
    core.mask = Mask::kTopK;
    core.span = s.index_topk;
  }
  if (s.index_topk > 0 && s.owns_indexer) {
    const std::uint64_t index_in = s.q_lora_rank > 0 ? s.q_lora_rank : s.hidden;
    layer.matmuls.push_back(matmul(Operation::kIndexQuery, index_in, s.index_heads * s.index_dim));
    layer.matmuls.push_back(matmul(Operation::kIndexKey, s.hidden, s.index_dim));
    layer.matmuls.push_back(matmul(Operation::kIndexWeights, s.hidden, s.index_heads));
    extra(layer, Extra::kNorm, 2 * s.index_dim);  // a LayerNorm of the keys
    core.index_heads = s.index_heads;
    core.index_dim = s.index_dim;
    core.cache_elements += s.index_dim;
  }
  layer.attention = core;
  return layer;
}

Layer mlp_layer(const MlpShape& s) {
  Layer layer = once(LayerKind::kMlp);
  feed_forward(layer, {s.hidden, s.intermediate, s.gated, s.bias});
  norms(layer, s.norms);
  return layer;
}

Layer moe_layer(const MoeShape& s) {
  Layer layer = once(LayerKind::kMoe);
  layer.matmuls.push_back(matmul(Operation::kRouter, s.hidden, s.experts));
  if (s.router_bias) extra(layer, Extra::kBias, s.experts);
  extra(layer, Extra::kNorm, s.router_extra);
  if (s.latent > 0) layer.matmuls.push_back(matmul(Operation::kLatentDown, s.hidden, s.latent));
  const std::uint64_t width = s.latent > 0 ? s.latent : s.hidden;
  feed_forward(layer, {width, s.expert_intermediate, s.gated, s.expert_bias, Expert::kRouted, s.experts, s.top_k});
  if (s.latent > 0) layer.matmuls.push_back(matmul(Operation::kLatentUp, s.latent, s.hidden));
  if (s.shared_intermediate > 0) {
    feed_forward(layer, {s.hidden, s.shared_intermediate, s.gated, false, Expert::kShared});
    if (s.shared_gate) layer.matmuls.push_back(matmul(Operation::kSharedGate, s.hidden, 1));
  }
  if (s.dense_intermediate > 0) feed_forward(layer, {s.hidden, s.dense_intermediate, s.gated, false});
  norms(layer, s.norms);
  return layer;
}

Layer mamba2_layer(const Mamba2Shape& s) {
  Layer layer = once(LayerKind::kMamba2);
  const std::uint64_t d = s.heads * s.head_dim;
  const std::uint64_t channels = d + 2 * s.groups * s.state;  // x, B and C
  const std::uint64_t in = d + channels + s.heads;            // z, x, B, C, dt
  layer.matmuls.push_back(matmul(Operation::kRecurrentIn, s.hidden, in, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentOut, d, s.hidden, Split::kInputs));
  if (s.bias) extra(layer, Extra::kBias, in + s.hidden);
  extra(layer, Extra::kConvolution, channels * (s.conv_kernel + (s.conv_bias ? 1 : 0)));
  extra(layer, Extra::kState, 3 * s.heads);  // A, D, dt bias
  if (s.gated_norm) extra(layer, Extra::kNorm, d);
  norms(layer, s.norms);
  layer.recurrence = RecurrentCore{Recurrence::kMamba2, d, s.state, s.groups, s.heads, s.chunk, s.conv_kernel, channels};
  return layer;
}

Layer mamba1_layer(const Mamba1Shape& s) {
  Layer layer = once(LayerKind::kMamba1);
  layer.matmuls.push_back(matmul(Operation::kRecurrentIn, s.hidden, 2 * s.inner, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentStep, s.inner, s.dt_rank + 2 * s.state, Split::kInputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentStep, s.dt_rank, s.inner, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentOut, s.inner, s.hidden, Split::kInputs));
  if (s.bias) extra(layer, Extra::kBias, 2 * s.inner + s.hidden);
  extra(layer, Extra::kBias, s.inner);  // of dt_proj
  extra(layer, Extra::kConvolution, s.inner * (s.conv_kernel + (s.conv_bias ? 1 : 0)));
  extra(layer, Extra::kState, s.inner * s.state + s.inner);  // A, D
  if (s.inner_norms) extra(layer, Extra::kNorm, s.dt_rank + 2 * s.state);
  norms(layer, s.norms);
  layer.recurrence = RecurrentCore{Recurrence::kMamba1, s.inner, s.state, 1, 1, 0, s.conv_kernel, s.inner};
  return layer;
}

Layer gated_delta_net_layer(const DeltaNetShape& s) {
  Layer layer = once(LayerKind::kGatedDeltaNet);
  const std::uint64_t k = s.key_heads * s.key_dim;
  const std::uint64_t v = s.value_heads * s.value_dim;
  layer.matmuls.push_back(matmul(Operation::kRecurrentIn, s.hidden, 2 * k + 2 * v, Split::kOutputs));  // q, k, v, z
  layer.matmuls.push_back(matmul(Operation::kRecurrentGate, s.hidden, 2 * s.value_heads, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentOut, v, s.hidden, Split::kInputs));
  extra(layer, Extra::kConvolution, (2 * k + v) * s.conv_kernel);
  extra(layer, Extra::kState, 2 * s.value_heads);  // A, dt bias
  extra(layer, Extra::kNorm, s.value_dim);
  norms(layer, s.norms);
  layer.recurrence = RecurrentCore{Recurrence::kDeltaRule, v, s.key_dim, 1, s.value_heads, 0, s.conv_kernel, 2 * k + v};
  return layer;
}

Layer kimi_delta_layer(const DeltaNetShape& s) {
  Layer layer = once(LayerKind::kKimiDeltaAttention);
  const std::uint64_t width = s.value_heads * s.value_dim;
  layer.matmuls.push_back(matmul(Operation::kRecurrentIn, s.hidden, 3 * width, Split::kOutputs));  // q, k, v
  for (int gate = 0; gate < 2; ++gate) {  // of the decay, and of the output
    layer.matmuls.push_back(matmul(Operation::kRecurrentGate, s.hidden, s.value_dim));
    layer.matmuls.push_back(matmul(Operation::kRecurrentGate, s.value_dim, width, Split::kOutputs));
  }
  layer.matmuls.push_back(matmul(Operation::kRecurrentGate, s.hidden, s.value_heads, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentOut, width, s.hidden, Split::kInputs));
  extra(layer, Extra::kConvolution, 3 * width * s.conv_kernel);
  extra(layer, Extra::kState, s.value_heads + width);  // A, dt bias
  extra(layer, Extra::kNorm, s.value_dim);
  norms(layer, s.norms);
  layer.recurrence = RecurrentCore{Recurrence::kDeltaRule, width, s.key_dim, 1, s.value_heads, 0, s.conv_kernel, 3 * width};
  return layer;
}

Layer lightning_attention_layer(const LightningAttentionShape& s) {
  Layer layer = once(LayerKind::kLinearAttention);
  const std::uint64_t width = s.heads * s.head_dim;
  layer.matmuls.push_back(matmul(Operation::kRecurrentIn, s.hidden, 3 * width, Split::kOutputs));  // q, k, v
  layer.matmuls.push_back(matmul(Operation::kRecurrentGate, s.hidden, width, Split::kOutputs));
  layer.matmuls.push_back(matmul(Operation::kRecurrentOut, width, s.hidden, Split::kInputs));
  extra(layer, Extra::kNorm, width);  // before the gate; the decay of each head is no parameter
  norms(layer, s.norms);
  layer.recurrence = RecurrentCore{Recurrence::kLinearAttention, width, s.head_dim, 1, s.heads, 0, 0, 0};
  return layer;
}

Layer linear_layer(std::uint64_t in, std::uint64_t out, Norms n) {
  Layer layer = once(LayerKind::kLinear);
  layer.matmuls.push_back(matmul(Operation::kLinearReplacement, in, out, Split::kOutputs));
  norms(layer, n);
  return layer;
}

Layer embedding_layer(std::uint64_t vocab, std::uint64_t width, std::uint64_t positions) {
  Layer layer = once(LayerKind::kEmbedding);
  extra(layer, Extra::kTokenEmbedding, vocab * width);
  extra(layer, Extra::kPositionEmbedding, positions * width);
  return layer;
}

Layer norm_layer(Norms n) {
  Layer layer = once(LayerKind::kNorm);
  norms(layer, n);
  return layer;
}

Layer head_layer(std::uint64_t hidden, std::uint64_t vocab, bool tied, Norms n, bool bias) {
  Layer layer = once(LayerKind::kHead);
  Matmul head = matmul(Operation::kHead, hidden, vocab, Split::kOutputs);
  head.stored = tied ? 0 : 1;
  layer.matmuls.push_back(head);
  if (bias) extra(layer, Extra::kBias, vocab);
  norms(layer, n);
  return layer;
}

Layer prediction_layer(std::uint64_t hidden, Norms n) {
  Layer layer = once(LayerKind::kPrediction);
  layer.matmuls.push_back(matmul(Operation::kPredictionIn, 2 * hidden, hidden));
  norms(layer, n);
  return layer;
}

Layer per_layer_input_layer(std::uint64_t hidden, std::uint64_t width) {
  Layer layer = once(LayerKind::kPerLayerInput);
  layer.matmuls.push_back(matmul(Operation::kLinearReplacement, hidden, width));  // gate
  layer.matmuls.push_back(matmul(Operation::kLinearReplacement, width, hidden));
  extra(layer, Extra::kNorm, hidden);
  return layer;
}

Layer patch_layer(std::uint64_t pixels, std::uint64_t width, bool bias, std::uint64_t positions) {
  Layer layer = once(LayerKind::kPatchEmbedding);
  layer.section = Section::kVision;
  layer.matmuls.push_back(matmul(Operation::kPatch, pixels, width));
  if (bias) extra(layer, Extra::kBias, width);
  extra(layer, Extra::kPositionEmbedding, positions * width);
  return layer;
}

}  // namespace flopsight::flops
