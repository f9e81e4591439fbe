#include "flops/family_internal.h"

#include <algorithm>

namespace flopsight::flops {

namespace {

// Equal for equal layers, whatever their counts.
std::uint64_t fingerprint(const Layer& layer) {
  std::uint64_t print = static_cast<std::uint64_t>(layer.kind) * 8 + static_cast<std::uint64_t>(layer.section);
  for (const Matmul& m : layer.matmuls) print = (print * 1'000'003 + m.in) * 1'000'003 + m.out;
  return print;
}

}  // namespace

Layer* Builder::find(const Layer& layer) {
  const auto alike = alike_.find(fingerprint(layer));
  if (alike == alike_.end()) return nullptr;
  for (const std::uint32_t index : alike->second) {
    Layer& other = model.layers[index];
    Layer counted = layer;
    counted.executed = other.executed;
    counted.stored = other.stored;
    if (other == counted) return &other;
  }
  return nullptr;
}

void Builder::add(Layer layer, Section section) {
  layer.section = section;
  Layer* same = find(layer);
  if (same == nullptr) {
    alike_[fingerprint(layer)].push_back(static_cast<std::uint32_t>(model.layers.size()));
    model.layers.push_back(std::move(layer));
    same = &model.layers.back();
  } else {
    ++same->executed;
    ++same->stored;
  }
  if (section == Section::kText || section == Section::kEncoder) {
    model.order.push_back(static_cast<std::uint32_t>(same - model.layers.data()));
  }
}

void Builder::run_again(const Layer& layer, Section section) {
  Layer again = layer;
  again.section = section;
  add(again, section);
  --find(again)->stored;
}

void Builder::assume(std::string line) { model.assumptions.push_back(std::move(line)); }

void read_shape(Keys& keys, Builder& builder, const TextDefaults& defaults) {
  Shape& s = builder.model.shape;
  s.hidden_size = keys.count_or_class("hidden_size", defaults.hidden_size);
  s.blocks = keys.count_or_class("num_hidden_layers", defaults.blocks, kBlocksMax);
  s.heads = keys.count_or_class("num_attention_heads", defaults.heads);
  s.vocab_size = keys.count_or_class("vocab_size", defaults.vocab_size);
  s.positions_max = keys.count_or("max_position_embeddings", 0, std::uint64_t{1} << 32);
  s.tied = keys.flag_or("tie_word_embeddings", defaults.tied);
  s.kv_heads = defaults.kv_heads > 0 ? keys.count_or_class("num_key_value_heads", defaults.kv_heads) : keys.count_or("num_key_value_heads", s.heads);
  if (!keys.has("num_key_value_heads") && defaults.kv_heads == 0) builder.assume("num_key_value_heads is not given: as many as num_attention_heads");
  s.head_dim = keys.count_or("head_dim", defaults.head_dim);
  if (s.head_dim == 0) {
    if (s.hidden_size % s.heads != 0) keys.wrong("num_attention_heads", "a divisor of hidden_size " + std::to_string(s.hidden_size) + ", as there is no head_dim");
    s.head_dim = std::max<std::uint64_t>(1, s.hidden_size / s.heads);
  }
  if (s.heads % s.kv_heads != 0) keys.wrong("num_key_value_heads", "a divisor of num_attention_heads " + std::to_string(s.heads));
}

std::vector<std::string> read_layer_types(Keys& keys, std::uint64_t blocks) {
  std::vector<std::string> types = keys.texts("layer_types", kBlocksMax);
  if (!types.empty() && types.size() != blocks) {
    keys.fail(keys.path("layer_types") + ": " + std::to_string(types.size()) + " entries, expected num_hidden_layers " + std::to_string(blocks));
    types.resize(blocks);
  }
  return types;
}

std::vector<MaskOfBlock> masks_of_types(Keys& keys, const std::vector<std::string>& types, std::uint64_t window, std::uint64_t chunk) {
  std::vector<MaskOfBlock> masks;
  for (const std::string& type : types) {
    const bool sliding = type == "sliding_attention", chunked = type == "chunked_attention";
    if (!sliding && !chunked && type != "full_attention" && type != "linear_attention") {
      keys.wrong("layer_types", "full_attention, sliding_attention, chunked_attention or linear_attention in each place");
    }
    if (sliding && window == 0) keys.wrong("sliding_window", "a whole number, as layer_types names sliding_attention");
    if (chunked && chunk == 0) keys.wrong("attention_chunk_size", "a whole number, as layer_types names chunked_attention");
    masks.push_back(sliding   ? MaskOfBlock{Mask::kWindow, window}
                    : chunked ? MaskOfBlock{Mask::kChunk, chunk}
                              : MaskOfBlock{});
  }
  return masks;
}

std::vector<MaskOfBlock> same_masks(std::uint64_t blocks, MaskOfBlock mask) { return std::vector<MaskOfBlock>(blocks, mask); }

AttentionShape attention_of(const Shape& shape, const MaskOfBlock& mask, std::uint64_t norms, std::uint64_t vectors_each) {
  AttentionShape a;
  a.hidden = shape.hidden_size;
  a.heads = shape.heads;
  a.kv_heads = shape.kv_heads;
  a.head_dim = shape.head_dim;
  a.mask = mask.mask;
  a.span = mask.span;
  a.norms = {norms, shape.hidden_size, vectors_each};
  return a;
}

MlpShape mlp_of(const Shape& shape, std::uint64_t intermediate, bool gated, std::uint64_t norms, std::uint64_t vectors_each) {
  MlpShape m;
  m.hidden = shape.hidden_size;
  m.intermediate = intermediate;
  m.gated = gated;
  m.norms = {norms, shape.hidden_size, vectors_each};
  return m;
}

void split_width(Keys& keys, std::string_view heads_key, Shape& shape) {
  if (shape.hidden_size % shape.heads != 0) keys.wrong(heads_key, "a divisor of the width " + std::to_string(shape.hidden_size));
  shape.head_dim = std::max<std::uint64_t>(1, shape.hidden_size / shape.heads);
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
}

void read_gpt_sizes(Keys& keys, Shape& shape, bool tied) {
  shape.hidden_size = keys.count("n_embd");
  shape.blocks = keys.count("n_layer", kBlocksMax);
  shape.heads = keys.count("n_head");
  shape.vocab_size = keys.count("vocab_size");
  shape.positions_max = keys.count("n_positions");
  shape.intermediate_size = keys.count_or("n_inner", 4 * shape.hidden_size);
  shape.tied = keys.flag_or("tie_word_embeddings", tied);
  keys.known({"activation_function", "n_ctx", "reorder_and_upcast_attn"});
}

void qwen3_words(Keys& keys) {
  keys.off({"qkv_bias"});
  if (!keys.flag_or("use_qk_norm", true)) keys.wrong("use_qk_norm", "true");
}

void check_top_k(Keys& keys, std::string_view key, const MoeShape& moe, std::string_view experts) {
  if (moe.top_k > moe.experts) keys.wrong(key, "at most " + std::string(experts) + " " + std::to_string(moe.experts));
}

void add_embedding(Builder& builder, std::uint64_t positions) {
  const Shape& s = builder.model.shape;
  builder.add(embedding_layer(s.vocab_size, s.hidden_size, positions));
}

void add_head(Builder& builder, std::uint64_t vectors_each, bool bias) {
  const std::uint64_t width = builder.model.shape.hidden_size;
  add_output(builder, width, {1, width, vectors_each}, bias);
}

void add_prediction(Keys& keys, Builder& builder, const std::vector<Layer>& layers, std::string_view key) {
  const Shape& s = builder.model.shape;
  builder.model.prediction_steps = keys.count_or(key, 0, 64, 0);
  if (builder.output.kind != Output::Kind::kVocabulary && builder.model.prediction_steps > 0) {
    builder.assume(builder.output.architecture + " predicts no tokens: without the modules of " + keys.path(key));
    builder.model.prediction_steps = 0;
  }
  builder.model.prediction_steps_max = builder.model.prediction_steps;
  for (std::uint64_t step = 0; step < builder.model.prediction_steps; ++step) {
    builder.add(prediction_layer(s.hidden_size, {3, s.hidden_size}), Section::kPrediction);  // of both inputs, and before the head
    for (const Layer& layer : layers) builder.add(layer, Section::kPrediction);
    builder.add(head_layer(s.hidden_size, s.vocab_size, true, {}), Section::kPrediction);
  }
}

}  // namespace flopsight::flops
