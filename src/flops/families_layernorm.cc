// Transformers with LayerNorm whose blocks differ in where the norms stand, which matrices have biases, and how many heads share keys.
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

// What tells the families apart.
struct Norming {
  std::uint64_t attention_norms = 1;
  std::uint64_t mlp_norms = 1;  // 0: attention and feed-forward layer run side by side behind one norm
  std::uint64_t vectors_each = 2;
  bool bias_qkv = false;
  bool bias_out = false;
  bool bias_mlp = false;
  bool gated = false;
  std::uint64_t query_norm = 0;
  std::uint64_t key_norm = 0;
};

void add_blocks(Builder& builder, const Norming& n, const std::vector<MaskOfBlock>& masks) {
  Shape& s = builder.model.shape;
  s.gated = n.gated;
  MlpShape m = mlp_of(s, s.intermediate_size, n.gated, n.mlp_norms, n.vectors_each);
  m.bias = n.bias_mlp;
  for (const MaskOfBlock& mask : masks) {
    AttentionShape a = attention_of(s, mask, n.attention_norms, n.vectors_each);
    a.bias_qkv = n.bias_qkv;
    a.bias_out = n.bias_out;
    a.query_norm = n.query_norm;
    a.key_norm = n.key_norm;
    builder.add(attention_layer(a));
    builder.add(mlp_layer(m));
  }
}

}  // namespace

// OPT (arXiv 2205.01068): two more learned positions than max_position_embeddings. The one of 350M has its norms behind the sub-layers, none
// at the end, and an embedding of another width with a matrix into the stream and one out of it.
void read_opt(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count("num_hidden_layers", kBlocksMax);
  s.heads = keys.count("num_attention_heads");
  s.intermediate_size = keys.count("ffn_dim");
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count("max_position_embeddings");
  s.tied = keys.flag_or("tie_word_embeddings", true);
  keys.known({"activation_function", "init_std", "dropout", "activation_dropout", "num_key_value_heads"});
  const std::uint64_t width = keys.count_or("word_embed_proj_dim", s.hidden_size);
  const bool norm_at_end = keys.flag_or("do_layer_norm_before", true) && !keys.flag_or("_remove_final_layer_norm", false);
  if (!keys.flag_or("layer_norm_elementwise_affine", true)) keys.wrong("layer_norm_elementwise_affine", "true");
  split_width(keys, "num_attention_heads", s);
  Norming n;
  n.bias_qkv = n.bias_out = n.bias_mlp = keys.flag_or("enable_bias", true);
  Layer embedding = embedding_layer(s.vocab_size, width);
  embedding.vectors.push_back({Extra::kPositionEmbedding, (s.positions_max + 2) * s.hidden_size});
  builder.add(embedding);
  if (width != s.hidden_size) builder.add(linear_layer(width, s.hidden_size, {}));
  add_blocks(builder, n, same_masks(s.blocks));
  if (norm_at_end) builder.add(norm_layer({1, s.hidden_size, 2}));
  if (width != s.hidden_size) builder.add(linear_layer(s.hidden_size, width, {}));
  add_output(builder, width, {});
}

// BLOOM (arXiv 2211.05100): a norm behind the embedding, ALiBi in place of positions.
void read_bloom(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count(keys.spelling({"hidden_size", "n_embed"}));
  keys.same("n_embed", "hidden_size", s.hidden_size);
  s.blocks = keys.count(keys.spelling({"n_layer", "num_hidden_layers"}), kBlocksMax);
  keys.same("num_hidden_layers", "n_layer", s.blocks);
  s.heads = keys.count(keys.spelling({"n_head", "num_attention_heads"}));
  keys.same("num_attention_heads", "n_head", s.heads);
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count_or("seq_length", 0);
  s.intermediate_size = keys.count_or("n_inner", 4 * s.hidden_size);
  s.tied = keys.flag_or("tie_word_embeddings", true);
  keys.known({"apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add",
              "skip_bias_add_qkv", "slow_but_exact"});
  split_width(keys, "n_head", s);
  Norming n;
  n.bias_qkv = n.bias_out = n.bias_mlp = true;
  add_embedding(builder);
  builder.add(norm_layer({1, s.hidden_size, 2}));
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each);
}

// Falcon (arXiv 2311.16867). Its three forms: 1B with ordinary heads, 7B with one head of keys and one norm, 40B and 180B
// (new_decoder_architecture) with several and two norms side by side.
void read_falcon(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count(keys.spelling({"num_hidden_layers", "n_layer"}), kBlocksMax);
  s.heads = keys.count(keys.spelling({"num_attention_heads", "n_head"}));
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count_or("max_position_embeddings", 0);
  s.intermediate_size = keys.count_or("ffn_hidden_size", 4 * s.hidden_size);
  s.tied = keys.flag_or("tie_word_embeddings", true);
  keys.known({"activation", "alibi", "apply_residual_connection_post_layernorm", "num_kv_heads", "n_head_kv"});
  if (keys.has("ff_factor")) keys.same("ff_factor", "ffn_hidden_size / hidden_size", s.intermediate_size / s.hidden_size);
  const bool is_new = keys.flag_or("new_decoder_architecture", false);
  const bool one_head = keys.flag_or("multi_query", true);
  const bool parallel = keys.flag_or("parallel_attn", true);
  s.kv_heads = is_new ? keys.count(keys.spelling({"num_kv_heads", "n_head_kv"})) : one_head ? 1 : s.heads;
  split_width(keys, "num_attention_heads", s);
  if (s.heads % s.kv_heads != 0) keys.wrong("num_kv_heads", "a divisor of num_attention_heads " + std::to_string(s.heads));
  Norming n;
  n.bias_qkv = n.bias_out = n.bias_mlp = keys.flag_or("bias", false);
  const bool two_norms = is_new ? keys.count_or("num_ln_in_parallel_attn", 2) == 2 : !parallel;
  n.mlp_norms = two_norms ? 1 : 0;
  add_embedding(builder);
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each);
}

