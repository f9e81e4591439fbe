// Vision towers, beside a language model or alone. A token of these layers is a patch; nothing is masked.
#include "flops/family_internal.h"

#include <algorithm>
#include <cmath>

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

void add_block(Builder& builder, const Tower& t, std::uint64_t window = 0) {
  AttentionShape a;
  a.hidden = t.hidden;
  a.heads = a.kv_heads = t.heads;
  a.head_dim = t.head_dim;
  a.mask = Mask::kBidirectional;
  a.span = window;
  a.bias_qkv = a.bias_out = t.bias;
  a.query_norm = a.key_norm = t.query_key_norm;
  a.norms = {t.norms, t.hidden, t.vectors_each};
  MlpShape m;
  m.hidden = t.hidden;
  m.intermediate = t.intermediate;
  m.gated = t.gated;
  m.bias = t.bias;
  m.norms = a.norms;
  builder.add(attention_layer(a), Section::kVision);
  builder.add(mlp_layer(m), Section::kVision);
}

void add_blocks(Builder& builder, const Tower& t) {
  for (std::uint64_t i = 0; i < t.blocks; ++i) add_block(builder, t);
}

Tower read_tower(Keys& keys, std::string_view blocks_key, std::string_view heads_key) {
  Tower t;
  t.hidden = keys.count("hidden_size");
  t.blocks = keys.count(blocks_key, kBlocksMax);
  t.heads = keys.count(heads_key);
  if (t.hidden % t.heads != 0) keys.wrong(heads_key, "a divisor of hidden_size " + std::to_string(t.hidden));
  t.head_dim = std::max<std::uint64_t>(1, t.hidden / t.heads);
  t.intermediate = keys.count("intermediate_size");
  keys.known({"hidden_act"});
  return t;
}

void add_norm(Builder& builder, std::uint64_t width) { builder.add(norm_layer({1, width, 2}), Section::kVision); }

// Matrices one after the other on `merged` patches put side by side.
struct Projector {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> matrices;  // in, out
  std::uint64_t merged = 1;
  bool bias = true;
  std::uint64_t norm_elements = 0;
};

Layer projector_layer(const Projector& p) {
  Layer layer = norm_layer({1, p.norm_elements});
  layer.kind = LayerKind::kProjector;
  layer.tokens_per_run = p.merged;
  for (const auto& [in, out] : p.matrices) {
    Matmul m;
    m.operation = Operation::kProjector;
    m.in = in;
    m.out = out;
    layer.matmuls.push_back(m);
    if (p.bias) layer.vectors.push_back({Extra::kBias, out});
  }
  return layer;
}

// The usual one of the Qwen and Kimi towers.
Layer merger(std::uint64_t width, std::uint64_t out, std::uint64_t merged, std::uint64_t norm_elements) {
  return projector_layer({{{width * merged, width * merged}, {width * merged, out}}, merged, true, norm_elements});
}

void check_out(Keys& keys, std::string_view key, std::uint64_t out, const Builder& builder) {
  const std::uint64_t hidden = builder.model.shape.hidden_size;
  if (out != hidden) keys.wrong(key, "hidden_size of the language model " + std::to_string(hidden));
}

std::string pixels_text(std::uint64_t size, std::string_view key) {
  return std::to_string(size) + " x " + std::to_string(size) + " pixels (" + std::string(key) + ")";
}

// Qwen3-VL and Qwen3.5: patches of two frames, learned positions, a merger of 2 x 2 patches at the end and after the layers that
// deepstack_visual_indexes names.
void read_qwen3_vision(Keys& keys, Builder& builder) {
  const Tower t = read_tower(keys, "depth", "num_heads");
  const std::uint64_t patch = keys.count("patch_size", 4096), frames = keys.count_or("temporal_patch_size", 2, 64);
  const std::uint64_t pixels = keys.count_or("in_channels", 3, 64) * patch * patch * frames;
  const std::uint64_t side = keys.count_or("spatial_merge_size", 2, 64);
  const std::uint64_t positions = keys.count("num_position_embeddings");
  const std::uint64_t out = keys.count("out_hidden_size");
  check_out(keys, "out_hidden_size", out, builder);
  builder.add(patch_layer(pixels, t.hidden, true, positions), Section::kVision);
  add_blocks(builder, t);
  builder.add(merger(t.hidden, out, side * side, 2 * t.hidden), Section::kVision);
  for (const std::uint64_t index : keys.counts("deepstack_visual_indexes", kBlocksMax)) {
    if (index >= t.blocks) keys.wrong("deepstack_visual_indexes", "numbers below depth " + std::to_string(t.blocks));
    builder.add(merger(t.hidden, out, side * side, 2 * t.hidden * side * side), Section::kVision);
  }
  builder.model.vision = VisionInput{positions, positions / (side * side),
                                     std::to_string(positions) + " patches of " + std::to_string(patch) + " x " + std::to_string(patch) + " pixels (num_position_embeddings)"};
}

