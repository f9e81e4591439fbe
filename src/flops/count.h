#pragma once
// Sums over the layers of a model: parameters, FLOPs per token, cache, weights. What to count, and how, are CountingRules
// (rules.h); the defaults are the audit's convention:
//
//   forward = 2 * (weights a token is multiplied with, LM head and router included, the embedding lookup not)
//           + attention core over the keys that the mask leaves + recurrent core and convolution
//   train   = forward + gradients of inputs + gradients of trained weights: 3 * forward where all is trained
//
// FLOPs per token are exact in a double up to 2^53. Threads: pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "flops/layer.h"
#include "flops/rules.h"

namespace flopsight::flops {

// What FLOPs are spent on.
enum class Part : std::uint8_t {
  kAttentionProjection,
  kAttentionCore,
  kIndexer,  // of sparse attention: projections and scores
  kFeedForward,
  kRoutedExperts,
  kSharedExperts,
  kLatentProjection,  // of latent experts
  kRouter,
  kRecurrentProjection,
  kRecurrentCore,  // chunked, on tensor cores
  kScan,           // Mamba-1's, on CUDA cores
  kConvolution,    // on CUDA cores
  kHead,
  kPredictionProjection,
  kEmbedding,  // 0 by the audit's convention: a lookup
  kVision,     // patch embedding and projector
  kAdapter,
};
inline constexpr std::size_t kPartCount = 17;
std::string_view part_name(Part part);
// False for what a tensor-pipe counter cannot see.
bool on_tensor_cores(Part part);
// Linear layers inside blocks: what FP8 recipes run in FP8 (attention cores, router, head and embedding stay in BF16).
bool is_block_linear(Part part);

struct Cost {
  std::array<double, kPartCount> flops{};

  double of(Part part) const { return flops[static_cast<std::size_t>(part)]; }
  double total() const;
  Cost& operator+=(const Cost& other);
};

// The sequences that are trained on.
struct Sequence {
  std::uint64_t tokens = 4096;
  // Packed documents inside a sequence, in tokens, which do not see each other; empty: one document.
  std::vector<std::uint64_t> documents;
  std::uint64_t source_tokens = 0;  // encoder-decoder: of the source; 0: as many as `tokens`
};

struct Workload {
  Sequence sequence;
  std::uint64_t prediction_steps = 0;  // multi-token prediction steps that are trained
};

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  // the attention core (Korthikanti et al. 2022, arXiv 2205.05198)
  kFull,       // every block; the head is outside
};

// Mean number of keys that a query of a sequence sees under a mask.
//   causal (s+1)/2; window W <= s: W - W(W-1)/(2s); chunk c: the mean of (i mod c)+1; top-k like a window of k;
//   documents: the mean over their tokens. Whether it is exact, s/2 or s is the rules'.
double mean_context(const AttentionCore& core, const Sequence& sequence, const CountingRules& rules);

// One run of one layer on one of its tokens. Of a prediction layer: one step.
Cost layer_forward(const Layer& layer, const Sequence& sequence, const CountingRules& rules);
Cost layer_train(const Layer& layer, const Sequence& sequence, const CountingRules& rules);

// Per token of text; without the vision tower. An encoder counts with source_tokens/tokens runs a token.
Cost forward_cost(const Model& model, const Workload& workload, const CountingRules& rules = {});
Cost train_cost(const Model& model, const Workload& workload, const CountingRules& rules = {});

// What a GPU executes beyond the model's FLOPs of training, in the same parts: blocks run forward again, and an attention
// kernel that rebuilds the scores in its backward pass (2.5 instead of 2 forward passes: Dao et al. 2022, arXiv 2205.14135).
struct Execution {
  Recompute recompute = Recompute::kNone;
  bool attention_backward_rebuilds = false;
};
Cost executed_cost(const Model& model, const Workload& workload, const Execution& execution,
                   const CountingRules& rules = {});

// The tower on model.vision's image; nothing for a model without one.
Cost vision_forward_per_image(const Model& model, const CountingRules& rules = {});

struct Parameters {
  std::uint64_t total = 0;      // text and vision, without prediction modules
  std::uint64_t active = 0;     // of the language model, that a token goes through, embeddings included
  std::uint64_t embedding = 0;  // the table of input tokens
  std::uint64_t position = 0;   // the table of positions, part of total
  std::uint64_t vision = 0;     // part of total
  std::uint64_t prediction = 0; // beside total: of the checkpoint's multi-token prediction modules
  std::uint64_t text() const { return total - vision; }
};
Parameters count_parameters(const Model& model);
// Of one stored copy.
std::uint64_t layer_parameters(const Layer& layer);
std::uint64_t layer_parameters_active(const Layer& layer);

// Weights that a token is multiplied with, the head included: W of forward = 2W + cores.
std::uint64_t matmul_weights_active(const Model& model);

struct Cache {
  std::uint64_t elements_per_token = 0;         // of all attention layers
  std::uint64_t elements_per_token_growing = 0;  // of those without a window or chunk: what a long sequence adds
  std::uint64_t state_elements_per_sequence = 0;  // recurrent and convolution states, whatever the length
};
Cache count_cache(const Model& model);

}  // namespace flopsight::flops
