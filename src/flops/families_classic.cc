// Transformers of the GPT-2 line: LayerNorm with biases, two matrices of 4 x hidden, learned positions.
#include "flops/family_internal.h"

namespace flopsight::flops {
namespace {

struct Classic {
  std::uint64_t norm_vectors = 2;  // of a norm; 1: no bias
  bool bias = true;
  std::uint64_t positions = 0;  // learned
};

void add_blocks(Builder& builder, const Classic& c) {
  const Shape& s = builder.model.shape;
  AttentionShape a = attention_of(s, {}, 1, c.norm_vectors);
  a.bias_qkv = a.bias_out = c.bias;
  MlpShape m = mlp_of(s, s.intermediate_size, false, 1, c.norm_vectors);
  m.bias = c.bias;
  add_embedding(builder, c.positions);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(mlp_layer(m));
  }
  add_head(builder, c.norm_vectors);
}

}  // namespace

void read_gpt2(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  read_gpt_sizes(keys, s, true);
  split_width(keys, "n_head", s);
  s.gated = false;
  add_blocks(builder, {2, true, s.positions_max});
}

void read_gpt_neox(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  builder.model.assumptions.clear();  // the family has no grouped queries
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count("intermediate_size");
  s.gated = false;
  keys.known({"hidden_act", "use_parallel_residual", "num_key_value_heads"});
  if (s.kv_heads != s.heads) keys.wrong("num_key_value_heads", "num_attention_heads");
  Classic c;
  c.bias = keys.flag_or("attention_bias", true);
  add_blocks(builder, c);
}

void read_mpt(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("d_model");
  s.blocks = keys.count("n_layers", kBlocksMax);
  s.heads = keys.count("n_heads");
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count("max_seq_len");
  s.intermediate_size = keys.count_or("expansion_ratio", 4, 1024) * s.hidden_size;
  s.tied = keys.flag_or("tie_word_embeddings", true);
  keys.known({"attn_config", "init_device", "verbose", "embedding_fraction", "norm_type", "init_config", "resid_pdrop", "emb_pdrop", "layer_norm_epsilon"});
  const bool bias = !keys.flag_or("no_bias", true);
  bool learned = keys.flag_or("learned_pos_emb", true);
  if (const base::json::Object* attention = keys.object("attn_config")) {
    Keys a(*attention, keys.path("attn_config."));
    if (a.flag_or("alibi", false)) learned = false;
    const std::string type = a.one_of("attn_type", "multihead_attention", {"multihead_attention", "multiquery_attention", "grouped_query_attention"});
    s.kv_heads = type == "multiquery_attention" ? 1 : type == "grouped_query_attention" ? a.count("kv_n_heads") : 0;
    if (s.kv_heads > 0 && s.heads % s.kv_heads != 0) a.wrong("kv_n_heads", "a divisor of n_heads");
    a.off({"qk_ln", "prefix_lm", "attn_uses_sequence_id"});
    a.known({"kv_n_heads", "attn_impl", "clip_qkv", "softmax_scale", "alibi_bias_max", "rope", "sliding_window_size", "model_type"});
    if (a.has("sliding_window_size") && a.number_or("sliding_window_size", -1, -1, 1e9) != -1) a.wrong("sliding_window_size", "-1");
    keys.finish_part(a, "mpt");
  }
  split_width(keys, "n_heads", s);
  s.gated = false;
  add_blocks(builder, {bias ? std::uint64_t{2} : 1, bias, learned ? s.positions_max : 0});
}

}  // namespace flopsight::flops
