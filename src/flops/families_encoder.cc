// An encoder beside a decoder. A token is one of the target; each goes with one of the source unless the sequence says otherwise.
#include "flops/family_internal.h"

#include <algorithm>

#include "base/text.h"

namespace flopsight::flops {
namespace {

struct Side {
  std::uint64_t blocks = 0;
  std::uint64_t heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t intermediate = 0;
};

struct Sides {
  std::uint64_t hidden = 0;
  Side encoder, decoder;
  bool gated = false;
  bool bias = false;
  std::uint64_t vectors_each = 1;  // of a norm
};

AttentionShape attention_of_side(const Sides& both, const Side& side, Mask mask) {
  AttentionShape a;
  a.hidden = both.hidden;
  a.heads = a.kv_heads = side.heads;
  a.head_dim = side.head_dim;
  a.mask = mask;
  a.bias_qkv = a.bias_out = both.bias;
  a.norms = {1, both.hidden, both.vectors_each};
  return a;
}

Layer feed_forward_of_side(const Sides& both, const Side& side) {
  MlpShape m;
  m.hidden = both.hidden;
  m.intermediate = side.intermediate;
  m.gated = both.gated;
  m.bias = both.bias;
  m.norms = {1, both.hidden, both.vectors_each};
  return mlp_layer(m);
}

void add_encoder(Builder& builder, const Sides& both) {
  for (std::uint64_t i = 0; i < both.encoder.blocks; ++i) {
    builder.add(attention_layer(attention_of_side(both, both.encoder, Mask::kBidirectional)), Section::kEncoder);
    builder.add(feed_forward_of_side(both, both.encoder), Section::kEncoder);
  }
}

void add_decoder(Builder& builder, const Sides& both) {
  for (std::uint64_t i = 0; i < both.decoder.blocks; ++i) {
    builder.add(attention_layer(attention_of_side(both, both.decoder, Mask::kCausal)));
    builder.add(attention_layer(attention_of_side(both, both.decoder, Mask::kSource)));
    builder.add(feed_forward_of_side(both, both.decoder));
  }
}

Layer bias_table(std::uint64_t elements) {
  Layer layer = norm_layer({1, elements});
  layer.vectors[0].kind = Extra::kPositionEmbedding;
  return layer;
}

void describe(Keys& keys, Builder& builder, const Sides& both) {
  Shape& s = builder.model.shape;
  // The encoder alone is saved with either.
  if (!keys.flag_or("is_encoder_decoder", true) && builder.output.kind != Output::Kind::kEncoder) keys.wrong("is_encoder_decoder", "true");
  const Output::Kind output = builder.output.kind;
  const bool decodes_alone = builder.output.architecture.ends_with("ForCausalLM");
  if (decodes_alone || (output != Output::Kind::kVocabulary && output != Output::Kind::kNone && output != Output::Kind::kEncoder)) {
    keys.fail("architectures: " + base::printable(builder.output.architecture, 80) + " of an encoder with a decoder is not counted, expected its model with the head over the vocabulary, without it, or its encoder");
  }
  s.hidden_size = both.hidden;
  s.blocks = both.encoder.blocks + both.decoder.blocks;
  s.heads = s.kv_heads = both.decoder.heads;
  s.head_dim = both.decoder.head_dim;
  s.intermediate_size = both.decoder.intermediate;
  s.gated = both.gated;
  if (output != Output::Kind::kEncoder) builder.assume("a token is one of the target, with one token of the source for each");
}

// Then every token of the run is one of the source, as with BERT.
void add_encoder_alone(Builder& builder, const Sides& both, std::uint64_t bias_elements) {
  builder.model.shape.blocks = both.encoder.blocks;
  builder.add(bias_table(bias_elements));
  for (std::uint64_t i = 0; i < both.encoder.blocks; ++i) {
    builder.add(attention_layer(attention_of_side(both, both.encoder, Mask::kBidirectional)));
    builder.add(feed_forward_of_side(both, both.encoder));
  }
  add_head(builder);
}

}  // namespace

void read_t5(Keys& keys, Builder& builder) {
  Sides both;
  both.hidden = keys.count("d_model");
  Side& e = both.encoder;
  e.blocks = keys.count("num_layers", kBlocksMax);
  e.heads = keys.count("num_heads");
  e.head_dim = keys.count("d_kv");
  e.intermediate = keys.count("d_ff");
  both.decoder = e;
  both.decoder.blocks = keys.count_or("num_decoder_layers", e.blocks, kBlocksMax);
  const std::string projection = keys.text_or("feed_forward_proj", "relu");
  both.gated = projection.starts_with("gated-");
  if (keys.flag_or("is_gated_act", both.gated) != both.gated) keys.wrong("is_gated_act", both.gated ? "true, as feed_forward_proj says" : "false, as feed_forward_proj says");
  keys.known({"dense_act_fn", "relative_attention_max_distance"});
  const std::uint64_t buckets = keys.count_or("relative_attention_num_buckets", 32);
  describe(keys, builder, both);
  Shape& s = builder.model.shape;
  s.vocab_size = keys.count("vocab_size");
  // Positions are relative and have no end; the first T5 say for how many they were trained.
  s.positions_max = keys.count_or("n_positions", 0);
  s.tied = keys.flag_or("tie_word_embeddings", true);
  add_embedding(builder);
  if (builder.output.kind == Output::Kind::kEncoder) return add_encoder_alone(builder, both, buckets * e.heads);
  builder.add(bias_table(buckets * e.heads), Section::kEncoder);  // of the first block, used by all
  add_encoder(builder, both);
  builder.add(norm_layer({1, both.hidden}), Section::kEncoder);
  builder.add(bias_table(buckets * e.heads));
  add_decoder(builder, both);
  add_head(builder);
}

void read_bart(Keys& keys, Builder& builder) {
  Sides both;
  both.hidden = keys.count("d_model");
  both.bias = true;
  both.vectors_each = 2;
  const auto side = [&](const std::string& name) {
    Side one;
    one.blocks = keys.count(name + "_layers", kBlocksMax);
    one.heads = keys.count(name + "_attention_heads");
    if (both.hidden % one.heads != 0) keys.wrong(name + "_attention_heads", "a divisor of d_model " + std::to_string(both.hidden));
    one.head_dim = std::max<std::uint64_t>(1, both.hidden / one.heads);
    one.intermediate = keys.count(name + "_ffn_dim");
    return one;
  };
  both.encoder = side("encoder");
  both.decoder = side("decoder");
  keys.known({"activation_function", "num_hidden_layers", "normalize_before",
              "normalize_embedding", "add_bias_logits", "add_final_layer_norm", "static_position_embeddings", "force_bos_token_to_be_generated",
              "classif_dropout", "extra_pos_embeddings", "save_step", "replacing_rate"});
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    if (keys.number_or(key, 0, 0, 1) != 0) keys.wrong(key, "0: layers that are left out in training are not counted");
  }
  for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings"}) {
    if (keys.flag_or(key, false)) keys.wrong(key, "false");
  }
  describe(keys, builder, both);
  if (builder.output.kind == Output::Kind::kEncoder) keys.fail("architectures: the encoder of BART alone is not counted");
  Shape& s = builder.model.shape;
  s.vocab_size = keys.count("vocab_size");
  s.positions_max = keys.count("max_position_embeddings");
  s.tied = keys.flag_or("tie_word_embeddings", true);
  const auto add_positions = [&](Section section) {
    Layer positions = bias_table((s.positions_max + 2) * both.hidden);  // two more than positions
    positions.vectors.push_back({Extra::kNorm, 2 * both.hidden});
    builder.add(positions, section);
  };
  add_embedding(builder);
  add_positions(Section::kEncoder);
  add_encoder(builder, both);
  add_positions(Section::kText);
  add_decoder(builder, both);
  add_output(builder, both.hidden, {});
}

}  // namespace flopsight::flops
