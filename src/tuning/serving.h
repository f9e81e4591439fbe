#pragma once
// How fast a model is served: prefill and decode as rooflines, the cache of keys and values, batching, and what follows for latency, throughput and cost.
//
//   decode step of a batch B  = sum over products of max(weights / bandwidth, FLOPs / rate) + cache / bandwidth + messages + host
//   a request of I in, O out  = prefill(I), which has the first token, and O - 1 decode steps
//   cycle                     = (O - 1) step(B) + B prefill(I): a request with the prefills of the others meanwhile
//   tokens a second           = B O / cycle
//   stretch                   = cycle / ((O - 1) step(B) + prefill(I)), 1 alone
//   time to first token       = stretch prefill(I) and the wait for a place;  mean between tokens = stretch step(B)
//
// A prompt that comes finds those of the others in their prefill as often as these are there in the mean (the arrival theorem of closed systems, Reiser and
// Lavenberg 1980), is behind them, and goes before decoding, as in vLLM: TTFT = prefill + (B - 1) TTFT / cycle prefill, and the rest of the cycle is what decoding
// takes with the prefills that come into it. Prefill in pieces: each reads the weights again, but for those that go with a decode step of the others, which
// the request's first token waits for; a step carries one piece, and the request is not among those that it decodes. A static batch is prefilled together, and its decoding is not interrupted.
//
// A replica is max(tp, ep) GPUs; others are further replicas, each with its part of the concurrency, or idle where there are fewer requests. Experts read: E (1 - (1 - k/E)^B). Latent attention
// decodes in the latent. The cache is divided over tensor-parallel GPUs as far as there are key-value heads, a latent is not. Kernels reach 0.8 of
// the bandwidth (gemm/attainable.h), and seven a layer take 3 us each to start, or 6 where the host launches them one by one, as it does for prompts. Prompts that come
// together are prefilled together, up to 8,192 tokens: as many come as requests end with a decode step, and more where outputs are equally long and
// prompts so short that together they cost less. Sources: Pope et al. 2022 (arXiv 2211.05102); Kwon et al. 2023 (arXiv 2309.06180, paging); Yu et al. 2022 (Orca, continuous batching);
// Agrawal et al. 2024 (arXiv 2403.02310, chunked prefill); Leviathan et al. 2023 (arXiv 2211.17192).
// Units: seconds, bytes, tokens. Threads: pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tuning/advice.h"
#include "tuning/fabric.h"
#include "tuning/memory.h"
#include "tuning/rates.h"

namespace flopsight::tuning {

// Formats of weights: of 8 bits and 4 both operands, or weights alone (computed in 16 bits, groups of 128 with scale and zero: 4.16 bits).
enum class WeightFormat : std::uint8_t { k16Bit, kFp8, kInt8, kInt8Weights, kInt4Weights, kFp4 };
std::string_view weight_format_name(WeightFormat format);  // "bf16", "fp8", "int8", "int8-weights", "int4-weights", "fp4"
std::optional<WeightFormat> parse_weight_format(std::string_view text);
double weight_bytes(WeightFormat format);  // of an element
enum class CacheFormat : std::uint8_t { k16Bit, k8Bit, k4Bit };
std::string_view cache_format_name(CacheFormat format);  // "bf16", "fp8", "fp4"
std::optional<CacheFormat> parse_cache_format(std::string_view text);  // "int8" and "int4" as well
double cache_bytes(CacheFormat format);

struct Speculation {
  std::uint64_t drafted_tokens = 0;
  double acceptance_ratio = 0;
  double draft_cost_ratio = 0;  // of a draft token, in decode steps of the model
};

struct ServeSettings {
  std::uint64_t gpus = 1;
  std::uint64_t tensor = 1;
  std::uint64_t expert = 1;
  std::uint64_t redundant_experts = 0;  // copies of experts beside the model's own, of those that are chosen most
  Dispatch dispatch = Dispatch::kAllToAll;  // of tokens to experts on other GPUs
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;  // in the mean
  std::uint64_t concurrency = 1;    // requests in flight, of all replicas
  WeightFormat weights = WeightFormat::k16Bit;
  CacheFormat cache = CacheFormat::k16Bit;
  AttentionKernel attention = AttentionKernel::kFlash2;
  bool continuous = true;           // batching: a request joins when one ends; or a batch runs until its longest ends
  std::uint64_t block_tokens = 16;  // of a paged cache; 0: reserved to `tokens_max`
  std::uint64_t tokens_max = 0;     // of a request, reserved without paging; 0: input + output
  std::uint64_t chunk_tokens = 0;   // prefill in pieces beside decoding; 0: whole
  double prefix_hit_ratio = 0;      // of input tokens whose cache is there already
  bool graphs = true;               // CUDA graphs; or kernels launched one by one
  std::optional<Speculation> speculation;
  Histogram output_lengths;         // for static batching; empty: all alike

