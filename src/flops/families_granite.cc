// Granite 3 and 4 with experts and Mamba-2, and Falcon-H1, whose blocks have attention and Mamba-2 side by side
// (modeling_granitemoe.py, modeling_granitemoehybrid.py and modeling_falcon_h1.py of the transformers library).
#include "flops/family_internal.h"

namespace flopsight::flops {
namespace {

void know_scales(Keys& keys) { keys.known({"hidden_act", "embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"}); }

MoeShape granite_experts(Keys& keys, const Shape& s) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_local_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe, "num_local_experts");
  return moe;
}

Mamba2Shape mamba_of(Keys& keys, const Shape& s) {
  Mamba2Shape m;
  m.hidden = s.hidden_size;
  m.heads = keys.count("mamba_n_heads");
  m.head_dim = keys.count("mamba_d_head");
  m.groups = keys.count_or("mamba_n_groups", 1);
  m.state = keys.count("mamba_d_state");
  m.conv_kernel = keys.count("mamba_d_conv");
  m.chunk = keys.count("mamba_chunk_size");
  m.bias = keys.flag_or("mamba_proj_bias", false);
  m.conv_bias = keys.flag_or("mamba_conv_bias", true);
  keys.known({"mamba_expand", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank"});
  return m;
}

}  // namespace

void read_granite_moe(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  know_scales(keys);
  s.intermediate_size = keys.count("intermediate_size");
  const MoeShape moe = granite_experts(keys, s);
  AttentionShape a = attention_of(s, {}, 1);
  a.bias_qkv = a.bias_out = keys.flag_or("attention_bias", false);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

// Each block: Mamba-2 or attention, then a shared feed-forward layer, beside experts where there are any.
void read_granite_hybrid(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  know_scales(keys);
  keys.known({"normalization_function", "position_embedding_type", "init_method", "num_experts_per_tok", "num_local_experts"});
  s.intermediate_size = keys.count("intermediate_size");
  const std::uint64_t shared = keys.count("shared_intermediate_size");
  const bool has_experts = keys.count_or("num_local_experts", 0, kExpertsMax, 0) > 0;
  MoeShape moe;
  if (has_experts) moe = granite_experts(keys, s);
  moe.shared_intermediate = shared;
  const Layer feed_forward = has_experts ? moe_layer(moe) : mlp_layer(mlp_of(s, shared, true, 1));
  Mamba2Shape mamba = mamba_of(keys, s);
  mamba.norms = {1, s.hidden_size};
  AttentionShape a = attention_of(s, {}, 1);
  a.bias_qkv = a.bias_out = keys.flag_or("attention_bias", false);
  const std::vector<std::string> types = keys.texts(keys.spelling({"layer_types", "layers_block_type"}), kBlocksMax);
  if (types.size() != s.blocks) keys.fail(keys.path("layer_types") + ": " + std::to_string(types.size()) + " entries, expected num_hidden_layers " + std::to_string(s.blocks));
  add_embedding(builder);
  for (const std::string& type : types) {
    if (type != "mamba" && type != "attention") keys.wrong("layer_types", "mamba or attention in each place");
    builder.add(type == "mamba" ? mamba2_layer(mamba) : attention_layer(a));
    builder.add(feed_forward);
  }
  add_head(builder);
}

// One norm before attention and Mamba-2, which run side by side, another before the feed-forward layer.
void read_falcon_h1(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier", "key_multiplier", "lm_head_multiplier", "mlp_multipliers",
              "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier", "mamba_norm_before_gate", "mlp_expansion_factor"});
  s.intermediate_size = keys.count("intermediate_size");
  if (!keys.flag_or("mamba_use_mlp", true)) keys.wrong("mamba_use_mlp", "true");
  if (keys.flag_or("projectors_bias", false)) keys.wrong("projectors_bias", "false");
  if (keys.has("attn_layer_indices")) keys.wrong("attn_layer_indices", "null: attention in every block");
  Mamba2Shape mamba = mamba_of(keys, s);
  mamba.gated_norm = keys.flag_or("mamba_rms_norm", false);
  mamba.norms = {0, s.hidden_size};
  if (keys.count_or("mamba_d_ssm", mamba.heads * mamba.head_dim) != mamba.heads * mamba.head_dim) {
    keys.wrong("mamba_d_ssm", "mamba_n_heads * mamba_d_head " + std::to_string(mamba.heads * mamba.head_dim));
  }
  AttentionShape a = attention_of(s, {}, 1);
  a.bias_qkv = a.bias_out = keys.flag_or("attention_bias", false);
  MlpShape mlp = mlp_of(s, s.intermediate_size, true, 1);
  mlp.bias = keys.flag_or("mlp_bias", false);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(mamba2_layer(mamba));
    builder.add(mlp_layer(mlp));
  }
  add_head(builder);
}

}  // namespace flopsight::flops
