// Transformers with latent attention (MLA).
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

struct DeepSeek {
  bool router_correction = false;  // a bias of each expert that corrects the choice (V3)
  bool sparse = false;             // DSA (V3.2)
  bool indexer_known = false;      // the family's indexer is one and the same where its keys are not there
};

// Source of the usual sizes: configuration_glm_moe_dsa.py of the transformers library.
void read_indexer(Keys& keys, Builder& builder, bool known, LatentAttentionShape& a) {
  if (known && !keys.has("index_topk")) {
    a.index_topk = keys.count_or("index_topk", 2048);
    a.index_heads = keys.count_or("index_n_heads", 32);
    a.index_dim = keys.count_or("index_head_dim", 128);
    builder.assume("index_topk, index_n_heads and index_head_dim are not given: the family's 2048, 32 and 128");
    return;
  }
  a.index_topk = keys.count("index_topk");
  a.index_heads = keys.count("index_n_heads");
  a.index_dim = keys.count("index_head_dim");
}

LatentAttentionShape latent_shape(Keys& keys, const Shape& s) {
  LatentAttentionShape a;
  a.hidden = s.hidden_size;
  a.heads = s.heads;
  a.q_lora_rank = keys.count_or("q_lora_rank", 0);
  a.kv_lora_rank = keys.count("kv_lora_rank");
  a.qk_nope_head_dim = keys.count("qk_nope_head_dim");
  a.qk_rope_head_dim = keys.count_or("qk_rope_head_dim", 0, kSizeMax, 0);
  a.v_head_dim = keys.count("v_head_dim");
  a.norms = {1, s.hidden_size};
  return a;
}

MoeShape deepseek_experts(Keys& keys, const Shape& s, bool correction) {
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("n_routed_experts", kExpertsMax);
  moe.top_k = keys.count("num_experts_per_tok", kExpertsMax);
  moe.expert_intermediate = keys.count("moe_intermediate_size");
  moe.shared_intermediate = keys.count_or("n_shared_experts", 0, kExpertsMax, 0) * moe.expert_intermediate;
  moe.router_bias = correction;
  moe.norms = {1, s.hidden_size};
  check_top_k(keys, "num_experts_per_tok", moe, "n_routed_experts");
  return moe;
}

// A list with one of two words for each block; empty if it is not there.
std::vector<std::string> read_choices(Keys& keys, std::string_view key, std::uint64_t blocks, std::string_view one, std::string_view other) {
  std::vector<std::string> words = keys.texts(key, kBlocksMax);
  const bool known = std::all_of(words.begin(), words.end(), [&](const std::string& word) { return word == one || word == other; });
  if (!known || (!words.empty() && words.size() != blocks)) {
    keys.wrong(key, std::string(one) + " or " + std::string(other) + " for each of num_hidden_layers " + std::to_string(blocks));
    return {};
  }
  return words;
}

void read_deepseek(Keys& keys, Builder& builder, const DeepSeek& d) {
  read_shape(keys, builder, {1, false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "head_dim", "qk_head_dim", "num_key_value_heads", "score_function", "moe_router_activation_func"});
  s.intermediate_size = keys.count("intermediate_size");
  LatentAttentionShape a = latent_shape(keys, s);
  a.bias = keys.flag_or("attention_bias", false);
  s.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  if (d.sparse) read_indexer(keys, builder, d.indexer_known, a);
  const MoeShape moe = deepseek_experts(keys, s, d.router_correction);
  const std::uint64_t dense_first = keys.count_or("first_k_dense_replace", 0, kBlocksMax, 0);
  const std::uint64_t every = keys.count_or("moe_layer_freq", 1, kBlocksMax);
  const std::vector<std::string> feed_forwards = read_choices(keys, "mlp_layer_types", s.blocks, "dense", "sparse");
  const std::vector<std::string> indexers = d.sparse ? read_choices(keys, "indexer_types", s.blocks, "full", "shared") : std::vector<std::string>();
  const Layer attention = latent_attention_layer(a);
  const Layer experts = moe_layer(moe);
  a.owns_indexer = false;
  const Layer reusing = latent_attention_layer(a);
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(!indexers.empty() && indexers[i] == "shared" ? reusing : attention);
    const bool sparse = feed_forwards.empty() ? i >= dense_first && i % every == 0 : feed_forwards[i] == "sparse";
    builder.add(sparse ? experts : mlp_layer(mlp_of(s, s.intermediate_size, true, 1)));
  }
  add_head(builder);
  add_prediction(keys, builder, {attention, experts});
}

}  // namespace