// Qwen2-VL: no learned positions, full attention, a norm before the merger. Its hidden_size is the language model's.
void read_qwen2_vision(Keys& keys, Builder& builder) {
  Tower t;
  t.hidden = keys.count_or_class("embed_dim", 1280);
  t.blocks = keys.count_or_class("depth", 32, kBlocksMax);
  t.heads = keys.count_or_class("num_heads", 16);
  if (t.hidden % t.heads != 0) keys.wrong("num_heads", "a divisor of embed_dim " + std::to_string(t.hidden));
  t.head_dim = std::max<std::uint64_t>(1, t.hidden / t.heads);
  t.intermediate = keys.count_or_class("mlp_ratio", 4, 1024) * t.hidden;
  keys.known({"hidden_act", "spatial_patch_size", "in_channels", "in_chans"});
  const std::uint64_t patch = keys.count(keys.spelling({"patch_size", "spatial_patch_size"}), 4096), frames = keys.count_or("temporal_patch_size", 2, 64);
  const std::uint64_t pixels = keys.count_or(keys.spelling({"in_chans", "in_channels"}), 3, 64) * patch * patch * frames;
  const std::uint64_t side = keys.count_or("spatial_merge_size", 2, 64);
  const std::uint64_t out = keys.count("hidden_size");
  check_out(keys, "hidden_size", out, builder);
  builder.add(patch_layer(pixels, t.hidden, false, 0), Section::kVision);
  add_blocks(builder, t);
  builder.add(merger(t.hidden, out, side * side, 2 * t.hidden), Section::kVision);
  const std::uint64_t patches = 4096 / (side * side) * side * side;
  builder.model.vision = VisionInput{patches, patches / (side * side), "4096 patches (the configuration names no size)"};
}

// Qwen2.5-VL: no learned positions, gated feed-forward, windows but in a few blocks.
void read_qwen25_vision(Keys& keys, Builder& builder) {
  Tower t;  // the published configurations leave out what is as in Qwen2_5_VLVisionConfig of the transformers library
  t.hidden = keys.count("hidden_size");
  t.blocks = keys.count_or_class("depth", 32, kBlocksMax);
  t.heads = keys.count_or_class("num_heads", 16);
  if (t.hidden % t.heads != 0) keys.wrong("num_heads", "a divisor of hidden_size " + std::to_string(t.hidden));
  t.head_dim = std::max<std::uint64_t>(1, t.hidden / t.heads);
  t.intermediate = keys.count_or_class("intermediate_size", 3420);
  t.gated = true;
  t.vectors_each = 1;
  const std::uint64_t patch = keys.count(keys.spelling({"patch_size", "spatial_patch_size"}), 4096), frames = keys.count_or("temporal_patch_size", 2, 64);
  const std::uint64_t pixels = keys.count_or(keys.spelling({"in_chans", "in_channels"}), 3, 64) * patch * patch * frames;
  keys.known({"hidden_act", "spatial_patch_size", "tokens_per_second", "in_channels", "in_chans"});
  const std::uint64_t side = keys.count_or("spatial_merge_size", 2, 64);
  const std::uint64_t window = std::max<std::uint64_t>(1, keys.count_or_class("window_size", 112) / patch);
  const std::vector<std::uint64_t> full = keys.has("fullatt_block_indexes") ? keys.counts("fullatt_block_indexes", kBlocksMax) : std::vector<std::uint64_t>{7, 15, 23, 31};
  const std::uint64_t out = keys.count_or_class("out_hidden_size", builder.model.shape.hidden_size);
  check_out(keys, "out_hidden_size", out, builder);
  builder.add(patch_layer(pixels, t.hidden, false, 0), Section::kVision);
  for (std::uint64_t i = 0; i < t.blocks; ++i) {
    add_block(builder, t, std::find(full.begin(), full.end(), i) != full.end() ? 0 : window * window);
  }
  builder.add(merger(t.hidden, out, side * side, t.hidden), Section::kVision);
  const std::uint64_t patches = 4096 / (side * side) * side * side;
  builder.model.vision = VisionInput{patches, patches / (side * side), "4096 patches (the configuration names no size)"};
}

