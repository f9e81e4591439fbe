#include "flops/count.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

// Of one document of s tokens. Doubles throughout: s*s of a hostile length does not fit an integer.
double context_of(const AttentionCore& core, double s, const CountingRules& rules) {
  if (core.mask == Mask::kBidirectional || core.mask == Mask::kSource) {
    const bool windows = core.span > 0 && rules.window != WindowRule::kIgnored;
    return rules.causal == CausalRule::kNone ? 0 : windows ? std::min(s, static_cast<double>(core.span)) : s;
  }
  const auto causal = [&](double length) {
    switch (rules.causal) {
      case CausalRule::kExact: return (length + 1) / 2;
      case CausalRule::kHalf: return length / 2;
      case CausalRule::kFull: return length;
      case CausalRule::kNone: break;
    }
    return 0.0;
  };
  const double span = static_cast<double>(core.span);
  if (core.mask == Mask::kCausal || span >= s || rules.window == WindowRule::kIgnored || rules.causal == CausalRule::kNone) {
    return causal(s);
  }
  if (rules.window == WindowRule::kHalved) return span / 2;
  if (rules.window == WindowRule::kWidth) return span;
  if (core.mask == Mask::kChunk) {
    const double chunks = static_cast<double>(static_cast<std::uint64_t>(s / span));
    const double rest = s - chunks * span;
    return (chunks * span * causal(span) + rest * causal(rest)) / s;
  }
  return (span * causal(span) + (s - span) * span) / s;
}


Part part_of(const Matmul& m) {
  switch (m.operation) {
    case Operation::kGate:
    case Operation::kUp:
    case Operation::kDown:
      return m.expert == Expert::kRouted   ? Part::kRoutedExperts
             : m.expert == Expert::kShared ? Part::kSharedExperts
                                           : Part::kFeedForward;
    case Operation::kRouter:
    case Operation::kSharedGate: return Part::kRouter;
    case Operation::kLatentDown:
    case Operation::kLatentUp: return Part::kLatentProjection;
    case Operation::kRecurrentIn:
    case Operation::kRecurrentOut:
    case Operation::kRecurrentStep:
    case Operation::kRecurrentGate: return Part::kRecurrentProjection;
    case Operation::kHead: return Part::kHead;
    case Operation::kPredictionIn: return Part::kPredictionProjection;
    case Operation::kLinearReplacement: return Part::kFeedForward;
    case Operation::kIndexQuery:
    case Operation::kIndexKey:
    case Operation::kIndexWeights: return Part::kIndexer;
    case Operation::kPatch:
    case Operation::kProjector: return Part::kVision;
    case Operation::kAdapterDown:
    case Operation::kAdapterUp: return Part::kAdapter;
    default: return Part::kAttentionProjection;
  }
}

bool counted(const Matmul& m, const CountingRules& rules) {
  switch (part_of(m)) {
    case Part::kHead: return rules.count_head;
    case Part::kRouter: return m.operation == Operation::kSharedGate ? rules.count_shared_gate : rules.count_router;
    case Part::kIndexer: return rules.count_indexer;
    default: return m.operation != Operation::kOutputGate || rules.count_output_gate;
  }
}

double forward_flops(const Matmul& m) {
  return 2 * static_cast<double>(m.in) * static_cast<double>(m.out) * static_cast<double>(m.active);
}

// Forward passes that training takes: itself, the gradient of the input, that of the weight.
double passes(Training training) {
  return training == Training::kTrained ? 3 : training == Training::kFrozen ? 2 : 1;
}

// The core's operands are both activations: their gradients are needed unless nothing trained lies below.
Training core_training(const Layer& layer) {
  const bool dead = !layer.matmuls.empty() &&
                    std::all_of(layer.matmuls.begin(), layer.matmuls.end(),
                                [](const Matmul& m) { return m.training == Training::kNoGradient; });
  return dead ? Training::kNoGradient : Training::kTrained;
}

