#include "tuning/serving.h"

#include <algorithm>
#include <cmath>

#include "flops/experts.h"
#include "flops/gemms.h"
#include "gemm/attainable.h"
#include "tuning/formulas.h"
#include "tuning/step.h"

namespace flopsight::tuning {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Precision;
using units::Bytes;

constexpr double kUsableRatio = 0.9;            // of memory, for weights and cache: vLLM's gpu_memory_utilization by default
constexpr double kLaunchSeconds = 6e-6;         // of a kernel, one by one
constexpr double kKernelsOfLayer = 7;           // of an attention or feed-forward layer, forward
constexpr double kPrefillTokensMax = 8192;      // that prompts which come together are taken together up to: the schedulers' limit by default
constexpr double kTileRowsLeast = 256;          // products of fewer rows are bound by reading weights, and their tiles do not matter

double number(std::uint64_t n) { return static_cast<double>(n); }

double prompt_tokens(const ServeSettings& s) { return std::max(1.0, number(s.input_tokens) * (1 - s.prefix_hit_ratio)); }

double pieces_of(const ServeSettings& s) { return s.chunk_tokens > 0 ? std::ceil(prompt_tokens(s) / number(s.chunk_tokens)) : 1; }

Precision compute_precision(WeightFormat format, const Rates& rates) {
  switch (format) {
    case WeightFormat::kFp8: return Precision::kFp8;
    case WeightFormat::kInt8: return Precision::kInt8;
    case WeightFormat::kFp4: return Precision::kFp4;
    default: return rates.sixteen_bit();
  }
}

bool is_text(const flops::Layer& layer) { return layer.section == flops::Section::kText || layer.section == flops::Section::kEncoder; }

struct ProductTime {
  double memory_seconds = 0;
  double compute_seconds = 0;
  double peak_seconds = 0;
};

// `rows` tokens through one weight of k x n, `copies` of it.
base::Result<ProductTime> product_time(const Rates& rates, double rows, const flops::Gemm& gemm, double copies, Precision precision, double element_bytes) {
  ProductTime out;
  const double n = number(gemm.n), k = number(gemm.k);
  FLOPSIGHT_ASSIGN_OR_RETURN(const double peak, rates.peak_flops_per_second(precision));
  out.memory_seconds = copies * (n * k * element_bytes + 2 * rows * (n + k)) / rates.bandwidth_bytes_per_second();
  out.compute_seconds = copies * 2 * rows * n * k / (peak * rates.attainable_ratio(precision));
  out.peak_seconds = copies * 2 * rows * n * k / peak;
  if (rows < kTileRowsLeast) return out;
  FLOPSIGHT_ASSIGN_OR_RETURN(const Rates::Product tiled, rates.product(static_cast<std::uint64_t>(rows), gemm.n, gemm.k, precision));
  out.compute_seconds = std::max(out.compute_seconds, copies * (tiled.seconds - gemm::kStartSeconds));
  out.peak_seconds = copies * tiled.executed_flops / peak;
  return out;
}

// Elements of a layer's cache that one query reads in the mean, after `context` tokens.
double cache_elements_read(const flops::Layer& layer, double context) {
  const flops::AttentionCore& core = *layer.attention;
  const bool bounded = core.mask == flops::Mask::kWindow || core.mask == flops::Mask::kChunk || core.mask == flops::Mask::kTopK;
  const double keys = bounded && core.span > 0 ? std::min(context, number(core.span)) : context;
  // A layer that reads another's cache has none of its own, but reads as much.
  const double elements = core.latent_dim > 0 ? number(core.latent_dim + core.rope_dim) : number(core.kv_heads * (core.qk_dim + core.v_dim));
  return keys * elements + (core.index_heads > 0 ? context * number(core.index_dim) : 0);
}

double cache_cut(const flops::Layer& layer, const ServeSettings& s) {
  const flops::AttentionCore& core = *layer.attention;
  return core.latent_dim > 0 ? 1 : number(std::min(s.tensor, std::max<std::uint64_t>(core.kv_heads, 1)));
}

// Each piece of a prompt reads the cache of those before it.
double pieces_cache_seconds(const flops::Layer& layer, const Rates& rates, const ServeSettings& s) {
  const double context = number(s.input_tokens) * (1 + s.prefix_hit_ratio) / 2;  // in the mean of the pieces
  return number(layer.executed) * pieces_of(s) * cache_elements_read(layer, context) * cache_bytes(s.cache) / cache_cut(layer, s) / rates.bandwidth_bytes_per_second();
}

struct CacheSize {
  double per_token_bytes = 0;     // on one GPU, of layers that keep all tokens
  double per_request_bytes = 0;   // windows and states
};

CacheSize cache_size(const flops::Model& model, const ServeSettings& s) {
  CacheSize out;
  const double tokens = number(s.input_tokens + s.output_tokens);
  for (const flops::Layer& layer : model.layers) {
    if (!layer.attention || !is_text(layer)) continue;
    const flops::AttentionCore& core = *layer.attention;
    const double bytes = number(layer.executed) * number(core.cache_elements) * cache_bytes(s.cache) / cache_cut(layer, s);
    const bool bounded = (core.mask == flops::Mask::kWindow || core.mask == flops::Mask::kChunk) && core.span > 0;
    if (bounded && number(core.span) < tokens) {
      out.per_request_bytes += bytes * number(core.span);
    } else {
      out.per_token_bytes += bytes;
    }
  }
  out.per_request_bytes += 2 * number(flops::count_cache(model).state_elements_per_sequence) / number(s.tensor);
  return out;
}

double stored_weights_bytes(const flops::Model& model, const ServeSettings& s) {
  double bytes = 0;
  const double tensor = number(s.tensor), narrow = weight_bytes(s.weights);
  for (const flops::Layer& layer : model.layers) {
    if (layer.section == flops::Section::kPrediction) continue;
    const double each = layer.kind == flops::LayerKind::kHead ? 2 : narrow;  // head and embedding stay in 16 bits
    for (const flops::Matmul& m : layer.matmuls) {
      const double all = number(m.in) * number(m.out) * number(m.stored) * number(layer.stored);
      const double copies = 1 + number(s.redundant_experts) / number(m.stored);
      const double cut = m.expert == flops::Expert::kRouted ? std::max(number(s.expert), tensor) / copies : m.split == flops::Split::kNone ? 1 : tensor;
      bytes += all * each / cut;
    }
    for (const flops::Vector& v : layer.vectors) {
      bytes += 2 * number(v.elements) * number(v.stored) * number(layer.stored) / (v.kind == flops::Extra::kTokenEmbedding ? tensor : 1);
    }
  }
  return bytes;
}

struct DecodeBatch {
  double requests = 0;  // of one tensor-parallel group
  double rows = 1;      // tokens of each at once
  double context = 0;
  double peak = 0;      // of 16 bits
};

void add_attention(const flops::Model& model, const Rates& rates, const ServeSettings& s, const DecodeBatch& batch, DecodeStep& out) {
  for (const flops::Layer& layer : model.layers) {
    if (!is_text(layer) || !layer.attention) continue;
    const double times = number(layer.executed);
    const double read = times * batch.requests * cache_elements_read(layer, batch.context) * cache_bytes(s.cache) / cache_cut(layer, s) / rates.bandwidth_bytes_per_second();
    const flops::AttentionCore& core = *layer.attention;
    // Queries and values meet the latent itself where there is one; all others as in training, for the last token of the context.
    const double width = core.latent_dim > 0 ? number(2 * core.latent_dim + core.rope_dim) : number(core.qk_dim + core.v_dim);
    const bool bounded = core.span > 0 && core.mask != flops::Mask::kCausal;
    const double keys = bounded ? std::min(batch.context, number(core.span)) : batch.context;
    const double work = times * batch.requests * batch.rows * 2 * number(core.heads) / number(s.tensor) * width * keys;
    const double arithmetic = work / (batch.peak * rates.attention(s.attention).forward_ratio);
    out.peak_seconds += work / batch.peak;
    (read >= arithmetic ? out.cache_seconds : out.compute_seconds) += std::max(read, arithmetic);
  }
}

// Tokens of one tensor-parallel group to the experts of a layer, which lie on all GPUs of the replica, and back. Each GPU of the group sends its part of them:
// all have the same tokens, and the group's all-reduce brings the results together.
double expert_messages_seconds(const flops::Layer& layer, const Fabric& fabric, const ServeSettings& s, double tokens) {
  if (s.expert <= s.tensor) return 0;
  const Group group = group_of(fabric, s.replica_gpus(), 1);
  double seconds = 0;
  for (const flops::Matmul& m : layer.matmuls) {
    if (m.expert != flops::Expert::kRouted || m.operation != flops::Operation::kUp) continue;
    const double bytes = 2 * tokens / number(s.tensor) * number(m.in);
    seconds += 2 * (s.dispatch == Dispatch::kOnce ? dispatch_once_time(fabric, group, {Bytes(bytes), number(m.stored), number(m.active)}) : all_to_all_time(fabric, group, Bytes(bytes * number(m.active)))).value;
  }
  return seconds;
}

void add_decode_messages(const flops::Model& model, const Fabric& fabric, const ServeSettings& s, double tokens, DecodeStep& out) {
  for (const flops::Layer& layer : model.layers) {
    if (!is_text(layer) || layer.matmuls.empty()) continue;
    const double times = number(layer.executed), message = 2 * tokens * number(layer.matmuls.front().in);
    if (s.tensor > 1) out.tensor_parallel_seconds += times * small_all_reduce_time(fabric, group_of(fabric, s.tensor, 1), Bytes(message)).value;
    out.expert_parallel_seconds += times * expert_messages_seconds(layer, fabric, s, tokens);
  }
}

// Element-wise kernels of `tokens` tokens, as forward in training (step_passes.cc).
double passes_seconds(const flops::Model& model, const Rates& rates, const ServeSettings& s, double tokens) {
  TrainSettings forward;
  forward.layout.tensor = s.tensor;
  forward.sequence_parallel = false;
  forward.precision = compute_precision(s.weights, rates);
  double seconds = 0;
  for (const flops::Layer& layer : model.layers) {
    if (!is_text(layer) || layer.kind == flops::LayerKind::kHead) continue;
    seconds += number(layer.executed) * tokens * elementwise_bytes(layer, forward).forward_bytes / (rates.bandwidth_bytes_per_second() * elementwise_share_ratio(layer));
  }
  return seconds;
}

double layers_of(const flops::Model& model) {
  double layers = 0;
  for (const flops::Layer& layer : model.layers) layers += is_text(layer) && !layer.matmuls.empty() ? number(layer.executed) : 0;
  return layers;
}

std::uint64_t top_k_of(const flops::Model& model) {
  std::uint64_t top_k = 1;
  for (const flops::Layer& layer : model.layers) {
    for (const flops::Matmul& m : layer.matmuls) top_k = m.expert == flops::Expert::kRouted ? m.active : top_k;
  }
  return top_k;
}

// What one GPU has of a layer's routed experts while `tokens` go through all GPUs of a replica.
struct ExpertLoad {
  double copies_ratio = 1;  // weights that it reads, of all experts
  double tokens = 1;        // through each
};

ExpertLoad expert_load(const flops::Model& model, const ServeSettings& s, double tokens) {
  const double experts = number(flops::routed_experts(model)), top_k = number(top_k_of(model));
  const double touched = std::max(1.0, experts_touched_total(experts + number(s.redundant_experts), top_k, tokens));
  // Cut by tensor parallelism already, or whole ones divided over the replica.
  return {touched / experts / s.groups_total(), std::max(1.0, tokens * top_k / touched)};
}

// Room for requests, and what they take.
void set_memory(const flops::Model& model, const ServeSettings& s, const CacheSize& cache, const std::optional<double>& capacity, Serving& out) {
  const double mean_held = number(s.input_tokens) + number(s.output_tokens) / 2;
  const double reserved_tokens = number(s.tokens_max > 0 ? s.tokens_max : s.input_tokens + s.output_tokens);
  out.cache_bytes_per_token = cache.per_token_bytes;
  out.cache_waste_ratio = s.block_tokens > 0 ? paged_waste_ratio(mean_held, number(s.block_tokens)) : reserved_waste_ratio(mean_held, reserved_tokens);
  const double request_bytes = cache.per_token_bytes * mean_held / (1 - out.cache_waste_ratio) + cache.per_request_bytes;
  out.memory.weights_bytes = stored_weights_bytes(model, s);
  out.memory.capacity_bytes = capacity;
  const double groups = s.groups_total(), wanted = number(s.concurrency) / number(s.busy_replicas());
  out.batch_fitting_total = wanted;
  if (capacity && request_bytes > 0) {
    const double room = *capacity * kUsableRatio - out.memory.weights_bytes;
    out.batch_fitting_total = std::max(0.0, std::floor(room / request_bytes) * groups);
  }
  out.batch_total = std::max(1.0, std::min(wanted, out.batch_fitting_total));
  out.memory.kv_cache_bytes = out.batch_total / groups * request_bytes;
  if (capacity) out.memory.reserved_bytes = (1 - kUsableRatio) * *capacity;
}

struct Cycle {  // of a request, from its place in the batch to its end
  double steps = 0;
  double beside_steps = 0;     // decode steps of others that its own pieces of prefill go with
  double step_seconds = 0;
  double prefill_seconds = 0;  // of a request, among the others
  double held_up = 1;          // requests whose prefills a group of GPUs does meanwhile
  double seconds = 0;
  double wanted = 1;           // requests of a replica that want a place
};

// Of a request's pieces, those that go with a decode step of the others: no more than there are steps, of which each carries one, and none where
// nobody else is there.
double riding_pieces(const ServeSettings& s, double held_up, double steps) {
  if (s.chunk_tokens == 0 || !s.continuous || held_up <= 1) return 0;
  const double others = held_up - 1;
  return std::min(pieces_of(s) * std::min(1.0, others), steps * std::min(others, 1 / others));
}

void set_latencies(const Cycle& c, const ServeSettings& s, Serving& out) {
  const double generated = number(s.output_tokens), decoding = c.steps * c.step_seconds;
  const double waiting = c.seconds * (std::max(1.0, c.wanted / out.batch_total) - 1);
  const double beside = c.beside_steps * c.step_seconds;
  const double stretch = (c.seconds - beside) / (decoding + c.prefill_seconds);
  out.request_seconds = c.seconds + waiting;
  if (!s.continuous) {
    out.first_token_seconds = out.request_seconds - decoding;
    if (s.output_tokens > 1) out.token_seconds = out.token_worst_seconds = decoding / (generated - 1);
    return;
  }
  // Behind those that it finds, and together with those that come with it.
  const double first = std::max(stretch, out.prefills_together_total) * c.prefill_seconds + beside;
  out.first_token_seconds = first + waiting;
  if (s.output_tokens == 1) return;
  out.token_seconds = (c.seconds - first) / (generated - 1);
  // Whole pieces, at least one where there is anybody else, and as many as the mean says where several come in each step.
  const double piece = c.prefill_seconds * out.prefills_together_total / pieces_of(s), others = (stretch - 1) * c.step_seconds;
  const double in_the_way = c.held_up > 1 && piece > 0 ? std::max(1.0, std::ceil(others / piece * (1 - 1e-9))) * piece : 0;
  out.token_worst_seconds = c.step_seconds + in_the_way;
}

// Prompts that a scheduler finds waiting: as many requests end with each decode step, and are followed by others, as there are requests for its tokens.
double prompts_together(const ServeSettings& s, double held_up, double steps) {
  const double room = std::max(1.0, std::floor((s.chunk_tokens > 0 ? number(s.chunk_tokens) : kPrefillTokensMax) / prompt_tokens(s)));
  const double waiting = s.continuous && steps > 1 ? std::max(1.0, held_up / steps) : held_up;
  return std::min(waiting, room);
}

constexpr double kCohortRatio = 1.1;  // of the time of a prefill in a static batch: more prompts at once would save less than a tenth, and make the first tokens late

struct PrefillShares {  // of its time
  double tensor_messages_ratio = 0;
  double expert_messages_ratio = 0;
};

void set_breakdown(const Cycle& c, const PrefillShares& shares, Serving& out) {
  const bool decodes = c.steps > 0;
  const double prefills = decodes ? c.held_up * c.prefill_seconds / (c.steps + c.beside_steps) : c.held_up * c.prefill_seconds;
  Breakdown& b = out.breakdown;
  b.compute_seconds = prefills * (1 - shares.tensor_messages_ratio - shares.expert_messages_ratio);
  b.tensor_parallel_seconds = prefills * shares.tensor_messages_ratio;
  b.expert_parallel_seconds = prefills * shares.expert_messages_ratio;
  if (!decodes) return;
  b.compute_seconds += out.decode.compute_seconds;
  b.memory_seconds = out.decode.weights_seconds + out.decode.cache_seconds + out.decode.elementwise_seconds + (c.step_seconds - out.decode.total_seconds());
  b.tensor_parallel_seconds += out.decode.tensor_parallel_seconds;
  b.expert_parallel_seconds += out.decode.expert_parallel_seconds;
  b.host_seconds = out.decode.host_seconds;
}

// Longest over mean of the outputs of a static batch.
double static_loss(const ServeSettings& s, double batch) {
  if (s.output_lengths.empty()) return 1;
  return padded_in_batch_ratio(s.output_lengths, std::max(batch, 1.0));
}

}  // namespace