void read_gemma4_vision(Keys& keys, Builder& builder) {
  Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  t.head_dim = keys.count("head_dim");
  t.gated = true;
  t.bias = keys.flag_or("attention_bias", false);
  t.norms = 2;
  t.vectors_each = 1;
  t.query_key_norm = t.head_dim;
  if (keys.count_or("num_key_value_heads", t.heads) != t.heads) keys.wrong("num_key_value_heads", "num_attention_heads");
  const std::uint64_t patch = keys.count("patch_size", 4096);
  const std::uint64_t side = keys.count("pooling_kernel_size", 64);
  const std::uint64_t positions = keys.count("position_embedding_size");
  const std::uint64_t tokens = keys.count_or("default_output_length", 280);
  const bool standardize = keys.flag_or("standardize", false);
  keys.known({"hidden_activation", "global_head_dim", "max_position_embeddings", "use_clipped_linears"});  // bounds, no weights
  builder.add(patch_layer(3 * patch * patch, t.hidden, false, 2 * positions), Section::kVision);
  add_blocks(builder, t);
  builder.add(projector_layer({{{t.hidden, builder.model.shape.hidden_size}}, side * side, false, standardize ? 2 * t.hidden : 0}), Section::kVision);
  builder.model.vision = VisionInput{tokens * side * side, tokens, std::to_string(tokens) + " tokens (default_output_length)"};
}

// What image_size and patch_size make: patches, and one token more where there is a class token.
struct Grid {
  std::uint64_t side = 0;
  std::uint64_t pixels = 0;  // of a patch
  std::uint64_t image = 0;
};

Grid read_grid(Keys& keys) {
  Grid g;
  g.image = keys.count("image_size", 65536);
  const std::uint64_t patch = keys.count("patch_size", 4096);
  if (g.image % patch != 0 && g.image < patch) keys.wrong("image_size", "at least patch_size " + std::to_string(patch));
  g.side = std::max<std::uint64_t>(1, g.image / patch);
  g.pixels = keys.count_or("num_channels", 3, 64) * patch * patch;
  return g;
}

// CLIP's: a class token, norms before and after, a projection without a bias of the class token.
void read_clip_vision(Keys& keys, Keys& outer, Builder& builder) {
  const Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  const Grid g = read_grid(keys);
  const std::uint64_t tokens = g.side * g.side + 1;
  const std::uint64_t projection = outer.has("projection_dim") ? outer.count("projection_dim") : keys.count_or("projection_dim", 0);
  keys.known({"projection_dim"});
  const bool projects = builder.output.architecture != "CLIPVisionModel";
  builder.add(patch_layer(g.pixels, t.hidden, false, tokens + 1), Section::kVision);  // positions, and the class token's vector
  add_norm(builder, t.hidden);
  add_blocks(builder, t);
  add_norm(builder, t.hidden);
  if (projects && projection > 0) builder.add(projector_layer({{{t.hidden, projection}}, tokens, false, 0}), Section::kVision);
  builder.model.vision = VisionInput{tokens, 0, pixels_text(g.image, "image_size")};
}

// SigLIP's, pooled and projected by Gemma 3.
void read_siglip_vision(Keys& keys, Keys& outer, Builder& builder) {
  const Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  const Grid g = read_grid(keys);
  if (keys.flag_or("vision_use_head", false)) keys.wrong("vision_use_head", "false");
  const std::uint64_t patches = g.side * g.side;
  builder.add(patch_layer(g.pixels, t.hidden, true, patches), Section::kVision);
  add_blocks(builder, t);
  add_norm(builder, t.hidden);
  const std::uint64_t tokens = outer.has("mm_tokens_per_image") ? outer.count("mm_tokens_per_image") : 0;
  if (tokens > 0 && patches % tokens == 0) {
    builder.add(projector_layer({{{t.hidden, builder.model.shape.hidden_size}}, patches / tokens, false, t.hidden}), Section::kVision);
  }
  builder.model.vision = VisionInput{patches, tokens, pixels_text(g.image, "image_size")};
}

