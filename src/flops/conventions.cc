#include "flops/conventions.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

double number(std::uint64_t n) { return static_cast<double>(n); }

ConventionCost trained(double flops_train) { return {flops_train / 3, flops_train, ""}; }

ConventionCost by_rules(const Model& model, const Workload& workload, const CountingRules& rules) {
  return {forward_cost(model, workload, rules).total(), train_cost(model, workload, rules).total(), ""};
}

// Forward FLOPs of all attention cores.
double cores(const Model& model, const Workload& workload, CausalRule causal, WindowRule window) {
  CountingRules rules;
  rules.causal = causal;
  rules.window = window;
  return forward_cost(model, {workload.sequence, 0}, rules).of(Part::kAttentionCore);
}

double full_cores(const Model& model, const Workload& workload) {
  return cores(model, workload, CausalRule::kFull, WindowRule::kIgnored);
}

ConventionCost audit_causal(const Model& model, const Workload& workload) { return by_rules(model, workload, {}); }

CountingRules full_attention_rules() {
  CountingRules rules;
  rules.causal = CausalRule::kFull;
  rules.window = WindowRule::kIgnored;
  return rules;
}

ConventionCost audit_full_attention(const Model& model, const Workload& workload) {
  return by_rules(model, workload, full_attention_rules());
}

ConventionCost six_n_total(const Model& model, const Workload&) {
  return trained(6 * number(count_parameters(model).text()));
}

ConventionCost six_n_active(const Model& model, const Workload&) { return trained(6 * number(count_parameters(model).active)); }

ConventionCost palm(const Model& model, const Workload& workload) {
  return trained(6 * number(count_parameters(model).active) + 3 * full_cores(model, workload));
}

bool has_recurrence(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& l) { return l.recurrence.has_value(); });
}

CountingRules megatron_rules(const Model& model) {
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  rules.window = WindowRule::kIgnored;
  rules.recurrence = RecurrentRule::kMegatron;
  rules.count_router = false;
  rules.count_convolution = false;
  rules.recurrent_width_twice_hidden = true;
  if (has_recurrence(model)) rules.count_output_gate = true;
  return rules;
}

ConventionCost megatron(const Model& model, const Workload& workload) {
  return by_rules(model, workload, megatron_rules(model));
}

ConventionCost torchtitan(const Model& model, const Workload& workload) {
  const Parameters p = count_parameters(model);
  const double counted = number(p.active) - (model.shape.tied ? 0 : number(p.embedding));
  return trained(6 * counted + 3 * cores(model, workload, CausalRule::kFull, WindowRule::kWidth));
}

ConventionCost hf_trainer(const Model& model, const Workload&) {
  const Parameters p = count_parameters(model);
  return trained(6 * number(p.text() - p.embedding));
}

ConventionCost litgpt(const Model& model, const Workload& workload) {
  return trained(6 * number(count_parameters(model).text()) + 5 * full_cores(model, workload));
}

ConventionCost llm_foundry(const Model& model, const Workload& workload) {
  return trained(6 * number(count_parameters(model).active) + 3 * full_cores(model, workload));
}

ConventionCost nanogpt(const Model& model, const Workload& workload) {
  const Parameters p = count_parameters(model);
  return trained(6 * number(p.text() - p.position) + 3 * full_cores(model, workload));
}

ConventionCost hfu_full_recompute(const Model& model, const Workload& workload) {
  const double forward = forward_cost(model, workload).total();
  return {forward, executed_cost(model, workload, {Recompute::kFull, false}).total(), ""};
}

std::optional<CountingRules> no_rules(const Model&) { return std::nullopt; }

}  // namespace

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> kConventions = {
      {"audit_causal", "2 x active matmul weights, exact masks, recurrent cores; the audit's own", "docs/flops.md", audit_causal,
       [](const Model&) { return std::optional(CountingRules{}); }},
      {"audit_full_attention", "the same with every attention layer over the whole sequence", "docs/flops.md", audit_full_attention,
       [](const Model&) { return std::optional(full_attention_rules()); }},
      {"6n_total", "6 x all parameters: wrong for experts", "https://arxiv.org/abs/2001.08361", six_n_total, no_rules},
      {"6n_active", "6 x parameters that a token goes through, embeddings included; no attention", "https://arxiv.org/abs/2001.08361", six_n_active, no_rules},
      {"palm", "6N + 12 x layers x heads x head size x sequence, no causal discount", "https://arxiv.org/abs/2204.02311 appendix B", palm, no_rules},
      {"megatron", "causal s/2, no windows, no router, Mamba width 2 x hidden", "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/megatron/training/training.py", megatron,
       [](const Model& model) { return std::optional(megatron_rules(model)); }},
      {"torchtitan", "6 x active parameters without the embedding + full attention, windows at their width; no recurrent cores", "https://github.com/pytorch/torchtitan/blob/b5bcd76/torchtitan/models/utils.py", torchtitan, no_rules},
      {"hf_trainer", "6 x all parameters without the embedding; all experts, no attention", "https://github.com/huggingface/transformers (Trainer.floating_point_ops)", hf_trainer, no_rules},
      {"litgpt", "6 x all parameters + 5/3 of full attention's training FLOPs", "https://github.com/Lightning-AI/litgpt/blob/2685705/litgpt/utils.py", litgpt, no_rules},
      {"llm_foundry", "6N + 12 x layers x width x sequence", "https://github.com/mosaicml/llm-foundry/blob/8c8dd48/scripts/train/benchmarking/README.md", llm_foundry, no_rules},
      {"nanogpt", "6 x parameters without positions + full attention", "https://github.com/karpathy/nanoGPT/blob/master/model.py", nanogpt, no_rules},
      {"hfu_full_recompute", "what is executed when every block is run forward again", "https://arxiv.org/abs/2205.05198", hfu_full_recompute, no_rules},
  };
  return kConventions;
}

const Convention* find_convention(std::string_view name) {
  for (const Convention& convention : conventions()) {
    if (convention.name == name) return &convention;
  }
  return nullptr;
}

}  // namespace flopsight::flops
