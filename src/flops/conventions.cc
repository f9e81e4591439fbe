#include "flops/conventions.h"

#include <algorithm>

#include "flops/adapters.h"

namespace flopsight::flops {
namespace {

double number(std::uint64_t n) { return static_cast<double>(n); }

ConventionCost trained(double flops_train) { return {flops_train / 3, flops_train, ""}; }
ConventionCost absent(std::string reason) { return {std::nullopt, std::nullopt, std::move(reason)}; }

ConventionCost by_rules(const Model& model, const Workload& workload, const CountingRules& rules) {
  return {forward_cost(model, workload, rules).total(), train_cost(model, workload, rules).total(), ""};
}

// Training FLOPs of all attention cores, without prediction steps.
double cores(const Model& model, const Workload& workload, CausalRule causal, WindowRule window) {
  CountingRules rules;
  rules.causal = causal;
  rules.window = window;
  return 3 * forward_cost(model, {workload.sequence, 0}, rules).of(Part::kAttentionCore);
}

double full_cores(const Model& model, const Workload& workload) {
  return cores(model, workload, CausalRule::kFull, WindowRule::kIgnored);
}

double six(std::uint64_t parameters) { return 6 * number(parameters); }

const Layer* layer_with(const Model& model, bool (*is)(const Layer&)) {
  const auto found = std::find_if(model.layers.begin(), model.layers.end(), [&](const Layer& l) { return l.section != Section::kVision && is(l); });
  return found == model.layers.end() ? nullptr : &*found;
}

bool is_recurrent(const Layer& layer) { return layer.recurrence.has_value(); }
bool is_mamba(const Layer& layer) {
  return is_recurrent(layer) && (layer.recurrence->kind == Recurrence::kMamba1 || layer.recurrence->kind == Recurrence::kMamba2);
}
bool is_kimi_delta_or_lightning(const Layer& layer) { return layer.kind == LayerKind::kKimiDeltaAttention || layer.kind == LayerKind::kLinearAttention; }
bool is_encoder(const Layer& layer) { return layer.section == Section::kEncoder; }
bool is_moe(const Layer& layer) { return layer.kind == LayerKind::kMoe; }

ConventionCost no_formula(std::string_view who, const Layer& layer) {
  return absent(std::string(who) + " has no formula for " +
                (is_encoder(layer) ? "an encoder beside a decoder" : "layers of kind " + std::string(layer_kind_name(layer.kind))));
}

// --- the audit's own, and rules of thumb -------------------------------------------------------------

ConventionCost audit_causal(const Model& model, const Workload& workload) { return by_rules(model, workload, {}); }

std::optional<CountingRules> full_attention_rules(const Model&) {
  CountingRules rules;
  rules.causal = CausalRule::kFull;
  rules.window = WindowRule::kIgnored;
  return rules;
}

ConventionCost audit_full_attention(const Model& model, const Workload& workload) {
  return by_rules(model, workload, *full_attention_rules(model));
}

ConventionCost six_n_total(const Model& model, const Workload&) { return trained(six(count_parameters(model).text())); }

ConventionCost six_n_active(const Model& model, const Workload&) { return trained(six(count_parameters(model).active)); }

ConventionCost six_n_non_embedding(const Model& model, const Workload&) {
  const Parameters p = count_parameters(model);
  const bool own_head = !model.shape.tied && model.shape.head_size == model.shape.vocab_size;
  return trained(six(p.active - p.embedding - p.position - (own_head ? model.shape.hidden_size * model.shape.vocab_size : 0)));
}

ConventionCost palm(const Model& model, const Workload& workload) {
  return trained(six(count_parameters(model).active) + full_cores(model, workload));
}

ConventionCost hfu_full_recompute(const Model& model, const Workload& workload) {
  return {forward_cost(model, workload).total(), executed_cost(model, workload, {Recompute::kFull, false}).total(), ""};
}

// --- Megatron ------------------------------------------------------------------------------------------

std::optional<CountingRules> megatron_rules(const Model&) {
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  rules.window = WindowRule::kIgnored;
  rules.recurrence = RecurrentRule::kMegatron;
  rules.count_router = false;
  rules.count_indexer = false;
  rules.recurrent_width_twice_hidden = true;
  rules.frozen_as_trained = true;  // none of these knows of adapters
  return rules;
}

std::optional<CountingRules> megatron_full_rules(const Model& model) {
  CountingRules rules = *megatron_rules(model);
  rules.causal = CausalRule::kFull;
  return rules;
}

std::optional<CountingRules> megatron_bridge_rules(const Model& model) {
  CountingRules rules = *megatron_rules(model);
  rules.window = WindowRule::kExact;
  return rules;
}

ConventionCost megatron_like(const Model& model, const Workload& workload, const CountingRules& rules) {
  for (const Layer* layer : {layer_with(model, is_kimi_delta_or_lightning), layer_with(model, is_encoder)}) {
    if (layer != nullptr) return no_formula("Megatron-LM", *layer);
  }
  return by_rules(model, workload, rules);
}

ConventionCost megatron(const Model& model, const Workload& workload) {
  return megatron_like(model, workload, *megatron_rules(model));
}

ConventionCost megatron_before_2025_03(const Model& model, const Workload& workload) {
  return megatron_like(model, workload, *megatron_full_rules(model));
}

ConventionCost megatron_bridge(const Model& model, const Workload& workload) {
  return megatron_like(model, workload, *megatron_bridge_rules(model));
}

// --- NeMo: a formula for each family -------------------------------------------------------------------

bool is_one_of(const Model& model, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), model.model_type) != types.end();
}