base::Result<DecodeStep> ServeModel::decode(const ServeSettings& s, double batch, double context, double rows) const {
  DecodeStep out;
  const Precision precision = compute_precision(s.weights, rates_);
  const double bandwidth = rates_.bandwidth_bytes_per_second();
  FLOPSIGHT_ASSIGN_OR_RETURN(const double peak16, rates_.peak_flops_per_second(rates_.sixteen_bit()));
  const double groups = s.groups_total();  // that each attend to their own requests
  const double own = batch / groups;
  flops::GemmOptions options;
  options.tokens = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(own * rows)));
  options.tensor_parallel = s.tensor;
  options.backward = false;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<flops::Gemm> gemms, flops::gemms_of(model_, options));
  for (const flops::Gemm& gemm : gemms) {
    const bool head = gemm.layer == flops::LayerKind::kHead;
    double copies = number(gemm.count), through = own * rows;
    if (gemm.expert == flops::Expert::kRouted) {
      const ExpertLoad load = expert_load(model_, s, batch * rows);
      copies *= load.copies_ratio;
      through = load.tokens;
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const ProductTime time, product_time(rates_, through, gemm, copies, head ? rates_.sixteen_bit() : precision, head ? 2 : weight_bytes(s.weights)));
    if (time.memory_seconds >= time.compute_seconds) {
      out.weights_seconds += time.memory_seconds;
    } else {
      out.compute_seconds += time.compute_seconds;
    }
    out.peak_seconds += time.peak_seconds;
  }
  add_attention(model_, rates_, s, {own, rows, context, peak16}, out);
  add_decode_messages(model_, fabric_, s, own * rows, out);
  out.elementwise_seconds = passes_seconds(model_, rates_, s, own * rows);
  // Recurrent states are read and written.
  out.cache_seconds += 2 * own * 2 * number(flops::count_cache(model_).state_elements_per_sequence) / number(s.tensor) / bandwidth;
  const double kernels = layers_of(model_) * kKernelsOfLayer, starts = kernels * gemm::kStartSeconds;
  out.host_seconds = s.graphs ? starts : std::max(starts, kernels * kLaunchSeconds - out.total_seconds());
  return out;
}

