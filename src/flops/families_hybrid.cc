// Models with recurrent layers: Mamba, gated delta-net.
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

DeltaNetShape delta_shape(Keys& keys, const Shape& s) {
  DeltaNetShape d;
  d.hidden = s.hidden_size;
  d.key_heads = keys.count("linear_num_key_heads");
  d.value_heads = keys.count("linear_num_value_heads");
  d.key_dim = keys.count("linear_key_head_dim");
  d.value_dim = keys.count("linear_value_head_dim");
  d.conv_kernel = keys.count("linear_conv_kernel_dim");
  d.norms = {1, s.hidden_size};
  return d;
}

// The four kinds of Nemotron-H's pattern.
struct NemotronH {
  Mamba2Shape mamba;
  AttentionShape attention;
  MlpShape mlp;
  MoeShape moe;
};

Mamba2Shape nemotron_mamba(Keys& keys, const Shape& s, bool bias) {
  Mamba2Shape m;
  m.hidden = s.hidden_size;
  m.heads = keys.count("mamba_num_heads");
  m.head_dim = keys.count("mamba_head_dim");
  m.groups = keys.count("n_groups");
  m.state = keys.count("ssm_state_size");
  m.conv_kernel = keys.count("conv_kernel");
  m.chunk = keys.count(keys.spelling({"chunk_size", "mamba_chunk_size"}));
  m.bias = bias || keys.flag_or("mamba_proj_bias", false);
  m.conv_bias = keys.flag_or("use_conv_bias", true);
  m.norms = {1, s.hidden_size};
  return m;
}

MoeShape nemotron_experts(Keys& keys, const Shape& s) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.gated = false;
  moe.experts = keys.count("n_routed_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = keys.count("moe_intermediate_size");
  moe.latent = keys.count_or("moe_latent_size", 0);
  if (keys.count_or("n_shared_experts", 0, kExpertsMax, 0) > 0) moe.shared_intermediate = keys.count("moe_shared_expert_intermediate_size");
  moe.router_bias = true;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe, "n_routed_experts");
  return moe;
}

// False for a letter that is none of the four.
bool nemotron_layers(const NemotronH& n, const std::string& pattern, std::vector<Layer>& layers) {
  return std::all_of(pattern.begin(), pattern.end(), [&](char kind) {
    switch (kind) {
      case 'M': layers.push_back(mamba2_layer(n.mamba)); return true;
      case '*': layers.push_back(attention_layer(n.attention)); return true;
      case '-': layers.push_back(mlp_layer(n.mlp)); return true;
      case 'E': layers.push_back(moe_layer(n.moe)); return true;
      default: return false;
    }
  });
}

// The pattern as one text; layers_block_type says the same in words.
std::string nemotron_pattern(Keys& keys, std::string_view text_key, std::string_view words_key) {
  std::string pattern = keys.text_or(text_key, "");
  if (pattern.size() > kBlocksMax) keys.wrong(text_key, "at most " + std::to_string(kBlocksMax) + " layers");
  const std::vector<std::string> words = keys.texts(words_key, kBlocksMax);
  std::string spelled;
  for (const std::string& word : words) {
    const char kind = word == "mamba" ? 'M' : word == "attention" ? '*' : word == "mlp" ? '-' : word == "moe" ? 'E' : '?';
    if (kind == '?') keys.wrong(words_key, "mamba, attention, mlp or moe in each place");
    spelled += kind;
  }
  return pattern.empty() ? spelled : pattern;
}

}  // namespace


