#pragma once
// What the readers of model families share: the model under construction and the sizes that nearly all have.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flops/config_keys_internal.h"
#include "flops/layer.h"
#include "flops/layer_kinds.h"

namespace flopsight::flops {

// What comes behind the blocks, as `architectures` names the class that is trained: the same configuration is that of a language model, of an
// embedding model and of a reward model.
struct Output {
  enum class Kind : std::uint8_t {
    kVocabulary,    // or nothing is said: what the family is published with
    kNone,          // the hidden states
    kEncoder,       // the same of the encoder alone, of a family that has a decoder
    kLabels,        // a matrix of hidden_size x labels, on every token
    kRewardLayers,  // a matrix of hidden_size x hidden_size before it, both with biases
  };
  Kind kind = Kind::kVocabulary;
  std::string architecture;  // empty: nothing is said
  std::string labels_from;   // how their number is known
  std::uint64_t labels = 0;
  bool bias = false;
  bool of_sequence = false;  // one set of labels for a sequence
};
base::Result<Output> read_output(const base::json::Value& config);

class Builder {
 public:
  Model model;
  Output output;
  bool pools = false;  // the family computes labels of a sequence from one token, not from all

  // In order of execution; like layers become one record.
  void add(Layer layer, Section section = Section::kText);
  // Executed once more, stored no more (shared weights).
  void run_again(const Layer& layer, Section section = Section::kText);
  void assume(std::string line);

