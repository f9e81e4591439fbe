// Vision towers beside a language model. A token of these layers is a patch; nothing is masked.
#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {
namespace {

struct Tower {
  std::uint64_t hidden = 0;
  std::uint64_t blocks = 0;
  std::uint64_t heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t intermediate = 0;
  bool gated = false;
  bool bias = true;
  std::uint64_t norms = 1;         // in each of the two sub-layers
  std::uint64_t vectors_each = 2;  // LayerNorm
  std::uint64_t query_key_norm = 0;
};

void add_tower(Builder& builder, const Tower& t) {
  AttentionShape a;
  a.hidden = t.hidden;
  a.heads = a.kv_heads = t.heads;
  a.head_dim = t.head_dim;
  a.mask = Mask::kBidirectional;
  a.bias_qkv = a.bias_out = t.bias;
  a.query_norm = a.key_norm = t.query_key_norm;
  a.norms = {t.norms, t.hidden, t.vectors_each};
  MlpShape m;
  m.hidden = t.hidden;
  m.intermediate = t.intermediate;
  m.gated = t.gated;
  m.bias = t.bias;
  m.norms = a.norms;
  for (std::uint64_t i = 0; i < t.blocks; ++i) {
    builder.add(attention_layer(a), Section::kVision);
    builder.add(mlp_layer(m), Section::kVision);
  }
}

// Two linear layers on `merged` patches put side by side, with a LayerNorm of `norm` elements before.
Layer merger(std::uint64_t width, std::uint64_t out, std::uint64_t merged, std::uint64_t norm) {
  Layer layer = patch_layer(0, 0, false, 0);
  layer.kind = LayerKind::kProjector;
  layer.tokens_per_run = merged;
  layer.matmuls.clear();
  Matmul first;
  first.operation = Operation::kProjector;
  first.in = first.out = width * merged;
  Matmul second = first;
  second.out = out;
  layer.matmuls = {first, second};
  layer.vectors = {{Extra::kBias, width * merged + out}, {Extra::kNorm, 2 * norm}};
  return layer;
}

// Qwen3-VL and Qwen3.5: patches of two frames, learned positions, a merger of 2 x 2 patches at the end and after the layers that
// deepstack_visual_indexes names.
void read_qwen3_vision(Keys& keys, Builder& builder) {
  Tower t;
  t.hidden = keys.count("hidden_size");
  t.blocks = keys.count("depth", kBlocksMax);
  t.heads = keys.count("num_heads");
  if (t.hidden % t.heads != 0) keys.wrong("num_heads", "a divisor of hidden_size " + std::to_string(t.hidden));
  t.head_dim = std::max<std::uint64_t>(1, t.hidden / t.heads);
  t.intermediate = keys.count("intermediate_size");
  const std::uint64_t patch = keys.count("patch_size", 4096), frames = keys.count_or("temporal_patch_size", 2, 64);
  const std::uint64_t pixels = keys.count_or("in_channels", 3, 64) * patch * patch * frames;
  const std::uint64_t side = keys.count_or("spatial_merge_size", 2, 64);
  const std::uint64_t positions = keys.count("num_position_embeddings");
  const std::uint64_t out = keys.count("out_hidden_size");
  keys.known({"hidden_act", "model_type"});
  if (out != builder.model.shape.hidden_size) keys.wrong("out_hidden_size", "hidden_size of the language model " + std::to_string(builder.model.shape.hidden_size));
  builder.add(patch_layer(pixels, t.hidden, true, positions), Section::kVision);
  add_tower(builder, t);
  builder.add(merger(t.hidden, out, side * side, t.hidden), Section::kVision);
  for (const std::uint64_t index : keys.counts("deepstack_visual_indexes", kBlocksMax)) {
    if (index >= t.blocks) keys.wrong("deepstack_visual_indexes", "numbers below depth " + std::to_string(t.blocks));
    builder.add(merger(t.hidden, out, side * side, t.hidden * side * side), Section::kVision);
  }
  builder.model.vision = VisionInput{positions, positions / (side * side), std::to_string(positions) + " patches of " + std::to_string(patch) + " x " + std::to_string(patch) + " pixels (num_position_embeddings)"};
}

void read_gemma4_vision(Keys& keys, Builder& builder) {
  Tower t;
  t.hidden = keys.count("hidden_size");
  t.blocks = keys.count("num_hidden_layers", kBlocksMax);
  t.heads = keys.count("num_attention_heads");
  t.head_dim = keys.count("head_dim");
  t.intermediate = keys.count("intermediate_size");
  t.gated = true;
  t.bias = keys.flag_or("attention_bias", false);
  t.norms = 2;
  t.vectors_each = 1;
  t.query_key_norm = t.head_dim;
  if (keys.count_or("num_key_value_heads", t.heads) != t.heads) keys.wrong("num_key_value_heads", "num_attention_heads");
  if (keys.flag_or("use_clipped_linears", false)) keys.wrong("use_clipped_linears", "false");
  const std::uint64_t patch = keys.count("patch_size", 4096);
  const std::uint64_t side = keys.count("pooling_kernel_size", 64);
  const std::uint64_t positions = keys.count("position_embedding_size");
  const std::uint64_t tokens = keys.count_or("default_output_length", 280);
  const bool standardize = keys.flag_or("standardize", false);
  keys.known({"hidden_activation", "global_head_dim", "max_position_embeddings", "model_type"});
  builder.add(patch_layer(3 * patch * patch, t.hidden, false, 2 * positions), Section::kVision);
  add_tower(builder, t);
  Layer projector = linear_layer(t.hidden, {});
  projector.kind = LayerKind::kProjector;
  projector.tokens_per_run = side * side;
  projector.matmuls[0].operation = Operation::kProjector;
  projector.matmuls[0].split = Split::kNone;
  projector.matmuls[0].out = builder.model.shape.hidden_size;
  if (standardize) projector.vectors.push_back({Extra::kNorm, 2 * t.hidden});
  builder.add(projector, Section::kVision);
  builder.model.vision = VisionInput{tokens * side * side, tokens, std::to_string(tokens) + " tokens (default_output_length)"};
}

}  // namespace

void read_vision(Keys& keys, std::string_view model_type, Builder& builder) {
  if (model_type == "qwen3_vl" || model_type == "qwen3_vl_moe" || model_type == "qwen3_5" || model_type == "qwen3_5_moe") {
    read_qwen3_vision(keys, builder);
  } else if (model_type == "gemma4_vision") {
    read_gemma4_vision(keys, builder);
  } else {
    keys.wrong("model_type", "qwen3_vl, qwen3_vl_moe, qwen3_5, qwen3_5_moe or gemma4_vision");
  }
}

}  // namespace flopsight::flops