// Attention with an output gate in every `interval`-th block, gated delta-net in the others; experts in all, or none.
void read_qwen3_next(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {256, false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "mamba_ssm_dtype", "mtp_use_dedicated_embeddings", "shared_expert_intermediate_size"});
  s.intermediate_size = keys.count_or("intermediate_size", 0);
  if (!keys.flag_or("attn_output_gate", true)) keys.wrong("attn_output_gate", "true");
  if (keys.flag_or("mtp_use_dedicated_embeddings", false)) keys.wrong("mtp_use_dedicated_embeddings", "false");
  const bool bias = keys.flag_or("attention_bias", false);
  const DeltaNetShape delta = delta_shape(keys, s);
  const bool sparse = keys.count_or("num_experts", 0, kExpertsMax, 0) > 0;
  if (keys.count_or("decoder_sparse_step", 1) != 1) keys.wrong("decoder_sparse_step", "1");
  if (!keys.counts("mlp_only_layers", kBlocksMax).empty()) keys.wrong("mlp_only_layers", "an empty list");
  MoeShape moe;
  moe.hidden = s.hidden_size;
  if (sparse) {
    moe.experts = keys.count("num_experts", kExpertsMax);
    moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
    moe.expert_intermediate = keys.count("moe_intermediate_size");
    moe.shared_intermediate = keys.count("shared_expert_intermediate_size");
    moe.shared_gate = true;
    moe.norms = {1, s.hidden_size};
    check_top_k(keys, "num_experts_per_tok", moe, "num_experts");
  } else {
    s.intermediate_size = keys.count("intermediate_size");
  }
  keys.known({"num_experts_per_tok", "moe_intermediate_size"});
  const std::uint64_t interval = keys.count_or("full_attention_interval", 4);
  std::vector<std::string> types = read_layer_types(keys, s.blocks);
  for (std::uint64_t i = types.size(); i < s.blocks; ++i) types.emplace_back((i + 1) % interval == 0 ? "full_attention" : "linear_attention");
  masks_of_types(keys, types, 0, 0);  // no other type
  AttentionShape a = attention_of(s, {}, 1);
  a.output_gate = true;
  a.query_norm = a.key_norm = s.head_dim;
  a.bias_qkv = a.bias_out = bias;
  const Layer feed_forward = sparse ? moe_layer(moe) : mlp_layer(mlp_of(s, s.intermediate_size, true, 1));
  add_embedding(builder);
  for (const std::string& type : types) {
    builder.add(type == "linear_attention" ? gated_delta_net_layer(delta) : attention_layer(a));
    builder.add(feed_forward);
  }
  add_head(builder);
  add_prediction(keys, builder, {attention_layer(a), feed_forward}, "mtp_num_hidden_layers");
}

// MiniMax-01 (arXiv 2501.08313): softmax attention in the blocks that attn_type_list or layer_types names, lightning attention in the others,
// experts in all.
void read_minimax_01(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "router_jitter_noise", "postnorm", "rotary_dim", "shared_moe_mode", "block_size", "layernorm_full_attention_alpha",
              "layernorm_full_attention_beta", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta",
              "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor", "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"});
  if (keys.has("sliding_window")) keys.wrong("sliding_window", "null");
  if (keys.count_or("shared_intermediate_size", 0, kSizeMax, 0) != 0) keys.wrong("shared_intermediate_size", "0: no shared expert");
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_local_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = s.intermediate_size = keys.count("intermediate_size");
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe, "num_local_experts");
  std::vector<std::string> types = read_layer_types(keys, s.blocks);
  const std::vector<std::uint64_t> list = keys.counts("attn_type_list", kBlocksMax);
  if (types.empty()) {
    if (list.size() != s.blocks) keys.fail(keys.path("attn_type_list") + ": " + std::to_string(list.size()) + " entries, expected num_hidden_layers " + std::to_string(s.blocks));
    for (const std::uint64_t type : list) {
      if (type > 1) keys.wrong("attn_type_list", "0, lightning attention, or 1, softmax attention, in each place");
      types.emplace_back(type == 1 ? "full_attention" : "linear_attention");
    }
  }
  masks_of_types(keys, types, 0, 0);  // no other type
  add_embedding(builder);
  for (const std::string& type : types) {
    builder.add(type == "linear_attention" ? lightning_attention_layer({s.hidden_size, s.heads, s.head_dim, {1, s.hidden_size}}) : attention_layer(attention_of(s, {}, 1)));
    builder.add(moe_layer(moe));
  }
  add_head(builder);
}