base::Result<ServeModel::Prefill> ServeModel::prefill(const ServeSettings& s, double together, double groups) const {
  Prefill out;
  const Precision precision = compute_precision(s.weights, rates_);
  FLOPSIGHT_ASSIGN_OR_RETURN(const double peak16, rates_.peak_flops_per_second(rates_.sixteen_bit()));
  const double tokens = prompt_tokens(s), pieces = pieces_of(s);  // several pieces are of one request
  flops::GemmOptions options;
  options.tokens = static_cast<std::uint64_t>(pieces > 1 ? std::ceil(tokens / pieces) : std::round(tokens * together));
  options.tensor_parallel = s.tensor;
  options.backward = false;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<flops::Gemm> gemms, flops::gemms_of(model_, options));
  // Experts have the tokens of all groups of GPUs that prefill, which they do at once.
  const ExpertLoad load = expert_load(model_, s, number(options.tokens) * groups);
  for (const flops::Gemm& gemm : gemms) {
    const bool head = gemm.layer == flops::LayerKind::kHead;  // of the last token only
    const bool routed = gemm.expert == flops::Expert::kRouted;
    const double copies = (head ? 1 : pieces) * number(gemm.count) * (routed ? load.copies_ratio : 1), rows = head ? together : routed ? load.tokens : number(gemm.m);
    FLOPSIGHT_ASSIGN_OR_RETURN(const ProductTime time, product_time(rates_, rows, gemm, copies, head ? rates_.sixteen_bit() : precision, head ? 2 : weight_bytes(s.weights)));
    out.products_seconds += std::max(time.memory_seconds, time.compute_seconds) / kSustainedRatio;
    if (time.compute_seconds >= time.memory_seconds) out.arithmetic_seconds += time.compute_seconds / kSustainedRatio;
    out.peak_seconds += time.peak_seconds;
  }
  out.compute_seconds = out.products_seconds;
  flops::Sequence sequence;
  sequence.tokens = s.input_tokens;
  for (const flops::Layer& layer : model_.layers) {
    if (!is_text(layer) || layer.matmuls.empty()) continue;
    const flops::Cost cost = flops::layer_forward(layer, sequence, {});
    const double core = (cost.of(flops::Part::kAttentionCore) + cost.of(flops::Part::kRecurrentCore)) * number(layer.executed) * tokens * together / number(s.tensor);
    const double arithmetic = core / (peak16 * rates_.attention(s.attention).forward_ratio * kSustainedRatio);
    out.compute_seconds += pieces > 1 && layer.attention ? std::max(arithmetic, pieces_cache_seconds(layer, rates_, s) / kSustainedRatio) : arithmetic;
    out.peak_seconds += core / peak16;
    const double message = 2 * tokens * together / pieces * number(layer.matmuls.front().in), times = pieces * number(layer.executed);
    out.expert_messages_seconds += times * expert_messages_seconds(layer, fabric_, s, tokens * together / pieces);
    if (s.tensor > 1) out.messages_seconds += times * all_reduce_time(fabric_, group_of(fabric_, s.tensor, 1), Bytes(message)).time.value;
  }
  out.compute_seconds += passes_seconds(model_, rates_, s, tokens * together) / kSustainedRatio;
  // Prompts are launched one kernel after another, whatever decoding does.
  const double kernels = pieces * layers_of(model_) * kKernelsOfLayer;
  out.compute_seconds = std::max(out.compute_seconds + kernels * gemm::kStartSeconds, kernels * kLaunchSeconds);
  out.compute_seconds /= together;
  out.products_seconds /= together;
  out.messages_seconds /= together;
  out.expert_messages_seconds /= together;
  out.peak_seconds /= together;
  return out;
}