double source_ratio(const Sequence& sequence) {
  return sequence.source_tokens == 0 ? 1.0 : static_cast<double>(sequence.source_tokens) / static_cast<double>(sequence.tokens);
}

// Sources: layer_kinds.h. d: inner width, N: state, G: groups, Q: chunk, c: kernel of the convolution.
void add_recurrence(Cost& cost, const RecurrentCore& core, const CountingRules& rules) {
  if (rules.recurrence == RecurrentRule::kNone) return;
  const auto d = static_cast<double>(core.width);
  const auto n = static_cast<double>(core.state);
  const auto at = [&](Part part) -> double& { return cost.flops[static_cast<std::size_t>(part)]; };
  if (rules.count_convolution && !(rules.recurrence == RecurrentRule::kMegatron && core.kind == Recurrence::kMamba2)) {
    at(Part::kConvolution) += 2 * static_cast<double>(core.conv_kernel) * static_cast<double>(core.conv_channels);
  }
  switch (core.kind) {
    case Recurrence::kMamba1: at(Part::kScan) += 9 * n * d; break;
    case Recurrence::kMamba2: {
      const auto q = static_cast<double>(core.chunk);
      const double chunked = 2 * q * n * static_cast<double>(core.groups) + 2 * q * d + 4 * n * d;
      at(Part::kRecurrentCore) += rules.recurrence == RecurrentRule::kMegatron ? 7 * n * d : chunked;
      break;
    }
    case Recurrence::kDeltaRule: at(Part::kRecurrentCore) += 8 * d * n; break;
    case Recurrence::kLinearAttention: at(Part::kRecurrentCore) += 4 * d * n; break;
  }
}

// Runs of a layer for a token of text.
double runs(const Layer& layer, const Model& model, const Workload& workload) {
  const double executed = static_cast<double>(layer.executed) / static_cast<double>(layer.tokens_per_run);
  switch (layer.section) {
    case Section::kText: return executed;
    case Section::kEncoder: return executed * source_ratio(workload.sequence);
    case Section::kPrediction:
      return model.prediction_steps == 0 ? 0
                                         : executed * static_cast<double>(workload.prediction_steps) /
                                               static_cast<double>(model.prediction_steps);
    case Section::kVision: break;
  }
  return 0;
}

Sequence sequence_of(const Layer& layer, const Sequence& sequence) {
  if (layer.section != Section::kEncoder || sequence.source_tokens == 0) return sequence;
  Sequence source;
  source.tokens = sequence.source_tokens;
  return source;
}

// How often a part of a layer is run through, counted in its forward pass.
struct Passes {
  bool training = false;
  Execution execution;

  double operator()(Part part, Training of) const {
    if (!training) return 1;
    double times = passes(of);
    if (of == Training::kNoGradient) return times;
    const bool core = part == Part::kAttentionCore;
    const bool in_block = part != Part::kHead && part != Part::kEmbedding;
    if (execution.recompute == Recompute::kFull ? in_block : execution.recompute == Recompute::kSelective && core) times += 1;
    if (core && execution.attention_backward_rebuilds) times += 0.5;
    return times;
  }
};

void add_attention(Cost& cost, const AttentionCore& core, const Sequence& sequence, const CountingRules& rules) {
  const bool absorbed = rules.absorb_latent_attention && core.latent_dim > 0;
  const double width = static_cast<double>(core.heads) * static_cast<double>(absorbed ? 2 * core.latent_dim + core.rope_dim : core.qk_dim + core.v_dim);
  cost.flops[static_cast<std::size_t>(Part::kAttentionCore)] += 2 * width * mean_context(core, sequence, rules);
  if (core.index_heads == 0 || !rules.count_indexer) return;
  AttentionCore scores = core;  // the indexer looks at every key
  scores.mask = Mask::kCausal;
  cost.flops[static_cast<std::size_t>(Part::kIndexer)] += 2 * static_cast<double>(core.index_heads) *
                                                          static_cast<double>(core.index_dim) *
                                                          mean_context(scores, sequence, rules);
}