// Pixtral's (arXiv 2410.07073), as Mistral 3 joins it: RMSNorm, no biases, rotary positions; a norm, a merger of 2 x 2 patches, and two matrices.
void read_pixtral_vision(Keys& keys, Keys& outer, Builder& builder) {
  Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  t.head_dim = keys.count_or("head_dim", t.head_dim);
  t.gated = true;
  t.bias = false;
  t.vectors_each = 1;
  keys.known({"rope_theta"});
  const Grid g = read_grid(keys);
  const std::uint64_t side = outer.count_or("spatial_merge_size", 2, 64);
  const std::uint64_t merged = side * side, hidden = builder.model.shape.hidden_size;
  builder.add(patch_layer(g.pixels, t.hidden, false, 0), Section::kVision);
  builder.add(norm_layer({1, t.hidden, 1}), Section::kVision);
  add_blocks(builder, t);
  builder.add(projector_layer({{{t.hidden * merged, t.hidden}}, merged, false, t.hidden}), Section::kVision);
  builder.add(projector_layer({{{t.hidden, hidden}, {hidden, hidden}}, merged, outer.flag_or("multimodal_projector_bias", false), 0}), Section::kVision);
  const std::uint64_t patches = g.side * g.side / merged * merged;
  builder.model.vision = VisionInput{patches, patches / merged, pixels_text(g.image, "image_size")};
}

void read_llama4_vision(Keys& keys, Builder& builder) {
  const Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  const Grid g = read_grid(keys);
  const double ratio = keys.number_or("pixel_shuffle_ratio", 0.5, 1.0 / 64, 1);
  const auto merged = static_cast<std::uint64_t>(std::llround(1 / (ratio * ratio)));
  const std::uint64_t in = keys.count("projector_input_dim"), out = keys.count("projector_output_dim");
  const std::uint64_t last = keys.count_or("vision_output_dim", out);
  keys.known({"projector_dropout", "vision_feature_layer", "vision_feature_select_strategy", "multi_modal_projector_bias", "rope_theta"});
  if (keys.flag_or("multi_modal_projector_bias", false)) keys.wrong("multi_modal_projector_bias", "false");
  const std::uint64_t tokens = g.side * g.side + 1;
  builder.add(patch_layer(g.pixels, t.hidden, false, tokens + 1), Section::kVision);
  add_norm(builder, t.hidden);
  add_blocks(builder, t);
  add_norm(builder, t.hidden);
  builder.add(projector_layer({{{t.intermediate, in}, {out, out}, {last, builder.model.shape.hidden_size}}, merged, false, 0}), Section::kVision);
  builder.model.vision = VisionInput{tokens, g.side * g.side / merged, pixels_text(g.image, "image_size")};
}

// Kimi K2.5's.
void read_moonvit(Keys& keys, Builder& builder) {
  Tower t;
  t.hidden = keys.count("vt_hidden_size");
  t.blocks = keys.count("vt_num_hidden_layers", kBlocksMax);
  t.heads = keys.count("vt_num_attention_heads");
  if (t.hidden % t.heads != 0) keys.wrong("vt_num_attention_heads", "a divisor of vt_hidden_size");
  t.head_dim = std::max<std::uint64_t>(1, t.hidden / t.heads);
  t.intermediate = keys.count("vt_intermediate_size");
  const std::uint64_t patch = keys.count("patch_size", 4096);
  const std::uint64_t positions = keys.count("init_pos_emb_height", 4096) * keys.count("init_pos_emb_width", 4096);
  const std::vector<std::uint64_t> kernel = keys.counts("merge_kernel_size", 2);
  if (kernel.size() != 2 || std::min(kernel[0], kernel[1]) < 1 || std::max(kernel[0], kernel[1]) > 64) keys.wrong("merge_kernel_size", "two whole numbers from 1 to 64");
  const std::uint64_t merged = keys.ok() ? kernel[0] * kernel[1] : 1;
  check_out(keys, "text_hidden_size", keys.count("text_hidden_size"), builder);
  keys.known({"mm_hidden_size", "mm_projector_type", "init_pos_emb_time", "pos_emb_type", "merge_type", "projector_hidden_act", "projector_ln_eps",
              "video_attn_type", "_attn_implementation"});
  builder.add(patch_layer(3 * patch * patch, t.hidden, true, positions), Section::kVision);
  add_blocks(builder, t);
  add_norm(builder, t.hidden);
  builder.add(merger(t.hidden, builder.model.shape.hidden_size, merged, 2 * t.hidden), Section::kVision);
  builder.model.vision = VisionInput{positions, positions / merged, std::to_string(positions) + " patches (init_pos_emb_height, init_pos_emb_width)"};
}