base::Result<ServeModel::Prefill> ServeModel::prefill_of_batch(const ServeSettings& s, double held_up, double steps, Serving& out) const {
  const double at_once = std::min(s.groups_total(), out.batch_total);
  out.prefills_together_total = prompts_together(s, held_up, steps);
  FLOPSIGHT_ASSIGN_OR_RETURN(Prefill first, prefill(s, out.prefills_together_total, at_once));
  if (!s.continuous || !s.output_lengths.empty()) return first;
  // Outputs of equal length that began together end together, and the prompts that follow them come together again. Short prompts, which cost as much alone
  // as together, come in groups as small as reach what a static batch does.
  ServeSettings held = s;
  held.continuous = false;
  const double all = prompts_together(held, held_up, steps);
  FLOPSIGHT_ASSIGN_OR_RETURN(const Prefill least, prefill(s, all, at_once));
  while (out.prefills_together_total < all && first.total_seconds() > kCohortRatio * least.total_seconds()) {
    out.prefills_together_total = std::min(2 * out.prefills_together_total, all);
    FLOPSIGHT_ASSIGN_OR_RETURN(first, prefill(s, out.prefills_together_total, at_once));
  }
  return first;
}

base::Result<Serving> ServeModel::predict(const ServeSettings& s) const {
  FLOPSIGHT_RETURN_IF_ERROR(check_serve_settings(model_, s));
  FLOPSIGHT_ASSIGN_OR_RETURN(Serving out, predict_as_told(s));
  if (s.continuous && !s.output_lengths.empty() && out.batch_total > 1) {
    // Of lengths that hardly differ, a scheduler that may let requests in one by one may as well hold short prompts back until a batch has ended.
    ServeSettings held = s;
    held.continuous = false;
    FLOPSIGHT_ASSIGN_OR_RETURN(Serving as_static, predict_as_told(held));
    if (as_static.tokens_per_second > out.tokens_per_second) out = std::move(as_static);
  }
  if (std::isfinite(out.request_seconds) && std::isfinite(out.breakdown.total_seconds()) && std::isfinite(out.tokens_per_second)) return out;
  return Error{ErrorCode::kUnsupported, no_finite_time(fabric_)};
}