std::optional<CountingRules> nemo_rules(const Model& model) {
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  rules.window = WindowRule::kIgnored;
  rules.recurrence = RecurrentRule::kMegatron;
  rules.count_router = false;
  rules.count_shared_gate = false;
  if (is_one_of(model, {"deepseek_v3", "qwen3", "qwen3_moe"})) return rules;
  rules.head_dim_from_hidden = true;
  if (is_one_of(model, {"gpt2"})) {
    rules.matrices = MatrixRule::kTwoOfFourHidden;
    return rules;
  }
  if (is_one_of(model, {"llama", "mixtral", "nemotron"})) return rules;
  if (!is_one_of(model, {"nemotron_h"})) return std::nullopt;
  rules.matrices = MatrixRule::kThree;
  rules.ignore_moe_layers = true;
  return rules;
}

std::optional<CountingRules> nemo_full_rules(const Model& model) {
  std::optional<CountingRules> rules = nemo_rules(model);
  if (rules) rules->causal = CausalRule::kFull;
  return rules;
}

ConventionCost nemo_like(const Model& model, const Workload& workload, const std::optional<CountingRules>& rules) {
  if (!rules) return absent("NeMo has no formula for model_type " + model.model_type);
  if (adapter_parameters(model) > 0) return absent("NeMo refuses to count training of adapters");
  return by_rules(model, workload, *rules);
}

ConventionCost nemo(const Model& model, const Workload& workload) { return nemo_like(model, workload, nemo_rules(model)); }

ConventionCost nemo_before_2025_08(const Model& model, const Workload& workload) {
  return nemo_like(model, workload, nemo_full_rules(model));
}

// --- others that walk over layers --------------------------------------------------------------------

std::optional<CountingRules> maxtext_rules(const Model& model) {
  if (layer_with(model, is_mamba) != nullptr || layer_with(model, is_kimi_delta_or_lightning) != nullptr || layer_with(model, is_encoder) != nullptr) return std::nullopt;
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  rules.count_shared_gate = false;
  rules.frozen_as_trained = true;
  return rules;
}

std::optional<CountingRules> maxtext_full_rules(const Model& model) {
  std::optional<CountingRules> rules = maxtext_rules(model);
  if (rules) rules->causal = CausalRule::kFull;
  return rules;
}

ConventionCost maxtext_like(const Model& model, const Workload& workload, const std::optional<CountingRules>& rules) {
  for (const Layer* layer : {layer_with(model, is_mamba), layer_with(model, is_kimi_delta_or_lightning), layer_with(model, is_encoder)}) {
    if (layer != nullptr) return no_formula("MaxText", *layer);
  }
  return by_rules(model, {workload.sequence, 0}, *rules);
}

ConventionCost maxtext(const Model& model, const Workload& workload) { return maxtext_like(model, workload, maxtext_rules(model)); }