// BERT and RoBERTa, with the head of masked language modelling: a matrix of hidden x hidden with its norm, then the vocabulary with a bias.
void read_bert(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  builder.model.assumptions.clear();  // the family has no grouped queries
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count("intermediate_size");
  keys.known({"hidden_act", "position_embedding_type", "gradient_checkpointing", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
              "pooler_size_per_head", "pooler_type", "directionality", "is_decoder"});
  if (keys.text_or("position_embedding_type", "absolute") != "absolute") keys.wrong("position_embedding_type", "absolute");
  if (keys.flag_or("is_decoder", false)) keys.wrong("is_decoder", "false");
  const std::uint64_t token_types = keys.count_or("type_vocab_size", 2);
  if (s.positions_max == 0) keys.count("max_position_embeddings");
  Norming n;
  n.bias_qkv = n.bias_out = n.bias_mlp = true;
  add_embedding(builder, s.positions_max + token_types);
  builder.add(norm_layer({1, s.hidden_size, 2}));
  add_blocks(builder, n, same_masks(s.blocks, {Mask::kBidirectional, 0}));
  builder.pools = true;
  if (builder.output.kind != Output::Kind::kVocabulary) {
    add_output(builder, s.hidden_size, {});
    builder.assume("counted without a pooler, which runs once for a sequence");
    return;
  }
  Layer transform = linear_layer(s.hidden_size, {1, s.hidden_size, 2});
  transform.vectors.push_back({Extra::kBias, s.hidden_size});
  builder.add(transform);
  add_output(builder, s.hidden_size, {}, true);
  builder.assume("counted with the head of masked language modelling on every token, and without a pooler");
}

// GPT-J: one norm, biases in the feed-forward layer and the head only.
void read_gptj(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  read_gpt_sizes(keys, s, false);
  keys.known({"rotary", "scale_attn_weights"});
  split_width(keys, "n_head", s);
  Norming n;
  n.mlp_norms = 0;
  n.bias_mlp = true;
  add_embedding(builder);
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each, true);
}

// SantaCoder and StarCoder (arXiv 2305.06161): GPT-2 with one head of keys and values.
void read_gpt_bigcode(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  read_gpt_sizes(keys, s, true);
  keys.known({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner", "validate_runner_input", "pre_allocate_kv_cache",
              "max_batch_size", "max_sequence_length", "num_key_value_heads"});
  s.kv_heads = keys.flag_or("multi_query", true) ? 1 : s.heads;
  split_width(keys, "n_head", s);
  Norming n;
  n.bias_qkv = n.bias_out = n.bias_mlp = true;
  add_embedding(builder, s.positions_max);
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each);
}

// Phi-1, 1.5 and 2: one norm, biases everywhere, also on the head.
void read_phi(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count_or("intermediate_size", 4 * s.hidden_size);
  keys.known({"hidden_act"});
  keys.off({"qk_layernorm"});
  Norming n;
  n.mlp_norms = 0;
  n.bias_qkv = n.bias_out = n.bias_mlp = true;
  add_embedding(builder);
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each, true);
}

void read_stablelm(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count("intermediate_size");
  keys.known({"hidden_act"});
  keys.off({"qk_layernorm"});
  Norming n;
  n.gated = true;
  n.bias_qkv = keys.flag_or("use_qkv_bias", false);
  n.mlp_norms = keys.flag_or("use_parallel_residual", false) ? 0 : 1;
  add_embedding(builder);
  add_blocks(builder, n, same_masks(s.blocks));
  add_head(builder, n.vectors_each);
}

namespace {

// Command-R: one norm without a bias, gated, tied; norms of queries and keys have a weight for each element of each head.
void read_command(Keys& keys, Builder& builder, const std::vector<MaskOfBlock>& masks) {
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count("intermediate_size");
  keys.known({"hidden_act", "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding", "position_embedding_type",
              "cache_implementation"});
  for (const char* key : {"use_gated_activation", "use_parallel_block"}) {
    if (!keys.flag_or(key, true)) keys.wrong(key, "true");
  }
  Norming n;
  n.gated = true;
  n.mlp_norms = 0;
  n.vectors_each = 1;
  n.bias_qkv = n.bias_out = keys.flag_or("attention_bias", false);
  if (keys.flag_or("use_qk_norm", false)) {
    n.query_norm = s.heads * s.head_dim;
    n.key_norm = s.kv_heads * s.head_dim;
  }
  add_embedding(builder);
  add_blocks(builder, n, masks);
  add_head(builder, n.vectors_each);
}

}  // namespace

void read_cohere(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  read_command(keys, builder, same_masks(builder.model.shape.blocks));
}

void read_cohere2(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  const std::uint64_t blocks = builder.model.shape.blocks;
  const std::uint64_t window = keys.count_or("sliding_window", 4096);
  const std::uint64_t pattern = keys.count_or("sliding_window_pattern", keys.count_or("_sliding_window_pattern", 4));
  keys.same("layer_switch", "sliding_window_pattern", pattern);
  keys.one_of("order_of_interleaved_layers", "local_attn_first", {"local_attn_first"});
  const std::vector<std::string> types = read_layer_types(keys, blocks);
  std::vector<MaskOfBlock> masks = masks_of_types(keys, types, window, 0);
  for (std::uint64_t i = 1; types.empty() && i <= blocks; ++i) masks.push_back(i % pattern == 0 ? MaskOfBlock{} : MaskOfBlock{Mask::kWindow, window});
  read_command(keys, builder, masks);
}

}  // namespace flopsight::flops
