// Transformers whose blocks are all attention and one feed-forward layer.
#include "flops/family_internal.h"

#include <algorithm>
#include <cmath>

namespace flopsight::flops {
namespace {

// What tells the families apart.
struct Dense {
  bool gated = true;
  std::uint64_t norms = 1;         // of hidden_size, in each of the two sub-layers
  std::uint64_t vectors_each = 1;  // of a norm: LayerNorm has a bias
  bool bias_qkv = false;
  bool bias_out = false;
  bool bias_mlp = false;
  enum class QueryKeyNorm { kNone, kHead, kWhole } query_key_norm = QueryKeyNorm::kNone;
};

void add_block(Builder& builder, const Dense& d, const MaskOfBlock& mask, std::uint64_t intermediate) {
  const Shape& s = builder.model.shape;
  AttentionShape a = attention_of(s, mask, d.norms, d.vectors_each);
  a.bias_qkv = d.bias_qkv;
  a.bias_out = d.bias_out;
  if (d.query_key_norm == Dense::QueryKeyNorm::kHead) a.query_norm = a.key_norm = s.head_dim;
  if (d.query_key_norm == Dense::QueryKeyNorm::kWhole) {
    a.query_norm = s.heads * s.head_dim;
    a.key_norm = s.kv_heads * s.head_dim;
  }
  builder.add(attention_layer(a));
  MlpShape m = mlp_of(s, intermediate, d.gated, d.norms, d.vectors_each);
  m.bias = d.bias_mlp;
  builder.add(mlp_layer(m));
}

void add_blocks(Builder& builder, const Dense& d, const std::vector<MaskOfBlock>& masks) {
  Shape& s = builder.model.shape;
  s.gated = d.gated;
  add_embedding(builder);
  for (const MaskOfBlock& mask : masks) add_block(builder, d, mask, s.intermediate_size);
  add_head(builder, d.vectors_each);
}

void read_intermediate(Keys& keys, Builder& builder) { builder.model.shape.intermediate_size = keys.count("intermediate_size"); }

// Windows as Qwen2 has them: off unless use_sliding_window, and then only from max_window_layers on.
std::vector<MaskOfBlock> qwen_masks(Keys& keys, std::uint64_t blocks) {
  const bool use = keys.flag_or("use_sliding_window", false);
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  const std::uint64_t from = keys.count_or("max_window_layers", blocks, kSizeMax, 0);
  const std::vector<std::string> types = read_layer_types(keys, blocks);
  if (!types.empty()) return masks_of_types(keys, types, window, 0);
  std::vector<MaskOfBlock> masks = same_masks(blocks);
  if (use && window == 0) keys.wrong("sliding_window", "a whole number, as use_sliding_window is true");
  for (std::uint64_t i = from; use && i < blocks; ++i) masks[i] = {Mask::kWindow, window};
  return masks;
}

// Every `pattern`-th block sees everything, the others a window.
std::vector<MaskOfBlock> gemma_masks(Keys& keys, std::uint64_t blocks, std::uint64_t window_absent, std::uint64_t pattern_absent) {
  const std::uint64_t window = keys.count_or(keys.spelling({"sliding_window", "sliding_window_size"}), window_absent);
  keys.same("sliding_window_size", "sliding_window", window);  // Gemma 2 is published with both
  const std::uint64_t pattern = keys.count_or("sliding_window_pattern", keys.count_or("_sliding_window_pattern", pattern_absent));
  const std::vector<std::string> types = read_layer_types(keys, blocks);
  if (!types.empty()) return masks_of_types(keys, types, window, 0);
  std::vector<MaskOfBlock> masks;
  for (std::uint64_t i = 1; i <= blocks; ++i) masks.push_back(i % pattern == 0 ? MaskOfBlock{} : MaskOfBlock{Mask::kWindow, window});
  return masks;
}

std::vector<MaskOfBlock> window_everywhere(Keys& keys, std::uint64_t blocks) {
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  return same_masks(blocks, window == 0 ? MaskOfBlock{} : MaskOfBlock{Mask::kWindow, window});
}

}  // namespace

void read_llama(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "max_sequence_length"});
  keys.one_of("activation", "swiglu", {"swiglu", "silu"});  // Falcon 3's second word for the gate
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.bias_mlp = keys.flag_or("mlp_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

// As Llama, with the bias of all projections under one key.
void read_internlm2(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "attn_implementation"});
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

void read_internlm3(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"bias", "qkv_bias"});
  add_blocks(builder, {}, same_masks(builder.model.shape.blocks));
}

