#pragma once
// The kinds of layers: each states its matrix products, core and other parameters once. A layer here is one sub-layer
// with its own norms (attention; feed-forward), executed and stored once; a reader of configurations counts them.
//
// Shapes and layouts are those of the reference implementations: the transformers library's modelling files for
// the named families, and for the recurrent ones Dao and Gu 2024 (arXiv 2405.21060), Gu and Dao 2023 (arXiv 2312.00752),
// Yang et al. 2024 (arXiv 2412.06464); latent attention: DeepSeek-V2 (arXiv 2405.04434); sparse attention: DeepSeek-V3.2;
// latent experts: Nemotron 3 (arXiv 2604.12374). Threads: pure.

#include <cstdint>
#include <optional>

#include "flops/layer.h"

namespace flopsight::flops {

// Norms of width `width` with `vectors_each` vectors (1: RMSNorm; 2: LayerNorm with a bias).
struct Norms {
  std::uint64_t count = 1;
  std::uint64_t width = 0;
  std::uint64_t vectors_each = 1;
};

struct AttentionShape {
  std::uint64_t hidden = 0;
  std::uint64_t out_hidden = 0;  // width that it writes to, 0: hidden
  std::uint64_t kv_hidden = 0;   // width that keys and values are made from (cross-attention), 0: hidden
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  Mask mask = Mask::kCausal;
  std::uint64_t span = 0;
  bool output_gate = false;
  bool value_is_key = false;  // one projection makes both (Gemma 4's global layers)
  bool owns_kv = true;        // false: keys and values of an earlier layer are used (Gemma 3n)
  bool bias_qkv = false;
  bool bias_out = false;
  std::uint64_t query_norm = 0;  // elements of the norm of queries, and of that of keys
  std::uint64_t key_norm = 0;
  std::uint64_t sinks = 0;
  Norms norms;
};
Layer attention_layer(const AttentionShape& shape);

struct LatentAttentionShape {
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t q_lora_rank = 0;  // 0: queries are projected directly
  std::uint64_t kv_lora_rank = 0;
  std::uint64_t qk_nope_head_dim = 0;
  std::uint64_t qk_rope_head_dim = 0;
  std::uint64_t v_head_dim = 0;
  bool bias = false;
  // Sparse attention: an indexer chooses index_topk keys; 0: dense.
  std::uint64_t index_topk = 0;
  std::uint64_t index_heads = 0;
  std::uint64_t index_dim = 0;
  bool owns_indexer = true;  // false: the choice of an earlier layer is used
  Norms norms;
};
Layer latent_attention_layer(const LatentAttentionShape& shape);

struct MlpShape {
  std::uint64_t hidden = 0;
  std::uint64_t intermediate = 0;
  bool gated = true;
  bool bias = false;
  Norms norms;
};
Layer mlp_layer(const MlpShape& shape);

struct MoeShape {
  std::uint64_t hidden = 0;
  std::uint64_t experts = 0;
  std::uint64_t top_k = 0;
  std::uint64_t expert_intermediate = 0;
  std::uint64_t latent = 0;  // width of routed experts' input and output, 0: hidden
  std::uint64_t shared_intermediate = 0;  // of all shared experts together, 0: none
  std::uint64_t dense_intermediate = 0;   // a dense feed-forward layer beside the experts (Gemma 4), 0: none
  bool gated = true;
  bool shared_gate = false;  // hidden -> 1, weighs the shared expert
  bool router_bias = false;  // added to the scores, or corrects them
  bool expert_bias = false;
  std::uint64_t router_extra = 0;  // further elements of the router (scales)
  Norms norms;
};
Layer moe_layer(const MoeShape& shape);

struct Mamba2Shape {
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t groups = 1;
  std::uint64_t state = 0;
  std::uint64_t conv_kernel = 0;
  std::uint64_t chunk = 0;
  bool bias = false;
  bool conv_bias = true;
  bool gated_norm = true;  // before the output; without it the gate alone is there
  Norms norms;
};
Layer mamba2_layer(const Mamba2Shape& shape);

struct Mamba1Shape {
  std::uint64_t hidden = 0;
  std::uint64_t inner = 0;
  std::uint64_t state = 0;
  std::uint64_t dt_rank = 0;
  std::uint64_t conv_kernel = 0;
  bool bias = false;
  bool conv_bias = true;
  bool inner_norms = false;  // Jamba's, on dt, B and C
  Norms norms;
};
Layer mamba1_layer(const Mamba1Shape& shape);

struct DeltaNetShape {
  std::uint64_t hidden = 0;
  std::uint64_t key_heads = 0;
  std::uint64_t value_heads = 0;
  std::uint64_t key_dim = 0;  // of one head
  std::uint64_t value_dim = 0;
  std::uint64_t conv_kernel = 0;
  Norms norms;
};
// Gated delta-net as in Qwen3-Next and Qwen3.5.
Layer gated_delta_net_layer(const DeltaNetShape& shape);
// Kimi delta attention: gates per channel from two low-rank projections. key_heads = value_heads, key_dim = value_dim.
Layer kimi_delta_layer(const DeltaNetShape& shape);

// Linear attention with a fixed decay for each head, a norm and an output gate (MiniMax-01, arXiv 2501.08313).
struct LightningAttentionShape {
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t head_dim = 0;
  Norms norms;
};
Layer lightning_attention_layer(const LightningAttentionShape& shape);

// One matrix, in the place of a block or between widths.
Layer linear_layer(std::uint64_t in, std::uint64_t out, Norms norms);
inline Layer linear_layer(std::uint64_t hidden, Norms norms) { return linear_layer(hidden, hidden, norms); }

Layer embedding_layer(std::uint64_t vocab, std::uint64_t width, std::uint64_t positions = 0);
Layer norm_layer(Norms norms);
// With the final norm. Tied: the weight is the embedding's.
Layer head_layer(std::uint64_t hidden, std::uint64_t vocab, bool tied, Norms norms, bool bias = false);
// What joins the hidden state and the next token's embedding in an MTP module, with its norms: 2*hidden x hidden.
Layer prediction_layer(std::uint64_t hidden, Norms norms);

// What mixes a layer's own embedding of a token into the stream (Gemma 3n and 4): hidden x width and back.
Layer per_layer_input_layer(std::uint64_t hidden, std::uint64_t width);

// Pixels to a patch's vector; `pixels` is channels * patch * patch * frames.
Layer patch_layer(std::uint64_t pixels, std::uint64_t width, bool bias, std::uint64_t positions);

}  // namespace flopsight::flops
