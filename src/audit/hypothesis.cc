#include "audit/hypothesis.h"

#include <cmath>

#include "flops/conventions.h"

namespace flopsight::audit {
namespace {

using flops::CountingRules;
using flops::Model;
using flops::Workload;

// Below this a mistake changes the count by less than figures are printed with.
constexpr double kSmallestLog = 0.002;

struct Mistake {
  std::string_view id;
  void (*set)(CountingRules& rules);
  std::string_view explanation;
  std::string_view source;
};

constexpr Mistake kMistakes[] = {
    {"latent_ignored", [](CountingRules& r) { r.ignore_latent = true; },
     "routed experts charged at hidden_size instead of their latent size, the latent projections dropped", "Megatron-LM #2977"},
    {"moe_layers_ignored", [](CountingRules& r) { r.ignore_moe_layers = true; },
     "layers with experts counted as nothing", "Megatron-LM #2198"},
    {"all_experts_counted", [](CountingRules& r) { r.experts = flops::ExpertRule::kAll; },
     "every expert charged instead of those that a token goes through", "MaxText #678"},
    {"experts_top1", [](CountingRules& r) { r.experts = flops::ExpertRule::kOne; },
     "one expert charged for a token instead of top-k", "Megatron-DeepSpeed #398"},
    {"experts_full_width", [](CountingRules& r) { r.experts_at_intermediate_size = true; },
     "routed experts as wide as a dense layer (intermediate_size)", "Pai-Megatron-Patch #485"},
    {"shared_expert_ignored", [](CountingRules& r) { r.ignore_shared_experts = true; },
     "shared experts left out", "verl qwen2_moe"},
    {"hybrid_as_attention", [](CountingRules& r) { r.hybrid_as_attention = true; },
     "every block of the hybrid charged as attention and feed-forward", "NeMo #14161"},
    {"hybrid_as_attention", [](CountingRules& r) { r.recurrent_layers_as_attention = true; },
     "recurrent layers charged as attention", "arXiv 2605.20799, hybrid Mamba case"},
    {"hybrid_as_attention",
     [](CountingRules& r) {
       r.hybrid_as_attention = true;
       r.matrices = flops::MatrixRule::kThree;
     },
     "every block of the hybrid charged as attention and a gated feed-forward layer", "NeMo #14161"},
    {"hybrid_as_attention",
     [](CountingRules& r) {
       r.hybrid_as_attention = true;
       r.ignore_moe_layers = true;
     },
     "every block of the hybrid charged as attention, its experts as nothing", "Megatron-LM #2198"},
    {"moe_frequency_ignored", [](CountingRules& r) { r.every_feed_forward_moe = true; },
     "dense feed-forward layers charged as layers with experts", "Megatron-LM 8873b55d6a"},
    {"shared_layers_once", [](CountingRules& r) { r.shared_layers_once = true; },
     "layers that run several times with one set of weights charged once", "6N of models that share weights"},
    {"recurrent_width", [](CountingRules& r) { r.recurrent_width_twice_hidden = true; },
     "Mamba's inner width taken as 2 x hidden_size", "Megatron-LM at d98e8a6"},
    {"recurrent_core_ignored",
     [](CountingRules& r) {
       r.recurrence = flops::RecurrentRule::kNone;
       r.count_convolution = false;
       r.count_output_gate = false;
     },
     "recurrent cores, convolutions and output gates left out", "torchtitan"},
    {"gate_assumed", [](CountingRules& r) { r.matrices = flops::MatrixRule::kThree; },
     "feed-forward layers without a gate charged with three matrices", "NeMo nemotronh"},
    {"gate_ignored", [](CountingRules& r) { r.matrices = flops::MatrixRule::kTwo; },
     "gated feed-forward layers charged with two matrices", "Megatron-LM #682, Megatron-Bridge #3947"},
    {"gate_ignored",
     [](CountingRules& r) {
       r.matrices = flops::MatrixRule::kTwo;
       r.window = flops::WindowRule::kIgnored;
     },
     "gated feed-forward layers charged with two matrices, windows ignored", "Megatron-Bridge #3947"},
    {"intermediate_size_ignored", [](CountingRules& r) { r.matrices = flops::MatrixRule::kTwoOfFourHidden; },
     "feed-forward layers charged as two matrices of 4 x hidden_size", "Megatron-LM #682"},
    {"gqa_ignored", [](CountingRules& r) { r.kv_heads_as_heads = true; },
     "keys and values charged for every query head", "NeMo-RL, GPT-NeoX"},
    {"head_dim", [](CountingRules& r) { r.head_dim_from_hidden = true; },
     "head size taken as hidden_size / heads instead of head_dim", "torchtitan #1920"},
    {"causal_counted_full", [](CountingRules& r) { r.causal = flops::CausalRule::kFull; },
     "every token charged with the whole sequence: the causal mask not taken into account", "MaxText #1988, NeMo #14424"},
    {"causal_counted_full",
     [](CountingRules& r) {
       r.causal = flops::CausalRule::kFull;
       r.window = flops::WindowRule::kIgnored;
     },
     "every token charged with the whole sequence: neither causal mask nor window taken into account", "MaxText #1988"},
    {"window_ignored", [](CountingRules& r) { r.window = flops::WindowRule::kIgnored; },
     "sliding windows, chunks or sparse attention charged as attention to all tokens before", "Megatron-LM #1725"},
    {"window_halved", [](CountingRules& r) { r.window = flops::WindowRule::kHalved; },
     "a window charged with half of its width", "Megatron-LM #3280"},
    {"attention_ignored", [](CountingRules& r) { r.causal = flops::CausalRule::kNone; },
     "attention cores left out", "6N; HF Trainer total_flos"},
    {"mla_as_mha", [](CountingRules& r) { r.latent_attention_as_head_dim = 0; },
     "latent attention charged as ordinary attention with heads of hidden_size / heads", "Megatron-LM #1475"},
    {"embedding_counted", [](CountingRules& r) { r.count_embedding = true; },
     "the lookup in the input embedding charged as a product", "verl"},
    {"vocab_ignored", [](CountingRules& r) { r.count_head = false; }, "the head over the vocabulary left out", "torchtitan #3225"},
    {"router_ignored", [](CountingRules& r) { r.count_router = false; }, "the router left out", "Megatron-LM at d98e8a6"},
    {"indexer_ignored", [](CountingRules& r) { r.count_indexer = false; },
     "the indexer of sparse attention left out", "Megatron-LM 345150631f"},
    {"lora_as_full", [](CountingRules& r) { r.frozen_as_trained = true; },
     "adapters on frozen weights charged as training of all weights", "LLaMA-Factory, ms-swift"},
};

struct ByFormula {
  std::string_view id;
  std::string_view convention;
  std::string_view explanation;
};
constexpr ByFormula kFormulas[] = {
    {"all_experts_counted", "6n_total", "6 x all parameters, experts that a token does not go through included"},
    {"all_experts_counted", "hf_trainer", "6 x all parameters without the embedding, no attention (HF Trainer total_flos)"},
    {"attention_ignored", "6n_active", "6 x active parameters, no attention"},
    {"causal_counted_full", "palm", "6N and attention to the whole sequence (PaLM, appendix B)"},
    {"causal_counted_full", "torchtitan", "6 x active parameters and attention to the whole sequence (torchtitan)"},
    {"attention_counted_twice", "litgpt", "attention charged for frozen and for trained weights (LitGPT)"},
};

double train_total(const Run& run, const Workload& workload, const CountingRules& rules) {
  return flops::train_cost(run.model, workload, rules).total();
}

void add(std::vector<Hypothesis>& list, std::string_view id, Cause cause, double ratio, std::string explanation, std::string_view source) {
  if (!std::isfinite(ratio) || ratio <= 0 || std::abs(std::log(ratio)) < kSmallestLog) return;
  list.push_back({std::string(id), {std::string(id)}, cause, ratio, std::move(explanation), std::string(source)});
}

bool has_experts(const Model& model) {
  for (const flops::Layer& layer : model.layers) {
    if (layer.kind == flops::LayerKind::kMoe) return true;
  }
  return false;
}

// Head sizes that counters have taken for those of latent attention: that of values, and of queries.
void add_latent_attention(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  for (const flops::Layer& layer : run.model.layers) {
    if (!layer.attention || layer.attention->latent_dim == 0) continue;
    for (const std::uint64_t head_dim : {layer.attention->v_dim, layer.attention->qk_dim}) {
      CountingRules rules;
      rules.latent_attention_as_head_dim = head_dim;
      add(list, "mla_as_mha", Cause::kFlops, train_total(run, workload, rules) / right,
          "latent attention charged as ordinary attention with heads of " + std::to_string(head_dim), "torchtitan #1923, verl #4959");
    }
    return;
  }
}

void add_prediction(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  Workload other = workload;
  if (run.prediction_steps.value_or(0) > 0) {
    other.prediction_steps = 0;
    add(list, "mtp_ignored", Cause::kFlops, train_total(run, other, {}) / right, "multi-token prediction left out", "Megatron-LM #1475");
  }
}

// Packed documents taken for one sequence.
void add_packing(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  if (workload.sequence.documents.empty()) return;
  Workload whole = workload;
  whole.sequence.documents.clear();
  add(list, "packing_ignored", Cause::kFlops, train_total(run, whole, {}) / right,
      "packed documents charged as one sequence", "Megatron-Bridge #3498");
  CountingRules full;
  full.causal = flops::CausalRule::kFull;
  add(list, "packing_ignored", Cause::kFlops, train_total(run, whole, full) / right,
      "packed documents charged as one sequence without a causal mask", "Megatron-Bridge #3498");
}

void add_recompute(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  const auto executed = [&](flops::Recompute recompute, bool rebuilds) {
    return flops::executed_cost(run.model, workload, {recompute, rebuilds}).total() / right;
  };
  add(list, "recompute_counted", Cause::kFlops, executed(flops::Recompute::kFull, false),
      "recomputed activations counted: HFU reported as MFU", "Megatron-DeepSpeed #371; arXiv 2205.05198");
  add(list, "recompute_counted", Cause::kFlops, 4.0 / 3, "every layer charged four times a forward pass instead of three", "Megatron-DeepSpeed #371");
  if (run.recompute == flops::Recompute::kSelective) {
    add(list, "recompute_counted", Cause::kFlops, executed(flops::Recompute::kSelective, false),
        "recomputed attention counted: HFU reported as MFU", "arXiv 2205.05198");
  }
  add(list, "attention_backward_counted", Cause::kFlops, executed(flops::Recompute::kNone, true),
      "the attention kernel's backward pass charged as 2.5 forward passes", "FlashAttention benchmarks");
}

std::uint64_t first_known(const std::optional<std::uint64_t>& n) { return n.value_or(1); }

}  // namespace

Workload workload_of(const Run& run) {
  Workload workload;
  workload.sequence.tokens = run.sequence_tokens.value_or(workload.sequence.tokens);
  workload.prediction_steps = run.prediction_steps.value_or(0);
  if (run.document_tokens && *run.document_tokens < workload.sequence.tokens) workload.sequence.documents = {*run.document_tokens};
  return workload;
}

double flops_per_token(const Run& run) { return train_total(run, workload_of(run), {}); }

std::vector<Hypothesis> flops_hypotheses(const Run& run) {
  std::vector<Hypothesis> list;
  const Workload workload = workload_of(run);
  const double right = train_total(run, workload, {});
  if (!(right > 0)) return list;
  for (const Mistake& mistake : kMistakes) {
    CountingRules rules;
    mistake.set(rules);
    add(list, mistake.id, Cause::kFlops, train_total(run, workload, rules) / right, std::string(mistake.explanation), mistake.source);
  }
  add_latent_attention(list, run, workload, right);
  add_prediction(list, run, workload, right);
  add_packing(list, run, workload, right);
  add_recompute(list, run, workload, right);
  if (run.has_adapters) return list;  // the formulas below know of no frozen weights
  const bool experts = has_experts(run.model);
  for (const ByFormula& formula : kFormulas) {
    if (formula.id == "all_experts_counted" && !experts) continue;
    const flops::Convention* convention = flops::find_convention(formula.convention);
    const auto cost = convention == nullptr ? flops::ConventionCost{} : convention->cost(run.model, workload);
    if (cost.flops_train) add(list, formula.id, Cause::kFlops, *cost.flops_train / right, std::string(formula.explanation), convention->source);
  }
  return list;
}

std::vector<Hypothesis> flops_pairs(const Run& run) {
  std::vector<Hypothesis> list;
  const Workload workload = workload_of(run);
  const double right = train_total(run, workload, {});
  CountingRules full;
  full.causal = flops::CausalRule::kFull;
  if (!(right > 0)) return list;
  const double alone = train_total(run, workload, full) / right;
  for (const Mistake& mistake : kMistakes) {
    CountingRules rules = full;
    mistake.set(rules);
    if (rules == full || rules.causal != flops::CausalRule::kFull) continue;
    if (mistake.id == "causal_counted_full" || mistake.id == "window_halved") continue;
    CountingRules single;
    mistake.set(single);
    const double ratio = train_total(run, workload, rules) / right;
    const double other = train_total(run, workload, single) / right;
    // A pair of which one half does nothing is the other half.
    if (std::abs(std::log(ratio / alone)) < kPairHalfLog || std::abs(std::log(ratio / other)) < kPairHalfLog) continue;
    const std::string id(mistake.id);
    add(list, id + "+causal_counted_full", Cause::kFlops, ratio, std::string(mistake.explanation) + "; and the causal mask not taken into account", mistake.source);
    if (!list.empty() && list.back().ids.size() == 1 && list.back().id == id + "+causal_counted_full") list.back().ids = {id, "causal_counted_full"};
  }
  return list;
}

std::vector<Hypothesis> count_hypotheses(const Run& run) {
  std::vector<Hypothesis> list;
  const Layout& layout = run.layout;
  const auto times = [&](std::string_view id, double ratio, const std::string& what) { add(list, id, Cause::kCount, ratio, what, ""); };
  const std::string gpus = "the number of GPUs wrong by ";
  times("gpu_count", 2, gpus + "a factor of 2: the rate is too high");
  times("gpu_count", 0.5, gpus + "a factor of 2: the rate is too low");
  const auto degree = [&](const std::optional<std::uint64_t>& n, const char* name) {
    if (first_known(n) < 2) return;
    const auto factor = static_cast<double>(*n);
    times("gpu_count", factor, gpus + name + " (" + std::to_string(*n) + "): its ranks count the same tokens");
    times("gpu_count", 1 / factor, gpus + name + " (" + std::to_string(*n) + "): divided once too often");
  };
  degree(layout.tensor_parallel, "tensor parallelism");
  degree(layout.pipeline_parallel, "pipeline parallelism");
  degree(layout.context_parallel, "context parallelism");
  degree(layout.expert_parallel, "expert parallelism");
  degree(layout.gpus, "all of them");
  if (layout.gpus && *layout.gpus % 8 == 0 && *layout.gpus > 8) {
    times("gpu_count", 8, gpus + "8: the rate of a node taken for that of a GPU");
    times("gpu_count", static_cast<double>(*layout.gpus) / 8, gpus + "the number of nodes, of 8 GPUs each");
  }
  times("gradient_accumulation", 2, "micro-batches counted twice (pipeline or accumulation)");
  times("gradient_accumulation", 0.5, "half of the micro-batches counted");
  if (first_known(layout.gradient_accumulation) > 1) {
    const auto factor = static_cast<double>(*layout.gradient_accumulation);
    const std::string n = std::to_string(*layout.gradient_accumulation);
    times("gradient_accumulation", factor, "gradient accumulation of " + n + " counted twice");
    times("gradient_accumulation", 1 / factor, "gradient accumulation of " + n + " not counted: one micro-batch's tokens over the time of a step");
  }
  if (run.padding_ratio && *run.padding_ratio < 1) {
    add(list, "padding_counted", Cause::kCount, 1 / (1 - *run.padding_ratio), "padding counted as tokens", "Megatron-LM 5e4fc931ba");
  }
  if (run.productive_ratio && *run.productive_ratio > 0) {
    add(list, "stalls_excluded", Cause::kTime, 1 / *run.productive_ratio, "time of evaluation, checkpoints and stalls left out of the rate", "");
  }
  return list;
}

std::vector<Hypothesis> measured_hypotheses(const Run& run, bool told_ofu) {
  std::vector<Hypothesis> list;
  const flops::Recompute told = run.recompute.value_or(flops::Recompute::kNone);
  if (told != flops::Recompute::kFull) {
    const double more = expected_ofu_over_mfu(run, flops::Recompute::kFull, std::nullopt).ratio;
    const double now = expected_ofu_over_mfu(run, told, std::nullopt).ratio;
    add(list, "recompute_missing", Cause::kExecution, now / more,
        "activations are recomputed, which MFU rightly does not count and the audit was not told", "arXiv 2605.20799, world foundation model");
  }
  const catalog::Device* device = run.device;
  if (told_ofu && device != nullptr && device->nvml_max_sm_clock && device->tensor_peak_clock && device->tensor_peak_clock->value > 0) {
    add(list, "ofu_clock_domain", Cause::kMeasured, device->nvml_max_sm_clock->value / device->tensor_peak_clock->value,
        "OFU divided by the largest SM clock instead of the clock of the tensor peak", "arXiv 2605.20799");
  }
  return list;
}

Expected expected_ofu_over_mfu(const Run& run, flops::Recompute recompute, std::optional<double> reference_peak) {
  const Workload workload = workload_of(run);
  const flops::Cost executed = flops::executed_cost(run.model, workload, {recompute, true});
  const double model = train_total(run, workload, {});
  std::optional<double> linear, other;
  if (run.device != nullptr && run.precision) {
    const auto peak = [&](catalog::Precision precision) -> std::optional<double> {
      const auto found = run.device->peak(precision);
      return found ? std::optional(found->value) : std::nullopt;
    };
    linear = peak(*run.precision);
    const bool low = *run.precision == catalog::Precision::kFp8 || *run.precision == catalog::Precision::kFp6 || *run.precision == catalog::Precision::kFp4;
    other = low ? peak(catalog::Precision::kBf16) : linear;
  }
  Expected expected;
  expected.mixed_precision = linear && other && *linear != *other;
  double sum = 0;
  for (std::size_t i = 0; i < flops::kPartCount; ++i) {
    const auto part = static_cast<flops::Part>(i);
    if (!flops::on_tensor_cores(part)) continue;
    double slower = 1;
    if (linear && other) {
      const double reference = reference_peak.value_or(*linear);
      slower = reference / (flops::is_block_linear(part) ? *linear : *other);
    }
    const bool padded = part == flops::Part::kRoutedExperts;  // experts run over their capacity, filled or not
    sum += executed.of(part) * slower * (padded ? run.capacity_ratio.value_or(1) : 1);
  }
  if (model > 0) expected.ratio = sum / model;
  return expected;
}

}  // namespace flopsight::audit