void read_baichuan(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  builder.model.assumptions.clear();  // the family has no grouped queries
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "z_loss_weight"});
  add_blocks(builder, {}, same_masks(builder.model.shape.blocks));
}

// Qwen, the first: intermediate_size is that of both halves of the gate together.
void read_qwen(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count("num_hidden_layers", kBlocksMax);
  s.heads = s.kv_heads = keys.count("num_attention_heads");
  s.head_dim = keys.count("kv_channels");
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count_or(keys.spelling({"max_position_embeddings", "seq_length"}), 0);
  s.tied = keys.flag_or("tie_word_embeddings", false);
  const std::uint64_t both = keys.count("intermediate_size");
  if (both % 2 != 0) keys.wrong("intermediate_size", "an even number");
  s.intermediate_size = std::max<std::uint64_t>(1, both / 2);
  keys.known({"use_dynamic_ntk", "use_logn_attn", "use_flash_attn", "use_cache_quantization", "use_cache_kernel", "softmax_in_fp32", "bf16", "fp16", "fp32", "onnx_safe", "seq_length"});
  if (!keys.flag_or("no_bias", true)) keys.wrong("no_bias", "true");
  Dense d;
  d.bias_qkv = true;
  add_blocks(builder, d, same_masks(s.blocks));
}

// ChatGLM2, ChatGLM3 and GLM-4-9B in their own format.
void read_chatglm(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count("hidden_size");
  s.blocks = keys.count(keys.spelling({"num_layers", "num_hidden_layers"}), kBlocksMax);
  s.heads = keys.count("num_attention_heads");
  s.head_dim = keys.count("kv_channels");
  s.vocab_size = keys.count(keys.spelling({"padded_vocab_size", "vocab_size"}));
  s.positions_max = keys.count_or("seq_length", 0);
  s.intermediate_size = keys.count("ffn_hidden_size");
  s.tied = keys.flag_or("tie_word_embeddings", false);
  s.kv_heads = keys.flag_or("multi_query_attention", false) ? keys.count("multi_query_group_num") : s.heads;
  if (s.heads % s.kv_heads != 0) keys.wrong("multi_query_group_num", "a divisor of num_attention_heads " + std::to_string(s.heads));
  keys.known({"apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection",
              "original_rope", "quantization_bit", "vocab_size", "multi_query_group_num", "num_hidden_layers", "rope_ratio", "prefix_projection", "interleaved_qkv"});
  for (const char* key : {"rmsnorm", "post_layer_norm"}) {
    if (!keys.flag_or(key, true)) keys.wrong(key, "true");
  }
  if (keys.has("pre_seq_len")) keys.wrong("pre_seq_len", "null: prefix tuning is not counted");
  Dense d;
  d.bias_out = d.bias_mlp = keys.flag_or("add_bias_linear", false);
  d.bias_qkv = d.bias_out || keys.flag_or("add_qkv_bias", false);
  add_blocks(builder, d, same_masks(s.blocks));
}

// OLMo (arXiv 2402.00838): its norms have no weights.
void read_olmo(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "clip_qkv"});
  Dense d;
  d.norms = d.vectors_each = 0;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

void read_granite(Keys& keys, Builder& builder) {
  keys.known({"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
  read_llama(keys, builder);
}

void read_ernie4_5(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  if (keys.number_or("compression_ratio", 1, 0, 1000) != 1) keys.wrong("compression_ratio", "1");
  Dense d;
  d.bias_qkv = d.bias_out = d.bias_mlp = keys.flag_or("use_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

// Norms behind the sub-layers. Which blocks have windows is said by layer_types; "LLLG" alone leaves the last block open.
void read_exaone4(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "sliding_window_pattern"});
  const std::uint64_t blocks = builder.model.shape.blocks;
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  const std::vector<std::string> types = read_layer_types(keys, blocks);
  if (types.empty() && window > 0) keys.wrong("layer_types", "a list of the attention of each block, as there is a sliding_window");
  Dense d;
  d.query_key_norm = Dense::QueryKeyNorm::kHead;
  add_blocks(builder, d, types.empty() ? same_masks(blocks) : masks_of_types(keys, types, window, 0));
}

void read_smollm3(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "no_rope_layers", "no_rope_layer_interval"});
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.bias_mlp = keys.flag_or("mlp_bias", false);
  add_blocks(builder, d, qwen_masks(keys, builder.model.shape.blocks));
}

void read_mistral(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"attention_bias", "mlp_bias"});
  add_blocks(builder, {}, window_everywhere(keys, builder.model.shape.blocks));
}

void read_qwen2(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"mlp_bias"});
  Dense d;
  d.bias_qkv = true;
  add_blocks(builder, d, qwen_masks(keys, builder.model.shape.blocks));
}