void read_deepseek_v2(Keys& keys, Builder& builder) { read_deepseek(keys, builder, {false, false, false}); }

void read_deepseek_v3(Keys& keys, Builder& builder) { read_deepseek(keys, builder, {true, false, false}); }

void read_deepseek_v32(Keys& keys, Builder& builder) { read_deepseek(keys, builder, {true, true, false}); }

void read_glm_moe_dsa(Keys& keys, Builder& builder) { read_deepseek(keys, builder, {true, true, true}); }

void read_kimi_linear(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {1, false});
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "head_dim", "mla_use_nope", "moe_renormalize", "moe_router_activation_func", "num_expert_group", "use_grouped_topk", "moe_layer_freq"});
  s.intermediate_size = keys.count("intermediate_size");
  const LatentAttentionShape a = latent_shape(keys, s);
  s.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  MoeShape moe;
  moe.hidden = s.hidden_size;
  moe.experts = keys.count("num_experts", kExpertsMax);
  moe.top_k = keys.count(keys.spelling({"num_experts_per_token", "num_experts_per_tok"}), kExpertsMax);
  moe.expert_intermediate = keys.count("moe_intermediate_size");
  moe.shared_intermediate = keys.count_or("num_shared_experts", 0, kExpertsMax, 0) * moe.expert_intermediate;
  moe.router_bias = true;
  moe.norms = {1, s.hidden_size};
  const std::uint64_t dense_first = keys.count_or("first_k_dense_replace", 0, kBlocksMax, 0);
  if (keys.count_or("moe_layer_freq", 1, kBlocksMax) != 1) keys.wrong("moe_layer_freq", "1");
  if (keys.count_or("num_nextn_predict_layers", 0, 64, 0) != 0) keys.wrong("num_nextn_predict_layers", "0");
  const base::json::Object* linear = keys.object("linear_attn_config");
  if (linear == nullptr) {
    keys.wrong("linear_attn_config", "an object");
    return;
  }
  Keys l(*linear, keys.path("linear_attn_config."));
  DeltaNetShape delta;
  delta.hidden = s.hidden_size;
  delta.key_heads = delta.value_heads = l.count("num_heads");
  delta.key_dim = delta.value_dim = l.count("head_dim");
  delta.conv_kernel = l.count("short_conv_kernel_size");
  delta.norms = {1, s.hidden_size};
  // Both lists count from 1 and together name every block once.
  std::vector<int> kinds(s.blocks, 0);
  for (const auto& [key, kind] : {std::pair{"kda_layers", 1}, std::pair{"full_attn_layers", 2}}) {
    for (const std::uint64_t number : l.counts(key, kBlocksMax)) {
      if (number < 1 || number > s.blocks || kinds[number - 1] != 0) {
        l.wrong(key, "numbers from 1 to num_hidden_layers, each in one list");
        break;
      }
      kinds[number - 1] = kind;
    }
  }
  if (std::find(kinds.begin(), kinds.end(), 0) != kinds.end()) l.fail(l.path("kda_layers") + " and full_attn_layers: expected every block from 1 to num_hidden_layers in one of them");
  keys.finish_part(l, "kimi_linear");
  add_embedding(builder);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(kinds[i] == 1 ? kimi_delta_layer(delta) : latent_attention_layer(a));
    builder.add(i < dense_first ? mlp_layer(mlp_of(s, s.intermediate_size, true, 1)) : moe_layer(moe));
  }
  add_head(builder);
}

}  // namespace flopsight::flops
