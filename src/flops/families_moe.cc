// Transformers with mixtures of experts, and ordinary attention.
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

// Which blocks have experts: all with (i+1) % step == 0, but for the listed ones (Qwen).
std::vector<bool> qwen_sparse_blocks(Keys& keys, std::uint64_t blocks) {
  const std::uint64_t step = keys.count_or("decoder_sparse_step", 1);
  std::vector<bool> sparse(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) sparse[i] = (i + 1) % step == 0;
  for (const std::uint64_t dense : keys.counts("mlp_only_layers", kBlocksMax)) {
    if (dense >= blocks) {
      keys.wrong("mlp_only_layers", "numbers of blocks below " + std::to_string(blocks));
      break;
    }
    sparse[dense] = false;
  }
  return sparse;
}

MoeShape qwen_experts(Keys& keys, const Shape& s) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = keys.count("moe_intermediate_size");
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  return moe;
}

void read_qwen_moe(Keys& keys, Builder& builder, bool shared, bool third) {
  read_shape(keys, builder, {third ? std::uint64_t{128} : 0, false});
  Shape& s = builder.model.shape;
  s.intermediate_size = keys.count_or("intermediate_size", 0);
  keys.known({"hidden_act", "max_window_layers", "sliding_window", "shared_expert_intermediate_size"});
  if (keys.flag_or("use_sliding_window", false)) keys.wrong("use_sliding_window", "false");
  MoeShape moe = qwen_experts(keys, s);
  if (shared) {
    moe.shared_intermediate = keys.count("shared_expert_intermediate_size");
    moe.shared_gate = true;
  }
  const bool bias = keys.flag_or("attention_bias", false);
  if (third) qwen3_words(keys);
  const std::vector<bool> sparse = qwen_sparse_blocks(keys, s.blocks);
  if (s.intermediate_size == 0 && std::find(sparse.begin(), sparse.end(), false) != sparse.end()) keys.count("intermediate_size");
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    AttentionShape a = attention_of(s, {}, 1);
    a.bias_qkv = third ? bias : keys.flag_or("qkv_bias", true);
    a.bias_out = third && bias;
    if (third) a.query_norm = a.key_norm = s.head_dim;
    builder.add(attention_layer(a));
    builder.add(sparse[i] ? moe_layer(moe) : mlp_layer(mlp_of(s, s.intermediate_size, true, 1)));
  }
  add_head(builder);
}

// One window for all blocks, or none.
MaskOfBlock window_of(Keys& keys) {
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  return window > 0 ? MaskOfBlock{Mask::kWindow, window} : MaskOfBlock{};
}

MoeShape mixtral_experts(Keys& keys, Shape& s, std::uint64_t norm_vectors) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_local_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = keys.count("intermediate_size");
  moe.norms = {1, s.hidden_size, norm_vectors};
  check_top_k(keys, "num_experts_per_tok", moe);
  return moe;
}

}  // namespace

void read_mixtral(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "router_jitter_noise"});
  const MaskOfBlock mask = window_of(keys);
  const MoeShape moe = mixtral_experts(keys, s, 1);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(attention_of(s, mask, 1)));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

void read_qwen2_moe(Keys& keys, Builder& builder) { read_qwen_moe(keys, builder, true, false); }

void read_qwen3_moe(Keys& keys, Builder& builder) { read_qwen_moe(keys, builder, false, true); }

void read_olmoe(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "clip_qkv"});
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = keys.count("intermediate_size");
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  AttentionShape a = attention_of(s, {}, 1);
  a.bias_qkv = a.bias_out = keys.flag_or("attention_bias", false);
  a.query_norm = s.heads * s.head_dim;
  a.key_norm = s.kv_heads * s.head_dim;
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

void read_minimax_m2(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "router_jitter_noise", "mlp_intermediate_size", "shared_moe_mode", "use_mtp", "num_mtp_modules", "mtp_transformer_layers", "rotary_dim"});
  if (keys.has("sliding_window")) keys.wrong("sliding_window", "null");
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_local_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = keys.count("intermediate_size");
  moe.shared_intermediate = keys.count_or("shared_intermediate_size", 0, kSizeMax, 0);
  moe.router_bias = keys.flag_or("use_routing_bias", true);
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  if (keys.has("sliding_window")) keys.wrong("sliding_window", "null");
  if (keys.flag_or("attention_bias", false)) keys.wrong("attention_bias", "false");
  for (const std::uint64_t type : keys.counts("attn_type_list", kBlocksMax)) {
    if (type != 1) {
      keys.wrong("attn_type_list", "1, softmax attention, in each place");
      break;
    }
  }
  AttentionShape a = attention_of(s, {}, 1);
  if (keys.flag_or("use_qk_norm", true)) {
    const bool whole = keys.one_of("qk_norm_type", "per_layer", {"per_layer", "per_head"}) == "per_layer";
    a.query_norm = whole ? s.heads * s.head_dim : s.head_dim;
    a.key_norm = whole ? s.kv_heads * s.head_dim : s.head_dim;
  }
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
  if (keys.flag_or("use_mtp", false)) builder.assume("multi-token prediction modules (use_mtp) are not described here and not counted");
}

void read_glm4_moe(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act"});
  s.intermediate_size = keys.count("intermediate_size");
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("n_routed_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = keys.count("moe_intermediate_size");
  moe.shared_intermediate = keys.count_or("n_shared_experts", 0, kExpertsMax, 0) * moe.expert_intermediate;
  moe.router_bias = true;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  const std::uint64_t dense_first = keys.count_or("first_k_dense_replace", 0, kBlocksMax, 0);
  AttentionShape a = attention_of(s, {}, 1);
  a.bias_qkv = keys.flag_or("attention_bias", false);
  if (keys.flag_or("use_qk_norm", false)) a.query_norm = a.key_norm = s.head_dim;
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(i < dense_first ? mlp_layer(mlp_of(s, s.intermediate_size, true, 1)) : moe_layer(moe));
  }
  add_head(builder);
  add_prediction(keys, builder, {attention_layer(a), moe_layer(moe)});
}

