#pragma once
// What is counted, and how. The defaults are the audit's convention; every other convention, and every known mistake,
// is a set of these, applied to the same layers. So a wrong count comes from the same records as the right one, and
// differs from it in what it says here and in nothing else.
//
// Two kinds: rules of counting (which keys, which parts), which count.h follows; and mistakes about the model,
// which with_mistakes() turns into the model that the counter believed to see. count.h applies both.
// Threads: pure.

#include <cstdint>
#include <optional>

#include "flops/layer.h"

namespace flopsight::flops {

// Keys of a causal query, in the mean.
enum class CausalRule : std::uint8_t {
  kExact,  // (s+1)/2
  kHalf,   // s/2
  kFull,   // s: the mask is not taken into account
  kNone,   // attention cores are left out
};

enum class WindowRule : std::uint8_t {
  kExact,    // (W * causal(W) + (s - W) * W) / s, with the causal rule; a chunk: causal within each
  kWidth,    // min(window, s): early queries are not taken into account
  kHalved,   // min(window, s)/2
  kIgnored,  // as if it attended to all
};

enum class ExpertRule : std::uint8_t { kTopK, kAll, kOne };

enum class MatrixRule : std::uint8_t {
  kAsBuilt,
  kThree,          // every feed-forward layer has a gate
  kTwo,            // none has
  kTwoOfFourHidden,  // two matrices of hidden_size x 4*hidden_size, whatever the configuration says; dense layers only
};

enum class RecurrentRule : std::uint8_t {
  kChunked,  // what a chunked kernel executes: 2QNG + 2Qd + 4Nd for Mamba-2, 8*heads*d_k*d_v for the delta rule
  kMegatron,  // 7Nd for Mamba-2, without its convolution
  kNone,
};

struct CountingRules {
  CausalRule causal = CausalRule::kExact;
  WindowRule window = WindowRule::kExact;
  RecurrentRule recurrence = RecurrentRule::kChunked;
  bool count_embedding = false;  // 2*vocab*hidden for the lookup
  bool count_head = true;
  bool count_router = true;
  bool count_shared_gate = true;  // the one column that weighs a shared expert
  bool count_convolution = true;
  bool count_output_gate = true;
  bool count_indexer = true;
  // Latent attention as decoding does it: queries and values meet the latent itself, 2*heads*(2*latent + rope) for each key
  // instead of 2*heads*(d_qk + d_v). The projections cost the same for the token that is decoded.
  bool absorb_latent_attention = false;

  ExpertRule experts = ExpertRule::kTopK;
  MatrixRule matrices = MatrixRule::kAsBuilt;
  bool matrices_dense_only = false;  // `matrices` for dense and shared layers, not for routed experts
  bool ignore_moe_layers = false;
  bool ignore_shared_experts = false;
  bool ignore_latent = false;  // routed experts at hidden_size, no latent projections
  bool experts_at_intermediate_size = false;  // experts as wide as a dense layer
  bool recurrent_width_twice_hidden = false;  // Mamba's inner width taken as 2*hidden_size
  bool kv_heads_as_heads = false;             // grouped queries not taken into account
  bool head_dim_from_hidden = false;          // hidden_size/heads
  std::optional<std::uint64_t> latent_attention_as_head_dim;  // MLA as ordinary attention with this head size; 0: hidden_size/heads
  bool hybrid_as_attention = false;            // every block has attention and a feed-forward layer
  bool recurrent_layers_as_attention = false;  // recurrent layers have attention instead
  bool every_feed_forward_moe = false;         // dense feed-forward layers of a model with experts taken for such with experts
  bool shared_layers_once = false;             // a layer that runs more often than it is stored, counted as often as it is stored
  bool frozen_as_trained = false;              // every weight is trained (adapters taken for full fine-tuning)
  std::uint64_t vocab_multiple = 1;            // vocabulary padded to a multiple

  bool operator==(const CountingRules&) const = default;
  // Whether with_mistakes() has anything to change, and these rules without that.
  bool has_mistakes() const;
  CountingRules without_mistakes() const;
};

// The model that a counter with these rules believed to see. A mistake that cannot be made with the model leaves it as it is:
// compare counts to see whether it changes anything.
Model with_mistakes(const Model& model, const CountingRules& rules);

}  // namespace flopsight::flops