void read_qwen3(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {128, false});
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"mlp_bias"});
  qwen3_words(keys);
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.query_key_norm = Dense::QueryKeyNorm::kHead;
  add_blocks(builder, d, qwen_masks(keys, builder.model.shape.blocks));
}

void read_gemma(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {256, true});
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "hidden_activation"});
  keys.off({"mlp_bias"});
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

void read_glm4(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"mlp_bias"});
  Dense d;
  d.norms = 2;
  d.bias_qkv = keys.flag_or("attention_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

void read_seed_oss(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "residual_dropout"});
  Dense d;
  d.bias_qkv = keys.flag_or("attention_bias", true);
  d.bias_out = keys.flag_or("attention_out_bias", false);
  d.bias_mlp = keys.flag_or("mlp_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

void read_starcoder2(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {0, true});
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "activation_function", "embedding_dropout", "residual_dropout", "attention_softmax_in_fp32",
              "scale_attention_softmax_in_fp32"});
  Dense d;
  d.gated = false;
  d.vectors_each = 2;
  d.bias_qkv = d.bias_out = d.bias_mlp = keys.flag_or("use_bias", true);
  keys.one_of("norm_type", "layer_norm", {"layer_norm"});
  keys.one_of("mlp_type", "default", {"default"});
  if (!keys.has("tie_word_embeddings")) builder.assume("tie_word_embeddings is not given: true, as in the model class");
  add_blocks(builder, d, window_everywhere(keys, builder.model.shape.blocks));
}

void read_gemma2(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {256, true});
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "hidden_activation", "cache_implementation"});
  keys.off({"mlp_bias"});
  Dense d;
  d.norms = 2;  // before and after
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  add_blocks(builder, d, gemma_masks(keys, builder.model.shape.blocks, 4096, 2));
}

// The published configurations leave out what is as in Gemma3TextConfig of the transformers library.
void read_gemma3(Keys& keys, Builder& builder) {
  read_shape(keys, builder, {256, true, 2304, 26, 8, 4, 262208});
  builder.model.shape.intermediate_size = keys.count_or_class("intermediate_size", 9216);
  keys.known({"hidden_act", "hidden_activation", "cache_implementation"});
  keys.off({"mlp_bias"});
  Dense d;
  d.norms = 2;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.query_key_norm = Dense::QueryKeyNorm::kHead;
  std::vector<MaskOfBlock> masks = gemma_masks(keys, builder.model.shape.blocks, 4096, 6);
  if (keys.flag_or("use_bidirectional_attention", false)) {
    // EmbeddingGemma: the class halves the window, which then reaches as far to either side.
    for (MaskOfBlock& mask : masks) mask = {Mask::kBidirectional, mask.span == 0 ? 0 : mask.span / 2 * 2 + 1};
    builder.assume("use_bidirectional_attention: tokens see those after them too, and windows reach half of sliding_window to either side");
  }
  add_blocks(builder, d, masks);
}

void read_phi3(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act", "embed_layer", "interpolate_factor"});
  if (keys.has("img_processor")) keys.wrong("img_processor", "null: the vision tower of the family is not counted");
  keys.off({"lm_head_bias", "mlp_bias"});
  if (keys.count_or("full_attn_mod", 1) != 1) keys.wrong("full_attn_mod", "1: full attention in every block");
  if (keys.flag_or("attention_bias", false)) keys.wrong("attention_bias", "false: the family has no biases");
  add_blocks(builder, {}, window_everywhere(keys, builder.model.shape.blocks));
}

void read_olmo2(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.off({"mlp_bias"});
  Dense d;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.query_key_norm = Dense::QueryKeyNorm::kWhole;
  const std::uint64_t blocks = builder.model.shape.blocks;
  const std::vector<std::string> types = read_layer_types(keys, blocks);
  const std::uint64_t window = keys.count_or("sliding_window", 0);
  add_blocks(builder, d, types.empty() ? same_masks(blocks) : masks_of_types(keys, types, window, 0));
}

void read_nemotron(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  read_intermediate(keys, builder);
  keys.known({"hidden_act"});
  keys.same("kv_channels", "head_dim", builder.model.shape.head_dim);
  Dense d;
  d.gated = false;
  d.vectors_each = 2;
  d.bias_qkv = d.bias_out = keys.flag_or("attention_bias", false);
  d.bias_mlp = keys.flag_or("mlp_bias", false);
  add_blocks(builder, d, same_masks(builder.model.shape.blocks));
}