void read_llama4(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {128, false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "use_qk_norm", "attn_scale", "floor_scale", "attn_temperature_tuning", "router_jitter_noise", "for_llm_compressor"});
  s.intermediate_size = keys.count("intermediate_size_mlp");
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_local_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = moe.shared_intermediate = keys.count("intermediate_size");
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  const std::uint64_t chunk = keys.count_or("attention_chunk_size", 0);
  const std::uint64_t step = keys.count_or("interleave_moe_layer_step", 1);
  const bool bias = keys.flag_or("attention_bias", false);
  // Blocks without rotary positions see everything: every fourth, unless listed (1: rotary).
  std::vector<std::uint64_t> rotary = keys.counts("no_rope_layers", kBlocksMax);
  const std::uint64_t interval = keys.count_or("no_rope_layer_interval", 4);
  for (std::uint64_t i = 1; rotary.size() < s.blocks && i <= s.blocks; ++i) {
    if (i == 1) rotary.clear();
    rotary.push_back(i % interval != 0 ? 1 : 0);
  }
  const std::vector<std::uint64_t> sparse = keys.counts("moe_layers", kBlocksMax);
  const std::vector<std::string> types = read_layer_types(keys, s.blocks);
  const std::vector<MaskOfBlock> masks = masks_of_types(keys, types, 0, chunk);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    const bool local = rotary[i] != 0 && chunk > 0;
    const MaskOfBlock mask = !masks.empty() ? masks[i] : local ? MaskOfBlock{Mask::kChunk, chunk} : MaskOfBlock{};
    AttentionShape a = attention_of(s, mask, 1);
    a.bias_qkv = a.bias_out = bias;
    builder.add(attention_layer(a));
    const bool has_experts = sparse.empty() ? (i + 1) % step == 0 : std::find(sparse.begin(), sparse.end(), i) != sparse.end();
    builder.add(has_experts ? moe_layer(moe) : mlp_layer(mlp_of(s, s.intermediate_size, true, 1)));
  }
  add_head(builder);
}

void read_gpt_oss(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {64, false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "initial_context_length", "swiglu_limit", "experts_per_token", "swiglu_alpha"});
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count(keys.spelling({"num_local_experts", "num_experts"}), kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = keys.count("intermediate_size");
  moe.router_bias = moe.expert_bias = true;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe);
  const bool bias = keys.flag_or("attention_bias", true);
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  const std::vector<std::string> types = read_layer_types(keys, s.blocks);
  if (types.empty()) keys.wrong("layer_types", "a list of the attention of each block");
  const std::vector<MaskOfBlock> masks = masks_of_types(keys, types, window, 0);
  add_embedding(builder);
  for (const MaskOfBlock& mask : masks) {
    AttentionShape a = attention_of(s, mask, 1);
    a.bias_qkv = a.bias_out = bias;
    a.sinks = s.heads;
    builder.add(attention_layer(a));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

// DBRX: LayerNorm without biases, experts in every block. Its inner objects are written with the keys of any configuration of the library.
void read_dbrx(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("d_model");
  s.blocks = keys.count("n_layers", kBlocksMax);
  s.heads = keys.count("n_heads");
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count("max_seq_len");
  s.tied = keys.flag_or("tie_word_embeddings", false);
  split_width(keys, "n_heads", s);
  const base::json::Object* attention = keys.object("attn_config");
  const base::json::Object* experts = keys.object("ffn_config");
  if (attention == nullptr) keys.wrong("attn_config", "an object with kv_n_heads");
  if (experts == nullptr) keys.wrong("ffn_config", "an object with ffn_hidden_size, moe_num_experts and moe_top_k");
  if (attention == nullptr || experts == nullptr) return;
  Keys a(*attention, keys.path("attn_config."));
  s.kv_heads = a.count("kv_n_heads");
  if (s.heads % s.kv_heads != 0) a.wrong("kv_n_heads", "a divisor of n_heads " + std::to_string(s.heads));
  Keys f(*experts, keys.path("ffn_config."));
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = f.count("moe_num_experts", kExpertsMax);
  moe.top_k = f.count("moe_top_k", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = f.count("ffn_hidden_size");
  moe.norms = {1, s.hidden_size};
  check_top_k(f, "moe_top_k", moe);
  a.known({"clip_qkv", "model_type", "tie_word_embeddings", "attn_pdrop"});
  f.known({"ffn_act_fn", "moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights", "uniform_expert_assignment", "model_type", "tie_word_embeddings"});
  for (Keys* part : {&a, &f}) keys.finish_part(*part, "dbrx");
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(attention_of(s, {}, 1)));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

// Phi-3.5-MoE: as Mixtral, with LayerNorm, and biases on the attention and the head.
void read_phimoe(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "router_jitter_noise", "input_jitter_noise"});
  const MaskOfBlock mask = window_of(keys);
  const MoeShape moe = mixtral_experts(keys, s, 2);
  AttentionShape a = attention_of(s, mask, 1, 2);
  a.bias_qkv = a.bias_out = keys.flag_or("attention_bias", false);
  const bool head_bias = keys.flag_or("lm_head_bias", false);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(moe_layer(moe));
  }
  add_head(builder, 2, head_bias);
}

}  // namespace flopsight::flops
