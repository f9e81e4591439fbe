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

// Attention with an output gate in every `interval`-th block, gated delta-net in the others; experts in all, or none.
void read_qwen_hybrid(Keys& keys, Builder& builder) {
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
    if (moe.top_k > moe.experts) keys.wrong("num_experts_per_tok", "at most num_experts " + std::to_string(moe.experts));
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
  builder.model.prediction_steps = keys.count_or("mtp_num_hidden_layers", 0, 64, 0);
  for (std::uint64_t step = 0; step < builder.model.prediction_steps; ++step) {
    builder.add(prediction_layer(s.hidden_size, {3, s.hidden_size}), Section::kPrediction);
    builder.add(attention_layer(a), Section::kPrediction);
    builder.add(feed_forward, Section::kPrediction);
    builder.add(head_layer(s.hidden_size, s.vocab_size, true, {}), Section::kPrediction);
  }
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
  if (moe.top_k > moe.experts) keys.wrong("num_experts_per_tok", "at most n_routed_experts " + std::to_string(moe.experts));
  return moe;
}

bool add_nemotron_layers(Builder& builder, const NemotronH& n, const std::string& pattern, Section section) {
  return std::all_of(pattern.begin(), pattern.end(), [&](char kind) {
    switch (kind) {
      case 'M': builder.add(mamba2_layer(n.mamba), section); return true;
      case '*': builder.add(attention_layer(n.attention), section); return true;
      case '-': builder.add(mlp_layer(n.mlp), section); return true;
      case 'E': builder.add(moe_layer(n.moe), section); return true;
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

void read_qwen3_next(Keys& keys, Builder& builder) { read_qwen_hybrid(keys, builder); }

void read_qwen3_5(Keys& keys, Builder& builder) { read_qwen_hybrid(keys, builder); }

void read_nemotron_h(Keys& keys, Builder& builder) {
  const std::string pattern = nemotron_pattern(keys, "hybrid_override_pattern", "layers_block_type");
  read_shape(keys, builder, {keys.count_or("attention_head_dim", 0), false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "mamba_hidden_act", "mlp_hidden_act", "hidden_dropout", "expand", "time_step_floor", "time_step_limit",
              "time_step_max", "time_step_min", "time_step_rank", "use_mamba_kernels", "moe_shared_expert_overlap", "mamba_ssm_cache_dtype",
              "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_latent_size", "n_shared_experts",
              "moe_shared_expert_intermediate_size", "sliding_window", "mtp_layers_block_type", "mtp_hybrid_override_pattern"});
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
  if (!add_nemotron_layers(builder, n, pattern, Section::kText)) keys.wrong("hybrid_override_pattern", "of M, *, - and E only");
  add_head(builder);
  builder.model.prediction_steps = keys.count_or("num_nextn_predict_layers", 0, 64, 0);
  if (builder.model.prediction_steps > 0 && mtp.empty()) keys.wrong("mtp_hybrid_override_pattern", "the layers of a prediction step");
  for (std::uint64_t step = 0; step < builder.model.prediction_steps; ++step) {
    builder.add(prediction_layer(s.hidden_size, {3, s.hidden_size}), Section::kPrediction);
    if (!add_nemotron_layers(builder, n, mtp, Section::kPrediction)) keys.wrong("mtp_hybrid_override_pattern", "of M, *, - and E only");
    builder.add(head_layer(s.hidden_size, s.vocab_size, true, {}), Section::kPrediction);
  }
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
  m.dt_rank = keys.count_or("mamba_dt_rank", (s.hidden_size + 15) / 16);
  m.bias = keys.flag_or("mamba_proj_bias", false);
  m.conv_bias = keys.flag_or("mamba_conv_bias", true);
  m.inner_norms = true;
  m.norms = {1, s.hidden_size};
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count_or("num_experts", 16, kExpertsMax);
  moe.top_k = keys.count_or("num_experts_per_tok", 2, kExpertsMax);
  moe.expert_intermediate = s.intermediate_size;
  moe.norms = {1, s.hidden_size};
  if (moe.top_k > moe.experts) keys.wrong("num_experts_per_tok", "at most num_experts " + std::to_string(moe.experts));
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
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) builder.add(mamba2_layer(m));
  add_head(builder);
}

}  // namespace flopsight::flops