Cost layer_cost(const Layer& layer, const Sequence& sequence, const CountingRules& rules, const Passes& passes_of) {
  Cost cost;
  // Keys and values of cross-attention are made once for each token of the source.
  const bool crosses = layer.attention && layer.attention->mask == Mask::kSource;
  for (const Matmul& m : layer.matmuls) {
    if (!counted(m, rules)) continue;
    const bool source = crosses && (m.operation == Operation::kKey || m.operation == Operation::kValue);
    const Part part = part_of(m);
    cost.flops[static_cast<std::size_t>(part)] +=
        forward_flops(m) * passes_of(part, m.training) * (source ? source_ratio(sequence) : 1);
  }
  Cost core;
  if (layer.attention) add_attention(core, *layer.attention, sequence, rules);
  if (layer.recurrence) add_recurrence(core, *layer.recurrence, rules);
  if (rules.count_embedding) {
    for (const Vector& v : layer.vectors) {
      if (v.kind != Extra::kTokenEmbedding) continue;
      core.flops[static_cast<std::size_t>(Part::kEmbedding)] += 2 * static_cast<double>(v.elements);
    }
  }
  const Training training = core_training(layer);
  for (std::size_t i = 0; i < kPartCount; ++i) {
    cost.flops[i] += core.flops[i] * passes_of(static_cast<Part>(i), training);
  }
  return cost;
}

Cost model_cost(const Model& model, const Workload& workload, const CountingRules& rules, const Passes& passes_of) {
  if (rules.has_mistakes()) return model_cost(with_mistakes(model, rules), workload, rules.without_mistakes(), passes_of);
  Cost cost;
  for (const Layer& layer : model.layers) {
    const double times = runs(layer, model, workload);
    if (times == 0) continue;
    const Cost one = layer_cost(layer, sequence_of(layer, workload.sequence), rules, passes_of);
    for (std::size_t i = 0; i < kPartCount; ++i) cost.flops[i] += one.flops[i] * times;
  }
  return cost;
}

std::uint64_t elements(const Layer& layer, bool active) {
  std::uint64_t sum = 0;
  for (const Matmul& m : layer.matmuls) sum += m.in * m.out * (active ? std::min(m.active, m.stored) : m.stored);
  for (const Vector& v : layer.vectors) sum += v.elements * (active ? std::min(v.active, v.stored) : v.stored);
  return sum;
}

std::uint64_t elements_of(const Layer& layer, Extra kind) {
  std::uint64_t sum = 0;
  for (const Vector& v : layer.vectors) sum += v.kind == kind ? v.elements * v.stored : 0;
  return sum;
}

}  // namespace

std::string_view part_name(Part part) {
  constexpr std::array<std::string_view, kPartCount> kNames = {
      "attention_projection", "attention_core", "indexer", "feed_forward", "routed_experts", "shared_experts",
      "latent_projection", "router", "recurrent_projection", "recurrent_core", "scan", "convolution", "lm_head",
      "mtp_projection", "embedding", "vision", "adapter"};
  return kNames[static_cast<std::size_t>(part)];
}

bool on_tensor_cores(Part part) {
  return part != Part::kScan && part != Part::kConvolution && part != Part::kEmbedding;
}

bool is_block_linear(Part part) {
  switch (part) {
    case Part::kAttentionProjection:
    case Part::kFeedForward:
    case Part::kRoutedExperts:
    case Part::kSharedExperts:
    case Part::kLatentProjection:
    case Part::kRecurrentProjection: return true;
    default: return false;
  }
}

double Cost::total() const {
  double sum = 0;
  for (const double flops_of_part : flops) sum += flops_of_part;
  return sum;
}

Cost& Cost::operator+=(const Cost& other) {
  for (std::size_t i = 0; i < kPartCount; ++i) flops[i] += other.flops[i];
  return *this;
}