 private:
  Layer* find(const Layer& layer);

  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> alike_;  // layers by their fingerprint: there may be 10,000 kinds
};

struct TextDefaults {
  std::uint64_t head_dim = 0;  // where the key is not there; 0: hidden_size / num_attention_heads
  bool tied = false;
  // Of the model's class, for families whose configurations leave them out; 0: the key must be there.
  std::uint64_t hidden_size = 0;
  std::uint64_t blocks = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t vocab_size = 0;
};

// Reads hidden_size, num_hidden_layers, heads, head_dim, vocab_size, max_position_embeddings, tie_word_embeddings into model.shape.
void read_shape(Keys& keys, Builder& builder, const TextDefaults& defaults = {});

// One mask for each block, and its span.
struct MaskOfBlock {
  Mask mask = Mask::kCausal;
  std::uint64_t span = 0;
};

// From layer_types ("full_attention", "sliding_attention", "chunked_attention", "linear_attention"), if it is there; its length
// must be the number of blocks.
std::vector<std::string> read_layer_types(Keys& keys, std::uint64_t blocks);
std::vector<MaskOfBlock> masks_of_types(Keys& keys, const std::vector<std::string>& types, std::uint64_t window, std::uint64_t chunk);
std::vector<MaskOfBlock> same_masks(std::uint64_t blocks, MaskOfBlock mask = {});

// Attention with the sizes of model.shape and the given norms of `width` hidden_size.
AttentionShape attention_of(const Shape& shape, const MaskOfBlock& mask, std::uint64_t norms, std::uint64_t vectors_each = 1);
MlpShape mlp_of(const Shape& shape, std::uint64_t intermediate, bool gated, std::uint64_t norms, std::uint64_t vectors_each = 1);

// The size of a head from the width, and as many heads of keys as of queries where the configuration says nothing else.
void split_width(Keys& keys, std::string_view heads_key, Shape& shape);
// GPT-2's names of the sizes, and its keys that change nothing; `tied` where tie_word_embeddings is missing.
void read_gpt_sizes(Keys& keys, Shape& shape, bool tied);

// What some configurations of Qwen 3 say besides: it has no biases of queries, keys and values alone, and always norms of queries and keys.
void qwen3_words(Keys& keys);

// No token goes to more experts than there are; `experts` is how the message calls their number, as the key of it.
void check_top_k(Keys& keys, std::string_view key, const MoeShape& moe, std::string_view experts = "the number of experts,");

// Embedding before the blocks, final norm and head after.
void add_embedding(Builder& builder, std::uint64_t positions = 0);
void add_head(Builder& builder, std::uint64_t vectors_each = 1, bool bias = false);
// What is in the place of the head over the vocabulary, or that head, behind `width` values; `bias` is that head's.
void add_output(Builder& builder, std::uint64_t width, Norms norms, bool bias = false);

// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437): for each of the steps that `key` says, the projection that joins, these layers,
// and another pass through the head; the embedding and the head are the model's.
void add_prediction(Keys& keys, Builder& builder, const std::vector<Layer>& layers, std::string_view key = "num_nextn_predict_layers");

// A family's reader fills the builder from the object that describes the language model.
using ReadText = void (*)(Keys& keys, Builder& builder);
struct Family {
  std::string_view model_type;
  ReadText read = nullptr;
  std::string_view note;  // for the documentation: what the family is
};
const Family* find_family(std::string_view model_type);

// Dense transformers.
void read_llama(Keys& keys, Builder& builder);
void read_granite(Keys& keys, Builder& builder);
void read_ernie4_5(Keys& keys, Builder& builder);
void read_exaone4(Keys& keys, Builder& builder);
void read_smollm3(Keys& keys, Builder& builder);
void read_mistral(Keys& keys, Builder& builder);
void read_qwen2(Keys& keys, Builder& builder);
void read_qwen3(Keys& keys, Builder& builder);
void read_gemma(Keys& keys, Builder& builder);
void read_gemma2(Keys& keys, Builder& builder);
void read_gemma3(Keys& keys, Builder& builder);
void read_gemma4(Keys& keys, Builder& builder);
void read_glm4(Keys& keys, Builder& builder);
void read_phi3(Keys& keys, Builder& builder);
void read_olmo2(Keys& keys, Builder& builder);
void read_seed_oss(Keys& keys, Builder& builder);
void read_starcoder2(Keys& keys, Builder& builder);
void read_nemotron(Keys& keys, Builder& builder);
void read_nemotron_nas(Keys& keys, Builder& builder);
void read_gpt2(Keys& keys, Builder& builder);
void read_gpt_neox(Keys& keys, Builder& builder);
void read_mpt(Keys& keys, Builder& builder);
void read_internlm2(Keys& keys, Builder& builder);
void read_internlm3(Keys& keys, Builder& builder);
void read_chatglm(Keys& keys, Builder& builder);
void read_olmo(Keys& keys, Builder& builder);
void read_qwen(Keys& keys, Builder& builder);
void read_baichuan(Keys& keys, Builder& builder);
// With LayerNorm.
void read_opt(Keys& keys, Builder& builder);
void read_bloom(Keys& keys, Builder& builder);
void read_falcon(Keys& keys, Builder& builder);
void read_bert(Keys& keys, Builder& builder);
void read_gptj(Keys& keys, Builder& builder);
void read_gpt_bigcode(Keys& keys, Builder& builder);
void read_phi(Keys& keys, Builder& builder);
void read_stablelm(Keys& keys, Builder& builder);
void read_cohere(Keys& keys, Builder& builder);
void read_cohere2(Keys& keys, Builder& builder);
// Mixtures of experts.
void read_mixtral(Keys& keys, Builder& builder);
void read_granite_moe(Keys& keys, Builder& builder);
void read_olmoe(Keys& keys, Builder& builder);
void read_minimax_01(Keys& keys, Builder& builder);
void read_minimax_m2(Keys& keys, Builder& builder);
void read_glm4_moe(Keys& keys, Builder& builder);
void read_qwen2_moe(Keys& keys, Builder& builder);
void read_qwen3_moe(Keys& keys, Builder& builder);
void read_llama4(Keys& keys, Builder& builder);
void read_gpt_oss(Keys& keys, Builder& builder);
void read_dbrx(Keys& keys, Builder& builder);
void read_phimoe(Keys& keys, Builder& builder);
// Latent attention.
void read_deepseek_v2(Keys& keys, Builder& builder);
void read_deepseek_v3(Keys& keys, Builder& builder);
void read_deepseek_v32(Keys& keys, Builder& builder);
void read_glm_moe_dsa(Keys& keys, Builder& builder);
// Hybrids and recurrent models.
void read_qwen3_next(Keys& keys, Builder& builder);
void read_kimi_linear(Keys& keys, Builder& builder);
void read_nemotron_h(Keys& keys, Builder& builder);
void read_granite_hybrid(Keys& keys, Builder& builder);
void read_falcon_h1(Keys& keys, Builder& builder);
void read_jamba(Keys& keys, Builder& builder);
void read_mamba(Keys& keys, Builder& builder);
void read_mamba2(Keys& keys, Builder& builder);
void read_zamba2(Keys& keys, Builder& builder);
// Encoder and decoder.
void read_t5(Keys& keys, Builder& builder);
void read_bart(Keys& keys, Builder& builder);
// Of CLIP: the text tower.
void read_clip_text(Keys& keys, Builder& builder);
// Towers.
// False for a tower that is not known. `outer` has the keys of the whole configuration.
bool read_vision(Keys& keys, Keys& outer, std::string_view model_type, Builder& builder);

}  // namespace flopsight::flops