void read_nemotron_h(Keys& keys, Builder& builder) {
  const std::string pattern = nemotron_pattern(keys, "hybrid_override_pattern", "layers_block_type");
  read_shape(keys, builder, {keys.count_or("attention_head_dim", 0), false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "mamba_hidden_act", "mlp_hidden_act", "hidden_dropout", "expand", "time_step_floor", "time_step_limit",
              "time_step_max", "time_step_min", "time_step_rank", "use_mamba_kernels", "moe_shared_expert_overlap", "mamba_ssm_cache_dtype",
              "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_latent_size", "n_shared_experts",
              "moe_shared_expert_intermediate_size", "mtp_layers_block_type", "mtp_hybrid_override_pattern"});
  if (keys.has("sliding_window")) keys.wrong("sliding_window", "null");
  s.intermediate_size = keys.count_or("intermediate_size", 0);
  s.gated = false;
  const bool bias = keys.flag_or("use_bias", false);
  NemotronH n;
  n.mamba = nemotron_mamba(keys, s, bias);
  n.attention = attention_of(s, {}, 1);
  n.attention.bias_qkv = n.attention.bias_out = keys.flag_or("attention_bias", false);
  n.mlp = mlp_of(s, s.intermediate_size, false, 1);
  n.mlp.bias = keys.flag_or("mlp_bias", false);
  const std::string mtp = nemotron_pattern(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  if ((pattern + mtp).find('E') != std::string::npos) n.moe = nemotron_experts(keys, s);
  if (pattern.find('-') != std::string::npos) keys.count("intermediate_size");
  if (pattern.size() != s.blocks) {
    keys.fail(keys.path("hybrid_override_pattern") + ": " + std::to_string(pattern.size()) + " layers, expected num_hidden_layers " + std::to_string(s.blocks));
    return;
  }
  add_embedding(builder);
  std::vector<Layer> layers;
  if (!nemotron_layers(n, pattern, layers)) keys.wrong("hybrid_override_pattern", "of M, *, - and E only");
  for (Layer& layer : layers) builder.add(std::move(layer));
  add_head(builder);
  std::vector<Layer> step;
  if (!nemotron_layers(n, mtp, step)) keys.wrong("mtp_hybrid_override_pattern", "of M, *, - and E only");
  add_prediction(keys, builder, step);
  // Nemotron 3 Super was trained with two steps through its one module.
  if (builder.model.prediction_steps == 1) builder.model.prediction_steps_max = 2;
  if (builder.model.prediction_steps > 0 && mtp.empty()) keys.wrong("mtp_hybrid_override_pattern", "the layers of a prediction step");
}

void read_jamba(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "use_mamba_kernels", "sliding_window"});
  if (keys.has("sliding_window")) keys.wrong("sliding_window", "null");
  s.intermediate_size = keys.count("intermediate_size");
  Mamba1Shape m;
  m.hidden = s.hidden_size;
  m.inner = keys.count_or("mamba_expand", 2) * s.hidden_size;
  m.state = keys.count_or("mamba_d_state", 16);
  m.conv_kernel = keys.count_or("mamba_d_conv", 4);
  m.dt_rank = keys.count_or_auto("mamba_dt_rank", (s.hidden_size + 15) / 16);
  m.bias = keys.flag_or("mamba_proj_bias", false);
  m.conv_bias = keys.flag_or("mamba_conv_bias", true);
  m.inner_norms = keys.flag_or("mamba_inner_layernorms", true);
  m.norms = {1, s.hidden_size};
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count_or("num_experts", 16, kExpertsMax);
  moe.top_k = keys.count_or("num_experts_per_tok", 2, kExpertsMax);
  moe.expert_intermediate = s.intermediate_size;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe, "num_experts");
  const std::uint64_t attention_period = keys.count_or("attn_layer_period", 8), attention_offset = keys.count_or("attn_layer_offset", 4, kSizeMax, 0);
  const std::uint64_t expert_period = keys.count_or("expert_layer_period", 2), expert_offset = keys.count_or("expert_layer_offset", 1, kSizeMax, 0);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(i % attention_period == attention_offset ? attention_layer(attention_of(s, {}, 1)) : mamba1_layer(m));
    const bool sparse = moe.experts > 1 && i % expert_period == expert_offset;
    builder.add(sparse ? moe_layer(moe) : mlp_layer(mlp_of(s, s.intermediate_size, true, 1)));
  }
  add_head(builder);
}