double mean_context(const AttentionCore& core, const Sequence& sequence, const CountingRules& rules) {
  if (core.mask == Mask::kSource) {
    return context_of(core, static_cast<double>(sequence.source_tokens > 0 ? sequence.source_tokens : sequence.tokens), rules);
  }
  if (sequence.documents.empty()) return context_of(core, static_cast<double>(sequence.tokens), rules);
  double keys = 0, queries = 0;
  for (const std::uint64_t document : sequence.documents) {
    const auto length = static_cast<double>(document);
    keys += length * context_of(core, length, rules);
    queries += length;
  }
  return queries > 0 ? keys / queries : 0;
}

Cost layer_forward(const Layer& layer, const Sequence& sequence, const CountingRules& rules) {
  return layer_cost(layer, sequence, rules, Passes{});
}

Cost layer_train(const Layer& layer, const Sequence& sequence, const CountingRules& rules) {
  return layer_cost(layer, sequence, rules, Passes{true, {}});
}

Cost forward_cost(const Model& model, const Workload& workload, const CountingRules& rules) {
  return model_cost(model, workload, rules, Passes{});
}

Cost train_cost(const Model& model, const Workload& workload, const CountingRules& rules) {
  return model_cost(model, workload, rules, Passes{true, {}});
}

Cost executed_cost(const Model& model, const Workload& workload, const Execution& execution, const CountingRules& rules) {
  return model_cost(model, workload, rules, Passes{true, execution});
}

Cost vision_forward_per_image(const Model& model, const CountingRules& rules) {
  Cost cost;
  if (!model.vision) return cost;
  const auto patches = static_cast<double>(model.vision->patches);
  Sequence sequence;
  sequence.tokens = model.vision->patches;
  for (const Layer& layer : model.layers) {
    if (layer.section != Section::kVision) continue;
    const double times = patches * static_cast<double>(layer.executed) / static_cast<double>(layer.tokens_per_run);
    const Cost one = layer_forward(layer, sequence, rules);
    for (std::size_t i = 0; i < kPartCount; ++i) cost.flops[i] += one.flops[i] * times;
  }
  return cost;
}

std::uint64_t layer_parameters(const Layer& layer) { return elements(layer, false); }

std::uint64_t layer_parameters_active(const Layer& layer) { return elements(layer, true); }

Parameters count_parameters(const Model& model) {
  Parameters sum;
  for (const Layer& layer : model.layers) {
    const std::uint64_t all = layer.stored * layer_parameters(layer);
    if (layer.section == Section::kPrediction) {
      sum.prediction += all;
      continue;
    }
    sum.total += all;
    if (layer.section == Section::kVision) {
      sum.vision += all;
      continue;
    }
    sum.active += layer.stored * layer_parameters_active(layer);
    sum.embedding += layer.stored * elements_of(layer, Extra::kTokenEmbedding);
    sum.position += layer.stored * elements_of(layer, Extra::kPositionEmbedding);
  }
  return sum;
}

std::uint64_t matmul_weights_active(const Model& model) {
  std::uint64_t sum = 0;
  for (const Layer& layer : model.layers) {
    if (layer.section != Section::kText && layer.section != Section::kEncoder) continue;
    for (const Matmul& m : layer.matmuls) sum += layer.executed * m.in * m.out * m.active;
  }
  return sum;
}

Cache count_cache(const Model& model) {
  Cache sum;
  for (const Layer& layer : model.layers) {
    if (layer.section != Section::kText) continue;
    if (layer.attention) {
      const AttentionCore& core = *layer.attention;
      sum.elements_per_token += layer.executed * core.cache_elements;
      if (core.mask != Mask::kWindow && core.mask != Mask::kChunk) sum.elements_per_token_growing += layer.executed * core.cache_elements;
    }
    if (layer.recurrence) {
      const RecurrentCore& core = *layer.recurrence;
      const std::uint64_t kept = core.conv_kernel > 0 ? core.conv_kernel - 1 : 0;
      sum.state_elements_per_sequence += layer.executed * (core.width * core.state + core.conv_channels * kept);
    }
  }
  return sum;
}

}  // namespace flopsight::flops
