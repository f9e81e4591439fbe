// Gemma 4: windows in most blocks, and in the others heads of another size whose values may be their keys; experts beside a dense
// layer; the last blocks may use the keys and values of earlier ones; tokens may have an embedding for every block
// (modeling_gemma4.py of the transformers library).
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

MoeShape experts_of(Keys& keys, const Shape& s) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_experts", kExpertsMax);
  moe.top_k = keys.count("top_k_experts", kExpertsMax);
  moe.expert_intermediate = keys.count(keys.spelling({"moe_intermediate_size", "expert_intermediate_size"}));
  moe.dense_intermediate = s.intermediate_size;
  moe.router_extra = s.hidden_size + moe.experts;  // a scale of the input, and of each expert
  moe.norms = {5, s.hidden_size};                  // before and after the dense layer and the experts, and after both
  check_top_k(keys, "top_k_experts", moe);
  return moe;
}

struct Heads {
  std::uint64_t global_dim = 0;
  std::uint64_t global_kv = 0;
  bool value_is_key = false;
};

Heads heads_of(Keys& keys, const Shape& s) {
  Heads h;
  h.global_dim = keys.count_or("global_head_dim", 512);
  h.value_is_key = keys.flag_or("attention_k_eq_v", false);
  const std::uint64_t kv = keys.count_or("num_global_key_value_heads", s.kv_heads);
  h.global_kv = h.value_is_key ? kv : s.kv_heads;
  if (s.heads % h.global_kv != 0) keys.wrong("num_global_key_value_heads", "a divisor of num_attention_heads " + std::to_string(s.heads));
  return h;
}

Layer attention(const Shape& s, const Heads& h, const MaskOfBlock& mask, bool owns_kv) {
  AttentionShape a = attention_of(s, mask, 2);
  if (mask.mask == Mask::kCausal) {
    a.head_dim = h.global_dim;
    a.kv_heads = h.global_kv;
    a.value_is_key = h.value_is_key;
  }
  a.owns_kv = owns_kv;
  a.query_norm = a.key_norm = a.head_dim;
  return attention_layer(a);
}

// The table of every block's embeddings, and the projection of the ordinary one to the same width.
void add_per_layer_embedding(Builder& builder, std::uint64_t vocab, std::uint64_t width) {
  const Shape& s = builder.model.shape;
  Layer table = embedding_layer(vocab, s.blocks * width);
  Layer projection = linear_layer(s.hidden_size, {1, width});
  projection.matmuls[0].out = s.blocks * width;
  builder.add(table);
  builder.add(projection);
}

}  // namespace

void read_gemma4(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {256, true});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "hidden_activation", "num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size"});
  if (keys.one_of("use_bidirectional_attention", "none", {"none", "vision", "all"}) == "all") keys.wrong("use_bidirectional_attention", "vision or null");
  if (keys.flag_or("attention_bias", false)) keys.wrong("attention_bias", "false");
  s.intermediate_size = keys.count("intermediate_size");
  const std::uint64_t window = keys.count("sliding_window");
  const Heads heads = heads_of(keys, s);
  const bool sparse = keys.flag_or("enable_moe_block", false);
  const MoeShape moe = sparse ? experts_of(keys, s) : MoeShape{};
  const std::uint64_t shared = keys.count_or("num_kv_shared_layers", 0, kBlocksMax, 0);
  if (shared >= s.blocks) keys.wrong("num_kv_shared_layers", "fewer than num_hidden_layers " + std::to_string(s.blocks));
  const bool wide = keys.flag_or("use_double_wide_mlp", false);
  const std::uint64_t own_width = keys.count_or("hidden_size_per_layer_input", 0, kSizeMax, 0);
  const std::uint64_t own_vocab = keys.count_or("vocab_size_per_layer_input", s.vocab_size);
  std::vector<std::string> types = read_layer_types(keys, s.blocks);
  for (std::uint64_t i = types.size() + 1; i <= s.blocks; ++i) types.emplace_back(i % 6 == 0 || i == s.blocks ? "full_attention" : "sliding_attention");
  const std::vector<MaskOfBlock> masks = masks_of_types(keys, types, window, 0);
  add_embedding(builder);
  if (own_width > 0) add_per_layer_embedding(builder, own_vocab, own_width);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    const bool reuses = i + shared >= s.blocks;
    builder.add(attention(s, heads, masks[i], !reuses));
    const std::uint64_t width = s.intermediate_size * (wide && reuses ? 2 : 1);
    builder.add(sparse ? moe_layer(moe) : mlp_layer(mlp_of(s, width, true, 2)));
    if (own_width > 0) builder.add(per_layer_input_layer(s.hidden_size, own_width));
  }
  add_head(builder);
}

}  // namespace flopsight::flops
