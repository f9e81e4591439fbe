#pragma once
// What a neural network is made of, as far as its cost goes: a list of layers, and in each layer the matrix
// products that a token goes through, the attention or recurrent core, and the other parameters. Every figure of this folder
// (parameters, FLOPs in any convention, cache, weight bytes, GEMM shapes) is a sum over these records; the layers
// themselves are made in layer_kinds.h and nowhere else.
//
// A Matmul is a weight of `in` x `out` that a token's activation row of `in` values is multiplied with: 2*in*out FLOPs
// forward, as much again for the gradient of its input, and as much again for that of the weight (two GEMMs of the same
// size for each forward one; Chowdhery et al. 2022, arXiv 2204.02311, appendix B). Norms, biases, activations, rotary
// embeddings and softmax are not counted: they do not run on tensor cores and are some per mille of the FLOPs.
//
// Threads: plain values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::flops {

// What a matrix product is for.
enum class Operation : std::uint8_t {
  kQuery, kKey, kValue, kOutputGate, kAttentionOutput,        // attention; the gate multiplies its output (Qwen3-Next)
  kQueryDown, kQueryUp, kKeyValueDown, kKeyValueUp,           // latent attention (MLA): to the latent and from it
  kIndexQuery, kIndexKey, kIndexWeights,                      // the indexer of sparse attention (DSA)
  kGate, kUp, kDown,                                          // feed-forward; kGate only where it is gated
  kRouter, kSharedGate, kLatentDown, kLatentUp,               // mixture of experts
  kRecurrentIn, kRecurrentOut,                                // Mamba, linear attention
  kRecurrentStep,                                             // Mamba-1: x_proj and dt_proj
  kRecurrentGate,                                             // delta-net: decay, write strength, low-rank gates
  kHead, kPredictionIn,                                       // vocabulary; the joining projection of an MTP module
  kLinearReplacement,                                         // one linear layer in the place of a block (DeciLM)
  kPatch, kProjector,                                         // vision: pixels in, tokens of the language model out
  kAdapterDown, kAdapterUp,                                   // low-rank adapters
};

enum class Expert : std::uint8_t { kNone, kRouted, kShared };

// What of a weight is computed in training.
enum class Training : std::uint8_t {
  kTrained,     // forward, gradient of the input, gradient of the weight
  kFrozen,      // forward and gradient of the input: something trained lies below
  kNoGradient,  // forward only: nothing trained lies below (a frozen vision tower)
};

// How tensor parallelism cuts a weight (Shoeybi et al. 2019, arXiv 1909.08053): by its outputs, by its inputs, or not.
enum class Split : std::uint8_t { kNone, kOutputs, kInputs };

struct Matmul {
  Operation operation = Operation::kQuery;
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t stored = 1;  // copies in the layer: the number of experts; 0: the weight belongs to another layer (a tied head)
  std::uint64_t active = 1;  // copies that a token goes through: top-k
  Expert expert = Expert::kNone;
  Training training = Training::kTrained;
  Split split = Split::kNone;

  bool operator==(const Matmul&) const = default;
};

// Which keys a query attends to.
enum class Mask : std::uint8_t {
  kBidirectional,  // all; or, with a span, all in its window of so many
  kCausal,         // itself and all before
  kWindow,         // the last `span`
  kChunk,          // those before it in its chunk of `span`
  kTopK,           // the `span` that an indexer chooses among those before
  kSource,         // all of another sequence (cross-attention)
};

struct AttentionCore {
  Mask mask = Mask::kCausal;
  std::uint64_t span = 0;  // tokens; of kWindow, kChunk and kTopK
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t qk_dim = 0;  // of one head
  std::uint64_t v_dim = 0;
  // Elements that a cache keeps for a token of this layer: 2*kv_heads*head_dim, or the latent of MLA, plus an indexer's
  // keys; 0 where the layer reads the cache of another one.
  std::uint64_t cache_elements = 0;
  std::uint64_t index_heads = 0;  // of the indexer, which scores every key before the query
  std::uint64_t index_dim = 0;
  std::uint64_t latent_dim = 0;  // MLA: kv_lora_rank, 0 otherwise
  std::uint64_t rope_dim = 0;    // MLA: of the shared key

  bool operator==(const AttentionCore&) const = default;
};