  std::uint64_t replica_gpus() const { return tensor > expert ? tensor : expert; }
  double groups_total() const { return static_cast<double>(replica_gpus()) / static_cast<double>(tensor); }  // tensor-parallel ones of a replica
  std::uint64_t replicas() const { return gpus / replica_gpus(); }
  std::uint64_t busy_replicas() const { return concurrency < replicas() ? concurrency : replicas(); }  // others have no request
};

inline constexpr std::uint64_t kConcurrencyMax = 10'000'000;
base::Status check_serve_settings(const flops::Model& model, const ServeSettings& settings);

struct DecodeStep {  // of one replica
  double weights_seconds = 0;   // products bound by reading weights
  double compute_seconds = 0;   // products bound by arithmetic, and attention where it is
  double cache_seconds = 0;
  double elementwise_seconds = 0;  // norms, activations, casts, tokens sorted to experts
  double tensor_parallel_seconds = 0;
  double expert_parallel_seconds = 0;
  double host_seconds = 0;
  double peak_seconds = 0;      // FLOPs over the peak of their format

  double total_seconds() const { return weights_seconds + compute_seconds + cache_seconds + elementwise_seconds + tensor_parallel_seconds + expert_parallel_seconds + host_seconds; }
};

struct Serving {
  double batch_total = 0;            // requests that one replica decodes at once
  double batch_fitting_total = 0;    // that its cache has room for
  double cache_bytes_per_token = 0;  // on one GPU
  double prefill_seconds = 0;        // of a request alone
  double prefill_arithmetic_seconds = 0;  // of these, products that arithmetic bounds
  double prefills_together_total = 1;  // prompts that are taken at once
  DecodeStep decode;
  double tokens_per_step_total = 1;  // more with speculation
  double first_token_seconds = 0;
  std::optional<double> token_seconds;        // between tokens of a request, in the mean; of one token there is none
  std::optional<double> token_worst_seconds;  // while prefills of others are in the way, as many as come between two tokens
  double request_seconds = 0;
  double request_rate_hertz = 0;    // of all replicas
  double tokens_per_second = 0;      // output, of all replicas
  double batching_gain_ratio = 1;    // continuous over static for these lengths
  double cache_waste_ratio = 0;
  double mfu_ratio = 0;
  double attainable_ofu_ratio = 0;
  Breakdown breakdown;               // of the mean time between two steps of a replica; of the prefills where there are no steps
  Memory memory;

  // Of decode steps; where there is none, nothing is.
  bool is_memory_bound() const { return decode.weights_seconds + decode.cache_seconds > decode.compute_seconds; }
};

class ServeModel {
 public:
  // All are borrowed.
  ServeModel(const flops::Model& model, const Rates& rates, const Fabric& fabric) : model_(model), rates_(rates), fabric_(fabric) {}

  // Where weights or a single request do not fit, memory says so and the figures are those of one request. Errors: as check_serve_settings();
  // kUnsupported where the GPU does not have the format, and for encoders.
  base::Result<Serving> predict(const ServeSettings& settings) const;
  // One decode step of `batch` requests with `context` tokens each, of which each decodes `rows` tokens at once.
  base::Result<DecodeStep> decode(const ServeSettings& settings, double batch, double context, double rows = 1) const;

  const flops::Model& model() const { return model_; }
  const Rates& rates() const { return rates_; }
  const Fabric& fabric() const { return fabric_; }

 private:
  struct Prefill {
    double compute_seconds = 0;
    double products_seconds = 0;         // of these, products with weights
    double arithmetic_seconds = 0;       // of these, what arithmetic bounds
    double messages_seconds = 0;         // of tensor parallelism
    double expert_messages_seconds = 0;
    double peak_seconds = 0;

    double total_seconds() const { return compute_seconds + messages_seconds + expert_messages_seconds; }
  };
  // As predict(), of the batching that is told alone.
  base::Result<Serving> predict_as_told(const ServeSettings& settings) const;
  // Of a request, of which `together` are taken at once by each of `groups` tensor-parallel groups.
  base::Result<Prefill> prefill(const ServeSettings& settings, double together, double groups) const;

  // Of a request in a batch; sets how many are taken at once.
  base::Result<Prefill> prefill_of_batch(const ServeSettings& settings, double held_up, double steps, Serving& out) const;

  const flops::Model& model_;
  const Rates& rates_;
  const Fabric& fabric_;
};

struct ServeCase {
  ServeSettings settings;
  Serving serving;
  std::optional<double> usd_per_gpu_hour;
};
Findings advise_serving(const ServeModel& model, const ServeCase& one);

}  // namespace flopsight::tuning