base::Result<Serving> ServeModel::predict_as_told(const ServeSettings& s) const {
  Serving out;
  set_memory(model_, s, cache_size(model_, s), device_memory_bytes(rates_.device()), out);
  const double in = number(s.input_tokens), generated = number(s.output_tokens), mean_held = in + generated / 2;
  const double groups = s.groups_total(), wanted = number(s.concurrency) / number(s.busy_replicas());
  const double rows = s.speculation ? number(s.speculation->drafted_tokens) + 1 : 1;
  if (s.speculation) out.tokens_per_step_total = speculative_tokens_total(s.speculation->acceptance_ratio, number(s.speculation->drafted_tokens));
  const double steps = (generated - 1) / out.tokens_per_step_total;  // the first token comes from prefill
  const double held_up = std::max(1.0, out.batch_total / groups);  // prefills that one group of GPUs has to do meanwhile, its own among them
  const double beside = riding_pieces(s, held_up, steps), all_steps = steps + beside;
  // A request does not decode while its own pieces ride with the steps of others.
  const double decoding = beside > 0 ? out.batch_total * steps / all_steps : out.batch_total;
  FLOPSIGHT_ASSIGN_OR_RETURN(out.decode, decode(s, decoding, mean_held, rows));
  FLOPSIGHT_ASSIGN_OR_RETURN(const Prefill alone, prefill(s, 1, 1));
  out.prefill_seconds = alone.total_seconds();
  out.prefill_arithmetic_seconds = alone.arithmetic_seconds;

  double step = out.decode.total_seconds();
  if (s.speculation) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const DecodeStep plain, decode(s, decoding, mean_held));
    step += number(s.speculation->drafted_tokens) * s.speculation->draft_cost_ratio * plain.total_seconds();
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const Prefill first, prefill_of_batch(s, held_up, steps, out));
  // Weights that a decode step reads are not read again for the piece that goes with it.
  const double shared = beside * std::min(out.decode.weights_seconds, first.products_seconds / pieces_of(s));
  const double prefill_seconds = first.total_seconds() - shared;
  out.batching_gain_ratio = static_loss(s, out.batch_total);
  const double stretched = s.continuous ? 1 : out.batching_gain_ratio;
  const Cycle cycle{steps, beside, step, prefill_seconds, held_up, (all_steps * step + held_up * prefill_seconds) * stretched, wanted};
  out.request_rate_hertz = out.batch_total / cycle.seconds * number(s.busy_replicas());
  out.tokens_per_second = out.request_rate_hertz * generated;
  set_latencies(cycle, s, out);
  set_breakdown(cycle, {first.messages_seconds / prefill_seconds, first.expert_messages_seconds / prefill_seconds}, out);
  FLOPSIGHT_ASSIGN_OR_RETURN(const double peak, rates_.peak_flops_per_second(compute_precision(s.weights, rates_)));
  flops::Workload workload;
  workload.sequence.tokens = s.input_tokens + s.output_tokens;
  const flops::Cost forward = flops::forward_cost(model_, workload);
  const double head = forward.of(flops::Part::kHead);
  // The last token is not computed on, and logits are of the tokens that are generated alone.
  const double request_flops = (forward.total() - head) * (prompt_tokens(s) + generated - 1) + head * generated;
  out.mfu_ratio = request_flops * out.request_rate_hertz / (number(s.gpus) * peak);
  const double busy_ratio = number(s.busy_replicas()) / number(s.replicas());
  out.attainable_ofu_ratio = busy_ratio * (out.decode.peak_seconds * all_steps + held_up * first.peak_seconds) / cycle.seconds;
  return out;
}

}  // namespace flopsight::tuning