// An image classifier: the number of its classes is that of id2label.
void read_vit(Keys& keys, Builder& builder) {
  Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  const Grid g = read_grid(keys);
  if (!keys.flag_or("qkv_bias", true)) keys.wrong("qkv_bias", "true");
  keys.known({"encoder_stride", "pooler_output_size", "pooler_act"});
  const std::uint64_t tokens = g.side * g.side + 1;
  builder.add(patch_layer(g.pixels, t.hidden, true, tokens + 1), Section::kVision);
  add_blocks(builder, t);
  add_norm(builder, t.hidden);
  const base::json::Object* labels = keys.object("id2label");
  if (labels != nullptr && builder.output.kind != Output::Kind::kNone) {
    builder.add(projector_layer({{{t.hidden, std::max<std::uint64_t>(1, labels->size())}}, tokens, true, 0}), Section::kVision);
  }
  builder.model.vision = VisionInput{tokens, 0, pixels_text(g.image, "image_size")};
}

}  // namespace

bool read_vision(Keys& keys, Keys& outer, std::string_view model_type, Builder& builder) {
  if (model_type == "qwen3_vl" || model_type == "qwen3_vl_moe" || model_type == "qwen3_5" || model_type == "qwen3_5_moe") {
    read_qwen3_vision(keys, builder);
  } else if (model_type == "qwen2_vl") {
    read_qwen2_vision(keys, builder);
  } else if (model_type == "qwen2_5_vl") {
    read_qwen25_vision(keys, builder);
  } else if (model_type == "gemma4_vision") {
    read_gemma4_vision(keys, builder);
  } else if (model_type == "clip_vision_model") {
    read_clip_vision(keys, outer, builder);
  } else if (model_type == "siglip_vision_model") {
    read_siglip_vision(keys, outer, builder);
  } else if (model_type == "llama4_vision_model") {
    read_llama4_vision(keys, builder);
  } else if (model_type == "pixtral") {
    read_pixtral_vision(keys, outer, builder);
  } else if (model_type == "moonvit") {
    read_moonvit(keys, builder);
  } else if (model_type == "vit") {
    read_vit(keys, builder);
  } else {
    return false;
  }
  return true;
}

// The text tower: a causal transformer with learned positions and a projection of one token, without a head over the vocabulary.
void read_clip_text(Keys& keys, Builder& builder) {
  Shape& s = builder.model.shape;
  const Tower t = read_tower(keys, "num_hidden_layers", "num_attention_heads");
  s.hidden_size = t.hidden;
  s.blocks = t.blocks;
  s.heads = s.kv_heads = t.heads;
  s.head_dim = t.head_dim;
  s.intermediate_size = t.intermediate;
  s.gated = false;
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count("max_position_embeddings");
  const std::uint64_t projection = keys.count_or("projection_dim", t.hidden);
  AttentionShape a = attention_of(s, {}, 1, 2);
  a.bias_qkv = a.bias_out = true;
  MlpShape m = mlp_of(s, s.intermediate_size, false, 1, 2);
  m.bias = true;
  add_embedding(builder, s.positions_max);
  for (std::uint64_t i = 0; i < s.blocks; ++i) {
    builder.add(attention_layer(a));
    builder.add(mlp_layer(m));
  }
  builder.add(norm_layer({1, s.hidden_size, 2}));
  if (builder.output.architecture == "CLIPTextModel") return;
  Layer last = projector_layer({{{s.hidden_size, projection}}, s.positions_max, false, 0});
  builder.add(last);
}

}  // namespace flopsight::flops