ConventionCost maxtext_before_2025_07(const Model& model, const Workload& workload) {
  return maxtext_like(model, workload, maxtext_full_rules(model));
}

std::optional<CountingRules> verl_rules(const Model& model) {
  if (layer_with(model, is_recurrent) != nullptr || layer_with(model, is_encoder) != nullptr) return std::nullopt;
  CountingRules rules;
  rules.causal = CausalRule::kHalf;
  rules.window = WindowRule::kHalved;
  rules.count_embedding = true;
  rules.count_shared_gate = false;
  rules.ignore_shared_experts = is_one_of(model, {"qwen2_moe"});
  rules.frozen_as_trained = true;
  return rules;
}

ConventionCost verl(const Model& model, const Workload& workload) {
  for (const Layer* layer : {layer_with(model, is_recurrent), layer_with(model, is_encoder)}) {
    if (layer != nullptr) return no_formula("verl", *layer);
  }
  return by_rules(model, {workload.sequence, 0}, *verl_rules(model));
}

// Full attention, and three operations on each score of each head for the mask.
ConventionCost levanter(const Model& model, const Workload& workload) {
  for (const Layer* layer : {layer_with(model, is_recurrent), layer_with(model, is_encoder)}) {
    if (layer != nullptr) return no_formula("levanter", *layer);
  }
  double scores = 0;
  for (const Layer& layer : model.layers) {
    if (layer.section == Section::kText && layer.attention) scores += number(layer.executed * layer.attention->heads) * number(workload.sequence.tokens);
  }
  CountingRules rules = *full_attention_rules(model);
  rules.frozen_as_trained = true;
  return trained(train_cost(model, {workload.sequence, 0}, rules).total() + 9 * scores);
}

// --- over parameter counts -----------------------------------------------------------------------------

ConventionCost torchtitan(const Model& model, const Workload& workload) {
  const Parameters p = count_parameters(model);
  return trained(six(p.active - (model.shape.tied ? 0 : p.embedding)) + cores(model, workload, CausalRule::kFull, WindowRule::kWidth));
}

ConventionCost olmo_core(const Model& model, const Workload& workload) {
  const Parameters p = count_parameters(model);
  return trained(six(p.active - p.embedding) + cores(model, workload, CausalRule::kFull, WindowRule::kWidth));
}

ConventionCost hf_trainer(const Model& model, const Workload&) {
  const Parameters p = count_parameters(model);
  return trained(six(p.text() - p.embedding));
}

// Attention is added for the trained weights and again for the frozen ones, also where there are none: 3 + 2 passes.
ConventionCost litgpt(const Model& model, const Workload& workload) {
  const std::uint64_t all = count_parameters(model).text(), adapters = adapter_parameters(model);
  ConventionCost cost = trained(six(all) + full_cores(model, workload) * 5 / 3);
  if (adapters > 0) *cost.flops_train -= 2 * number(all - adapters);
  return cost;
}

ConventionCost nanogpt(const Model& model, const Workload& workload) {
  const Parameters p = count_parameters(model);
  return trained(six(p.text() - p.position) + full_cores(model, workload));
}

// 72 L h^2 (1 + s/6h + V/16Lh): a GPT with heads of h/heads and 4h, and the head at 4.5 instead of 6.
ConventionCost gpt_neox(const Model& model, const Workload& workload) {
  if (layer_with(model, is_recurrent) != nullptr) return no_formula("GPT-NeoX", *layer_with(model, is_recurrent));
  if (layer_with(model, is_moe) != nullptr) return no_formula("GPT-NeoX", *layer_with(model, is_moe));
  if (layer_with(model, is_encoder) != nullptr) return no_formula("GPT-NeoX", *layer_with(model, is_encoder));
  const double h = number(model.shape.hidden_size), l = number(model.shape.blocks), s = number(workload.sequence.tokens);
  return trained(72 * l * h * h * (1 + s / (6 * h) + number(model.shape.vocab_size) / (16 * l * h)));
}

// --- formulas as rules ---------------------------------------------------------------------------------

