#include "flops/rules.h"

#include <algorithm>

#include "flops/layer_kinds.h"

namespace flopsight::flops {
namespace {

bool is_attention(const Layer& layer) {
  return layer.attention.has_value() && layer.attention->latent_dim == 0 && layer.section != Section::kVision;
}

bool is_feed_forward(const Matmul& m) {
  return m.operation == Operation::kGate || m.operation == Operation::kUp || m.operation == Operation::kDown;
}

// Ordinary attention with other sizes: its projections follow.
void resize_attention(Layer& layer, std::uint64_t kv_heads, std::uint64_t head_dim) {
  AttentionCore& core = *layer.attention;
  core.kv_heads = kv_heads;
  core.qk_dim = head_dim;
  core.v_dim = head_dim;
  for (Matmul& m : layer.matmuls) {
    switch (m.operation) {
      case Operation::kQuery:
      case Operation::kOutputGate: m.out = core.heads * head_dim; break;
      case Operation::kKey:
      case Operation::kValue: m.out = kv_heads * head_dim; break;
      case Operation::kAttentionOutput: m.in = core.heads * head_dim; break;
      default: break;
    }
  }
}

void change_attention(Layer& layer, const Shape& shape, const CountingRules& rules) {
  if (layer.attention && layer.attention->latent_dim > 0 && rules.latent_attention_as_head_dim) {
    AttentionShape as;
    as.hidden = shape.hidden_size;
    as.heads = shape.heads;
    as.kv_heads = shape.kv_heads;
    as.head_dim = *rules.latent_attention_as_head_dim > 0 ? *rules.latent_attention_as_head_dim : shape.hidden_size / shape.heads;
    Layer plain = attention_layer(as);
    plain.section = layer.section;
    plain.executed = layer.executed;
    plain.stored = layer.stored;
    layer = plain;
    return;
  }
  if (!is_attention(layer)) return;
  if (rules.head_dim_from_hidden) {
    resize_attention(layer, layer.attention->kv_heads, std::max<std::uint64_t>(1, shape.hidden_size / layer.attention->heads));
  }
  if (rules.kv_heads_as_heads) resize_attention(layer, layer.attention->heads, layer.attention->qk_dim);
}

void change_experts(Layer& layer, const Shape& shape, const CountingRules& rules) {
  for (Matmul& m : layer.matmuls) {
    if (m.expert == Expert::kNone) continue;
    if (rules.experts_at_intermediate_size && shape.intermediate_size > 0) {
      (m.operation == Operation::kDown ? m.in : m.out) = shape.intermediate_size;
    }
    if (m.expert != Expert::kRouted) continue;
    if (rules.experts == ExpertRule::kAll) m.active = m.stored;
    if (rules.experts == ExpertRule::kOne) m.active = 1;
    if (rules.ignore_latent) (m.operation == Operation::kDown ? m.out : m.in) = shape.hidden_size;
  }
  std::erase_if(layer.matmuls, [&](const Matmul& m) {
    const bool latent = m.operation == Operation::kLatentDown || m.operation == Operation::kLatentUp;
    const bool shared = m.expert == Expert::kShared || m.operation == Operation::kSharedGate;
    return (rules.ignore_latent && latent) || (rules.ignore_shared_experts && shared);
  });
}

void change_matrices(Layer& layer, const Shape& shape, const CountingRules& rules) {
  if (rules.matrices == MatrixRule::kAsBuilt) return;
  const auto touched = [&](const Matmul& m) {
    return is_feed_forward(m) && !(rules.matrices_dense_only && m.expert == Expert::kRouted);
  };
  std::vector<Matmul> gates;
  for (Matmul& m : layer.matmuls) {
    if (!touched(m) || m.operation != Operation::kUp) continue;
    const bool gated = std::any_of(layer.matmuls.begin(), layer.matmuls.end(), [&](const Matmul& other) {
      return other.operation == Operation::kGate && other.expert == m.expert;
    });
    if (rules.matrices != MatrixRule::kThree || gated) continue;
    gates.push_back(m);
    gates.back().operation = Operation::kGate;
  }
  if (rules.matrices == MatrixRule::kThree) {
    layer.matmuls.insert(layer.matmuls.end(), gates.begin(), gates.end());
    return;
  }
  std::erase_if(layer.matmuls, [&](const Matmul& m) { return touched(m) && m.operation == Operation::kGate; });
  if (rules.matrices != MatrixRule::kTwoOfFourHidden || layer.kind != LayerKind::kMlp) return;
  for (Matmul& m : layer.matmuls) {
    if (touched(m)) (m.operation == Operation::kDown ? m.in : m.out) = 4 * shape.hidden_size;
  }
}

// The input projection has the inner width twice (the stream and its gate), the output projection once.
void change_recurrent_width(Layer& layer, const Shape& shape) {
  if (!layer.recurrence || layer.recurrence->kind != Recurrence::kMamba2) return;
  const std::uint64_t is = layer.recurrence->width;
  const std::uint64_t taken = 2 * shape.hidden_size;
  for (Matmul& m : layer.matmuls) {
    if (m.operation == Operation::kRecurrentIn) m.out = m.out - 2 * is + 2 * taken;
    if (m.operation == Operation::kRecurrentOut) m.in = taken;
  }
  layer.recurrence->width = taken;
}

const Layer* first_layer(const Model& model, bool (*is)(const Layer&)) {
  for (const Layer& layer : model.layers) {
    if (layer.section == Section::kText && is(layer)) return &layer;
  }
  return nullptr;
}

bool has_recurrence(const Layer& layer) { return layer.recurrence.has_value(); }
bool has_attention(const Layer& layer) { return layer.attention.has_value(); }
bool is_ffn(const Layer& layer) { return layer.kind == LayerKind::kMlp || layer.kind == LayerKind::kMoe; }
bool is_moe(const Layer& layer) { return layer.kind == LayerKind::kMoe; }

// A hybrid as a counter sees it that knows transformers only. Text layers other than embedding, head and norms give way to
// `blocks` times attention and feed-forward (the experts' where there are any); or only recurrent layers, to attention.
void change_hybrid(Model& model, const CountingRules& rules) {
  const Layer* attention = first_layer(model, has_attention);
  if (attention == nullptr || first_layer(model, has_recurrence) == nullptr) return;
  const Layer* ffn = first_layer(model, is_moe) != nullptr ? first_layer(model, is_moe) : first_layer(model, is_ffn);
  std::vector<Layer> seen;
  const auto add = [&](const Layer& layer, std::uint64_t times) {
    seen.push_back(layer);
    seen.back().executed = times;
    seen.back().stored = times;
  };
  if (rules.hybrid_as_attention) {
    add(*attention, model.shape.blocks);
    if (ffn != nullptr) add(*ffn, model.shape.blocks);
  }
  for (const Layer& layer : model.layers) {
    const bool recurrent = layer.section == Section::kText && has_recurrence(layer);
    const bool block = layer.section == Section::kText && (recurrent || has_attention(layer) || is_ffn(layer));
    if (rules.hybrid_as_attention && block) continue;
    if (recurrent) {
      add(*attention, layer.executed);
    } else {
      seen.push_back(layer);
    }
  }
  model.layers = std::move(seen);
  model.order.clear();  // of layers that are no more
}

void change_training(Layer& layer) {
  std::erase_if(layer.matmuls, [](const Matmul& m) {
    return m.operation == Operation::kAdapterDown || m.operation == Operation::kAdapterUp;
  });
  for (Matmul& m : layer.matmuls) m.training = Training::kTrained;
}

}  // namespace

CountingRules CountingRules::without_mistakes() const {
  CountingRules rest;
  rest.causal = causal;
  rest.window = window;
  rest.recurrence = recurrence;
  rest.count_embedding = count_embedding;
  rest.count_head = count_head;
  rest.count_router = count_router;
  rest.count_shared_gate = count_shared_gate;
  rest.count_convolution = count_convolution;
  rest.count_output_gate = count_output_gate;
  rest.count_indexer = count_indexer;
  rest.absorb_latent_attention = absorb_latent_attention;
  return rest;
}

bool CountingRules::has_mistakes() const { return !(*this == without_mistakes()); }

Model with_mistakes(const Model& model, const CountingRules& rules) {
  Model seen = model;
  if (rules.hybrid_as_attention || rules.recurrent_layers_as_attention) change_hybrid(seen, rules);
  const Layer* first_moe = first_layer(model, is_moe);
  const std::optional<Layer> moe = first_moe == nullptr ? std::nullopt : std::optional(*first_moe);
  for (Layer& layer : seen.layers) {
    if (layer.section == Section::kVision) continue;
    if (rules.ignore_moe_layers && layer.kind == LayerKind::kMoe) {
      layer.executed = 0;
      continue;
    }
    if (rules.every_feed_forward_moe && moe && layer.kind == LayerKind::kMlp && layer.section == Section::kText) {
      Layer taken = *moe;
      taken.executed = layer.executed;
      taken.stored = layer.stored;
      layer = taken;
    }
    if (rules.shared_layers_once) layer.executed = std::min(layer.executed, layer.stored);
    change_attention(layer, seen.shape, rules);
    change_experts(layer, seen.shape, rules);
    change_matrices(layer, seen.shape, rules);
    if (rules.recurrent_width_twice_hidden) change_recurrent_width(layer, seen.shape);
    if (rules.frozen_as_trained) change_training(layer);
    for (Matmul& m : layer.matmuls) {
      if (m.operation == Operation::kHead) m.out = (m.out + rules.vocab_multiple - 1) / rules.vocab_multiple * rules.vocab_multiple;
    }
  }
  return seen;
}

}  // namespace flopsight::flops