namespace {

// What block_configs says of one block of a DeciLM model.
struct DeciBlock {
  std::uint64_t heads_in_group = 0;  // 0: no attention
  bool attention_linear = false;
  double ffn_mult = 0;  // 0: no feed-forward layer
  bool ffn_linear = false;
};

DeciBlock read_deci_block(Keys& keys, const base::json::Value& value, std::size_t number) {
  DeciBlock block;
  const std::string path = keys.path("block_configs") + "[" + std::to_string(number) + "].";
  const base::json::Object* object = value.as_object();
  const base::json::Value* attention = value.find("attention");
  const base::json::Value* ffn = value.find("ffn");
  if (object == nullptr || attention == nullptr || attention->as_object() == nullptr || ffn == nullptr || ffn->as_object() == nullptr) {
    keys.fail(path + ": expected an object with attention and ffn");
    return block;
  }
  Keys outer(*object, path);
  outer.known({"attention", "ffn", "parallel_blocks"});
  if (outer.has("parallel_blocks")) outer.wrong("parallel_blocks", "null");
  Keys a(*attention->as_object(), path + "attention.");
  const bool no_attention = a.flag_or("no_op", false);
  block.attention_linear = a.flag_or("replace_with_linear", false);
  if (!no_attention && !block.attention_linear) block.heads_in_group = a.count("n_heads_in_group");
  a.known({"n_heads_in_group", "num_sink_tokens", "sparsify", "unshifted_sink", "use_prefill_window_in_sink_attention"});
  for (const char* key : {"window_length", "num_sink_tokens", "sparsify"}) {
    if (a.has(key)) a.wrong(key, "null");
  }
  Keys f(*ffn->as_object(), path + "ffn.");
  const bool no_ffn = f.flag_or("no_op", false);
  block.ffn_linear = f.flag_or("replace_with_linear", false);
  if (!no_ffn && !block.ffn_linear) block.ffn_mult = f.number_or("ffn_mult", 0, 1e-3, 1e3);
  f.known({"ffn_mult", "sparsify"});
  if (f.has("sparsify")) f.wrong("sparsify", "null");
  for (Keys* part : {&outer, &a, &f}) keys.finish_part(*part, "nemotron-nas");
  return block;
}

// The size that a multiplier stands for: two thirds of mult * hidden_size twice, rounded up to a multiple of 256
// (modeling_decilm.py of the model repositories).
std::uint64_t deci_intermediate(double mult, std::uint64_t hidden) {
  const auto size = static_cast<std::uint64_t>(2 * mult * static_cast<double>(hidden) / 3);
  return std::max<std::uint64_t>(256, (size + 255) / 256 * 256);
}

}  // namespace

void read_nemotron_nas(Keys& keys, Builder& builder) {
  read_shape(keys, builder);
  builder.model.assumptions.clear();  // kv heads are the blocks'
  Shape& s = builder.model.shape;
  keys.known({"hidden_act", "intermediate_size", "attention_bias", "mlp_bias"});
  if (keys.flag_or("attention_bias", false)) keys.wrong("attention_bias", "false");
  if (keys.flag_or("mlp_bias", false)) keys.wrong("mlp_bias", "false");
  const base::json::Array* blocks = keys.objects("block_configs", kBlocksMax);
  if (blocks == nullptr || blocks->size() != s.blocks) {
    keys.fail(keys.path("block_configs") + ": expected a list of num_hidden_layers " + std::to_string(s.blocks));
    return;
  }
  add_embedding(builder);
  for (std::size_t i = 0; i < blocks->size() && keys.ok(); ++i) {
    const DeciBlock block = read_deci_block(keys, (*blocks)[i], i);
    if (block.heads_in_group > 0) {
      if (s.heads % block.heads_in_group != 0) keys.fail(keys.path("block_configs") + "[" + std::to_string(i) + "].attention.n_heads_in_group: expected a divisor of num_attention_heads");
      AttentionShape a = attention_of(s, {}, 1);
      a.kv_heads = std::max<std::uint64_t>(1, s.heads / block.heads_in_group);
      s.kv_heads = a.kv_heads;
      builder.add(attention_layer(a));
    } else if (block.attention_linear) {
      builder.add(linear_layer(s.hidden_size, {1, s.hidden_size}));
    }
    if (block.ffn_mult > 0) {
      s.intermediate_size = std::max(s.intermediate_size, deci_intermediate(block.ffn_mult, s.hidden_size));
      builder.add(mlp_layer(mlp_of(s, deci_intermediate(block.ffn_mult, s.hidden_size), true, 1)));
    } else if (block.ffn_linear) {
      builder.add(linear_layer(s.hidden_size, {1, s.hidden_size}));
    }
  }
  add_head(builder);
}

}  // namespace flopsight::flops