// 6 x the parameters that a token meets: as often as they are stored, and with the table of the embedding unless the head is it.
CountingRules six_n_active_nearest(const Model& model) {
  CountingRules rules;
  rules.causal = CausalRule::kNone;
  rules.recurrence = RecurrentRule::kNone;
  rules.count_embedding = !model.shape.tied;
  rules.shared_layers_once = true;
  rules.frozen_as_trained = true;
  return rules;
}

CountingRules six_n_total_nearest(const Model& model) {
  CountingRules rules = six_n_active_nearest(model);
  rules.experts = ExpertRule::kAll;
  return rules;
}

CountingRules six_n_non_embedding_nearest(const Model& model) {
  CountingRules rules = six_n_active_nearest(model);
  rules.count_embedding = false;
  rules.count_head = false;
  return rules;
}

// The embedding is taken off, and with it the head that is one with it.
CountingRules hf_trainer_nearest(const Model& model) {
  CountingRules rules = six_n_total_nearest(model);
  rules.count_embedding = false;
  rules.count_head = !model.shape.tied;
  return rules;
}

CountingRules with_full_attention(CountingRules rules, WindowRule window) {
  rules.causal = CausalRule::kFull;
  rules.window = window;
  return rules;
}

CountingRules palm_nearest(const Model& model) { return with_full_attention(six_n_active_nearest(model), WindowRule::kIgnored); }

CountingRules nanogpt_nearest(const Model& model) { return with_full_attention(six_n_total_nearest(model), WindowRule::kIgnored); }

CountingRules torchtitan_nearest(const Model& model) {
  CountingRules rules = with_full_attention(six_n_active_nearest(model), WindowRule::kWidth);
  rules.count_embedding = false;
  return rules;
}

CountingRules olmo_core_nearest(const Model& model) {
  CountingRules rules = torchtitan_nearest(model);
  rules.count_head = !model.shape.tied;
  return rules;
}

CountingRules gpt_neox_nearest(const Model& model) {
  CountingRules rules = *full_attention_rules(model);
  rules.matrices = MatrixRule::kTwoOfFourHidden;
  rules.head_dim_from_hidden = true;
  rules.kv_heads_as_heads = true;
  rules.frozen_as_trained = true;
  return rules;
}

CountingRules levanter_nearest(const Model& model) {
  CountingRules rules = *full_attention_rules(model);
  rules.frozen_as_trained = true;
  return rules;
}

// Programs that sum over the lengths of documents; where no attention is counted, there is nothing to know.
constexpr std::string_view kKnowDocuments[] = {"audit_causal", "audit_full_attention", "megatron", "megatron_bridge", "verl", "hfu_full_recompute"};

Workload without_documents(Workload workload) {
  workload.sequence.documents.clear();
  return workload;
}

