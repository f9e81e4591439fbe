#include "audit/mistakes.h"

namespace flopsight::audit {
namespace {

using flops::CountingRules;

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
    {"recurrent_core_ignored", [](CountingRules& r) { r.recurrence = flops::RecurrentRule::kNone; },
     "recurrent cores left out", "6N"},
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

}  // namespace

std::span<const Mistake> mistakes() { return kMistakes; }

bool makes(const CountingRules& rules, const Mistake& mistake) {
  CountingRules with = rules;
  mistake.set(with);
  return with == rules;
}

}  // namespace flopsight::audit