enum class Recurrence : std::uint8_t { kMamba1, kMamba2, kDeltaRule, kLinearAttention };

struct RecurrentCore {
  Recurrence kind = Recurrence::kMamba2;
  std::uint64_t width = 0;   // d: of the inner stream (heads * head size)
  std::uint64_t state = 0;   // N: of a Mamba channel; the key size of a head of linear attention
  std::uint64_t groups = 1;  // G: heads that share B and C
  std::uint64_t heads = 1;
  std::uint64_t chunk = 0;  // Q: tokens that a chunked kernel takes together
  std::uint64_t conv_kernel = 0;
  std::uint64_t conv_channels = 0;

  bool operator==(const RecurrentCore&) const = default;
};

// Parameters that are no matrix product of a token.
enum class Extra : std::uint8_t { kNorm, kBias, kConvolution, kState, kSink, kTokenEmbedding, kPositionEmbedding };

struct Vector {
  Extra kind = Extra::kNorm;
  std::uint64_t elements = 0;
  std::uint64_t stored = 1;  // as in Matmul
  std::uint64_t active = 1;

  bool operator==(const Vector&) const = default;
};

// In JSON by its name: "embedding", "attention", "window_attention", …
enum class LayerKind : std::uint8_t {
  kEmbedding, kAttention, kWindowAttention, kChunkedAttention, kLatentAttention, kSparseLatentAttention, kCrossAttention,
  kMlp, kMoe, kMamba1, kMamba2, kGatedDeltaNet, kKimiDeltaAttention, kLinear, kNorm, kHead, kPrediction, kPatchEmbedding, kProjector, kPerLayerInput,
  kLinearAttention,
};
std::string_view layer_kind_name(LayerKind kind);

// Where a layer runs, which says what a "token" is for it.
enum class Section : std::uint8_t {
  kText,        // the language model: every token
  kPrediction,  // a multi-token prediction module: every token, once for each step that is trained
  kEncoder,     // the encoder of an encoder-decoder: every token of the source
  kVision,      // a tower of images: every patch
};
std::string_view section_name(Section section);

struct Layer {
  LayerKind kind = LayerKind::kAttention;
  Section section = Section::kText;
  std::uint64_t executed = 0;  // times in a forward pass
  std::uint64_t stored = 0;    // times in the checkpoint; fewer than executed where weights are shared (Zamba2)
  std::uint64_t tokens_per_run = 1;  // its section's tokens that one run takes together: 4 patches merged into one token
  std::vector<Matmul> matmuls;
  std::optional<AttentionCore> attention;
  std::optional<RecurrentCore> recurrence;
  std::vector<Vector> vectors;

  bool operator==(const Layer&) const = default;
};

// Sizes as the configuration says them, for conventions and mistakes that look at these and not at the layers.
struct Shape {
  std::uint64_t hidden_size = 0;
  std::uint64_t blocks = 0;  // num_hidden_layers
  std::uint64_t heads = 0;   // 0: the model has no attention
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t intermediate_size = 0;  // of a dense feed-forward layer, 0 if the configuration has none
  std::uint64_t vocab_size = 0;
  std::uint64_t head_size = 0;  // outputs of the last matrix: vocab_size, labels, or 0 where the hidden states are the output
  std::uint64_t positions_max = 0;  // max_position_embeddings, 0 if it has none
  bool gated = true;                // the dense feed-forward layer has three matrices
  bool tied = false;                // head and embedding are one weight
};

struct VisionInput {
  std::uint64_t patches = 0;       // of the image that the figures are for
  std::uint64_t text_tokens = 0;   // that the language model sees of it
  std::string image;               // which image that is: "336 x 336 pixels (image_size)"
};

struct Model {
  std::string model_type;
  Shape shape;
  std::vector<Layer> layers;  // distinct ones, in order of first execution
  std::vector<std::uint32_t> order;  // indices into layers, in order of execution in the sections kText and kEncoder
  std::uint64_t prediction_steps = 0;  // multi-token prediction modules of the checkpoint
  // Steps that may be trained: as many as there are modules, or more where the family is known to run one again.
  std::uint64_t prediction_steps_max = 0;
  std::optional<VisionInput> vision;
  std::vector<std::string> assumptions;  // what the configuration leaves open, and how it was taken
};

}  // namespace flopsight::flops