namespace {

// What the conversions of the first Mamba repositories keep of their own configuration beside the keys of the library: the same sizes
// in other words, and the padding that vocab_size has had.
void check_mamba_spellings(Keys& keys, const Shape& s, std::string_view inner_key, std::uint64_t inner) {
  keys.known({"fused_add_norm"});
  keys.same("d_model", "hidden_size", s.hidden_size);
  keys.same("n_layer", "num_hidden_layers", s.blocks);
  keys.same("d_inner", inner_key, inner);
  const base::json::Object* sizes = keys.object("ssm_cfg");
  if (sizes != nullptr && !sizes->empty()) keys.wrong("ssm_cfg", "an empty object, as the sizes are the configuration's own keys");
  if (s.vocab_size % keys.count_or("pad_vocab_size_multiple", 1) != 0) keys.wrong("pad_vocab_size_multiple", "a divisor of vocab_size " + std::to_string(s.vocab_size));
}

}  // namespace

void read_mamba2(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count("num_hidden_layers", kBlocksMax);
  s.vocab_size = keys.count("vocab_size");
  s.tied = keys.flag_or("tie_word_embeddings", false);
  keys.known({"hidden_act", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank", "expand", "rms_norm"});
  Mamba2Shape m;
  m.hidden = s.hidden_size;
  m.heads = keys.count("num_heads");
  m.head_dim = keys.count("head_dim");
  m.groups = keys.count("n_groups");
  m.state = keys.count("state_size");
  m.conv_kernel = keys.count("conv_kernel");
  m.chunk = keys.count("chunk_size");
  m.bias = keys.flag_or("use_bias", false);
  m.conv_bias = keys.flag_or("use_conv_bias", true);
  m.norms = {1, s.hidden_size};
  if (m.heads * m.head_dim != keys.count_or("expand", 2) * s.hidden_size) keys.wrong("num_heads", "expand * hidden_size / head_dim");
  check_mamba_spellings(keys, s, "num_heads * head_dim", m.heads * m.head_dim);
  keys.same("intermediate_size", "expand * hidden_size", m.heads * m.head_dim);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) builder.add(mamba2_layer(m));
  add_head(builder);
}

// State-space layers as in the first Mamba paper, nothing else (also Falcon-Mamba).
void read_mamba(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count("num_hidden_layers", kBlocksMax);
  s.vocab_size = keys.count("vocab_size");
  s.tied = keys.flag_or("tie_word_embeddings", true);
  keys.known({"hidden_act", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_scale", "time_step_init_scheme",
              "use_mambapy", "use_associative_scan", "mixer_rms_eps", "use_falcon_mambapy"});
  Mamba1Shape m;
  m.hidden = s.hidden_size;
  m.inner = keys.count_or("intermediate_size", keys.count_or("expand", 2) * s.hidden_size);
  check_mamba_spellings(keys, s, "intermediate_size", m.inner);
  if (!keys.flag_or("rms_norm", true)) keys.wrong("rms_norm", "true");
  m.state = keys.count("state_size");
  m.conv_kernel = keys.count("conv_kernel");
  m.dt_rank = keys.count_or_auto("time_step_rank", (s.hidden_size + 15) / 16);
  m.bias = keys.flag_or("use_bias", false);
  m.conv_bias = keys.flag_or("use_conv_bias", true);
  m.norms = {1, s.hidden_size};
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) builder.add(mamba1_layer(m));
  add_head(builder);
}