std::optional<CountingRules> no_rules(const Model&) { return std::nullopt; }
std::optional<CountingRules> audit_rules(const Model&) { return CountingRules{}; }

}  // namespace

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> kConventions = {
      {"audit_causal", "active matmul weights, exact masks, recurrent cores: the audit's", "docs/flops.md", audit_causal, audit_rules},
      {"audit_full_attention", "the same, attention over the whole sequence", "docs/flops.md", audit_full_attention, full_attention_rules},
      {"6n_total", "6 x all parameters; wrong for experts", "https://arxiv.org/abs/2001.08361", six_n_total, no_rules, six_n_total_nearest},
      {"6n_active", "6 x active parameters with embeddings; no attention", "https://arxiv.org/abs/2001.08361", six_n_active, no_rules, six_n_active_nearest},
      {"6n_non_embedding", "6 x active parameters without embedding and head", "https://arxiv.org/abs/2001.08361", six_n_non_embedding, no_rules, six_n_non_embedding_nearest},
      {"palm", "6N and full attention", "https://arxiv.org/abs/2204.02311 (appendix B)", palm, no_rules, palm_nearest},
      {"megatron", "s/2, no windows, no router, Mamba width 2 x hidden", "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/megatron/training/training.py", megatron, megatron_rules},
      {"megatron_before_2025_03", "the same, full attention", "https://github.com/NVIDIA/Megatron-LM (megatron/training/training.py before 2025-03-06)", megatron_before_2025_03, megatron_full_rules},
      {"megatron_bridge", "as megatron, with windows", "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/067f987/src/megatron/bridge/training/utils/flop_utils.py", megatron_bridge, megatron_bridge_rules},
      {"nemo", "s/2, heads of hidden/heads; hybrids gated, without experts", "https://github.com/NVIDIA/NeMo/blob/8cfedd7/nemo/utils/flops_formulas.py", nemo, nemo_rules},
      {"nemo_before_2025_08", "the same, full attention", "https://github.com/NVIDIA/NeMo/blob/034b17b/nemo/utils/flops_formulas.py", nemo_before_2025_08, nemo_full_rules},
      {"torchtitan", "6 x active parameters without embedding, full attention, no recurrent cores", "https://github.com/pytorch/torchtitan/blob/b5bcd76/torchtitan/models/utils.py", torchtitan, no_rules, torchtitan_nearest},
      {"hf_trainer", "6 x all parameters without embedding; no attention", "https://github.com/huggingface/transformers (Trainer.floating_point_ops)", hf_trainer, no_rules, hf_trainer_nearest},
      {"maxtext", "s/2 with windows, router counted", "https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/utils/maxtext_utils.py", maxtext, maxtext_rules},
      {"maxtext_before_2025_07", "the same, full attention", "https://github.com/AI-Hypercomputer/maxtext (before 2025-07-22)", maxtext_before_2025_07, maxtext_full_rules},
      {"litgpt", "6 x all parameters, full attention at 5/3", "https://github.com/Lightning-AI/litgpt/blob/2685705/litgpt/utils.py", litgpt, no_rules, nanogpt_nearest},
      {"llm_foundry", "6N and full attention", "https://github.com/mosaicml/llm-foundry/blob/8c8dd48/scripts/train/benchmarking/README.md", palm, no_rules, palm_nearest},
      {"nanogpt", "6 x all parameters without positions, full attention", "https://github.com/karpathy/nanoGPT/blob/master/model.py", nanogpt, no_rules, nanogpt_nearest},
      {"olmo_core", "as torchtitan, the embedding left out where tied too", "https://github.com/allenai/OLMo-core/blob/fa6c501/src/olmo_core/nn/transformer/model.py", olmo_core, no_rules, olmo_core_nearest},
      {"gpt_neox", "a GPT of 4h with plain heads, head at 3/4", "https://github.com/EleutherAI/gpt-neox/blob/main/megatron/logging.py", gpt_neox, no_rules, gpt_neox_nearest},
      {"levanter", "full attention and its mask", "https://github.com/marin-community/levanter/blob/9263f81/src/levanter/utils/flop_utils.py", levanter, no_rules, levanter_nearest},
      {"verl", "s/2, the embedding counted", "https://github.com/volcengine/verl/blob/b178a3c/verl/utils/flops_counter.py", verl, verl_rules},
      {"hfu_full_recompute", "executed when every block runs forward twice", "https://arxiv.org/abs/2205.05198", hfu_full_recompute, no_rules},
  };
  return kConventions;
}

ConventionCost convention_cost(const Convention& convention, const Model& model, const Workload& workload) {
  const bool text = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& l) { return l.section == Section::kText; });
  if (!text) return absent("there is no language model, and so no token; the tower's cost is that of an image");
  return convention.cost(model, knows_documents(convention) ? workload : without_documents(workload));
}

bool knows_documents(const Convention& convention) {
  return std::find(std::begin(kKnowDocuments), std::end(kKnowDocuments), convention.name) != std::end(kKnowDocuments);
}

bool takes_for_one_document(const Convention& convention, const Model& model, const Workload& workload) {
  if (workload.sequence.documents.empty() || knows_documents(convention)) return false;
  Workload document = without_documents(workload);
  const auto figure = convention_cost(convention, model, document).flops_train;
  document.sequence.tokens = workload.sequence.documents.front();
  return figure != convention_cost(convention, model, document).flops_train;
}

CountingRules nearest_rules(const Convention& convention, const Model& model) {
  if (const std::optional<CountingRules> rules = convention.rules(model)) return *rules;
  return convention.nearest != nullptr ? convention.nearest(model) : CountingRules{};
}

const Convention* find_convention(std::string_view name) {
  for (const Convention& convention : conventions()) {
    if (convention.name == name) return &convention;
  }
  return nullptr;
}

}  // namespace flopsight::flops