namespace {

// The transformer block that Zamba2 runs again and again on the stream and the embedding side by side.
struct Zamba2 {
  AttentionShape attention;
  MlpShape mlp;
  std::uint64_t rank = 0;  // of the adapters that each run has for itself
  bool attention_adapters = false;
  Mamba2Shape mamba;
};

Layer adapters_of_run(const Zamba2& z, std::uint64_t hidden) {
  Layer layer = linear_layer(hidden, {0, 0});  // from the block's output back into the stream
  const auto add = [&](std::uint64_t in, std::uint64_t out) {
    Matmul m = layer.matmuls[0];
    m.split = Split::kNone;
    m.in = in;
    m.out = z.rank;
    layer.matmuls.push_back(m);
    m.in = z.rank;
    m.out = out;
    layer.matmuls.push_back(m);
  };
  add(hidden, 2 * z.mlp.intermediate);
  for (int i = 0; z.attention_adapters && i < 3; ++i) add(2 * hidden, 2 * hidden);  // q, k, v
  return layer;
}

Zamba2 zamba2_of(Keys& keys, Shape& s) {
  Zamba2 z;
  z.attention = attention_of(s, {}, 0);
  z.attention.hidden = 2 * s.hidden_size;
  z.attention.out_hidden = s.hidden_size;
  if (2 * s.hidden_size % s.heads != 0) keys.wrong("num_attention_heads", "a divisor of 2 * hidden_size");
  z.attention.head_dim = s.head_dim = std::max<std::uint64_t>(1, 2 * s.hidden_size / s.heads);
  z.attention.norms = {1, 2 * s.hidden_size};
  s.intermediate_size = keys.count_or("intermediate_size", keys.count_or("ffn_hidden_size", 4 * s.hidden_size));
  z.mlp = mlp_of(s, s.intermediate_size, true, 1);
  z.mlp.bias = keys.flag_or("add_bias_linear", false);
  z.rank = keys.count_or("adapter_rank", 128);
  z.attention_adapters = keys.flag_or("use_shared_attention_adapter", false);
  z.mamba.hidden = s.hidden_size;
  z.mamba.heads = keys.count("n_mamba_heads");
  const std::uint64_t inner = keys.count_or("mamba_expand", 2) * s.hidden_size;
  if (inner % z.mamba.heads != 0) keys.wrong("n_mamba_heads", "a divisor of mamba_expand * hidden_size");
  z.mamba.head_dim = keys.count_or("mamba_headdim", std::max<std::uint64_t>(1, inner / z.mamba.heads));
  z.mamba.groups = keys.count_or("mamba_ngroups", 1);
  z.mamba.state = keys.count_or("mamba_d_state", 64);
  z.mamba.conv_kernel = keys.count_or("mamba_d_conv", 4);
  z.mamba.chunk = keys.count_or("chunk_size", 256);
  z.mamba.norms = {1, s.hidden_size};
  return z;
}

}  // namespace

void read_zamba2(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {1, true});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "attention_head_dim", "attention_hidden_size", "kv_channels", "num_query_groups", "time_step_floor", "time_step_limit",
              "time_step_max", "time_step_min", "use_conv_bias", "use_mem_rope", "use_mem_eff_path", "use_long_context", "hybrid_layer_ids",
              "use_shared_mlp_adapter", "use_shared_attention_lora", "use_shared_block_lora", "lora_rank", "ffn_hidden_size", "mamba_headdim",
              "model_type", "ft_lora", "gated_linear_unit", "bias_gelu_fusion", "activation_func", "vocab_size"});
  if (s.kv_heads != s.heads) keys.wrong("num_key_value_heads", "num_attention_heads");
  const Zamba2 z = zamba2_of(keys, s);
  const std::uint64_t blocks = keys.count_or("num_mem_blocks", 1);
  const std::vector<std::string> types = keys.texts("layers_block_type", kBlocksMax);
  if (types.size() != s.blocks) keys.fail(keys.path("layers_block_type") + ": " + std::to_string(types.size()) + " entries, expected num_hidden_layers " + std::to_string(s.blocks));
  add_embedding(builder);
  std::uint64_t runs = 0;
  for (const std::string& type : types) {
    if (type != "mamba" && type != "hybrid") keys.wrong("layers_block_type", "mamba or hybrid in each place");
    if (type == "hybrid") {
      for (const Layer& shared : {attention_layer(z.attention), mlp_layer(z.mlp)}) runs < blocks ? builder.add(shared) : builder.run_again(shared);
      builder.add(adapters_of_run(z, s.hidden_size));
      ++runs;
    }
    builder.add(mamba2_layer(z.mamba));
  }
  add_head(builder);
}

}  // namespace flopsight::flops
