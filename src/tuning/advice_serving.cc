// Rules of serving: what changes in format, batching, cache, drafting and layout bring.

#include <algorithm>

#include "flops/experts.h"
#include "tuning/advice_internal.h"
#include "tuning/formulas.h"
#include "tuning/serving.h"

namespace flopsight::tuning {
namespace {

constexpr double kConcurrencyGainLeast = 0.10;
constexpr double kStallLeastRatio = 3;      // worst time between tokens over the usual one, before prefill is worth cutting up
constexpr std::uint64_t kChunkTokens = 2048;

struct Serve {
  const ServeModel& model;
  const ServeCase& one;
  Findings& out;
};

std::string text(std::uint64_t n) { return std::to_string(n); }

struct ServeChange {
  const char* id;
  std::string what;
  ServeSettings settings;
  Confidence confidence;
  std::string why;
  std::string price;
  std::string source;
  Saves saves;
  double least_ratio = kGainLeastRatio;
};

bool propose(const Serve& serve, const ServeChange& change) {
  const auto after = serve.model.predict(change.settings);
  if (!after.ok()) return false;
  const bool fits = after->memory.fits().value_or(true) && after->batch_fitting_total >= 1;
  const bool fitted = serve.one.serving.memory.fits().value_or(true) && serve.one.serving.batch_fitting_total >= 1;
  // What does not fit has no rate to compare with.
  const double gain = after->tokens_per_second / serve.one.serving.tokens_per_second - 1;
  if (!fits || (fitted && gain < change.least_ratio)) return false;
  Advice advice;
  advice.id = change.id;
  advice.change = change.what;
  advice.tokens_per_second = after->tokens_per_second;
  if (fitted) advice.gain_ratio = gain;
  advice.makes_it_fit = !fitted;
  advice.confidence = change.confidence;
  const std::string also = change.why.empty() ? std::string() : ". " + change.why;
  advice.why = fitted ? change.why : "as it is, it does not fit into memory; with this it does" + also;
  advice.price = change.price;
  advice.source = change.source;
  advice.saves = change.saves;
  serve.out.advice.push_back(std::move(advice));
  return true;
}

std::string time_text(double seconds) { return number_text(seconds * 1e3, "%.1f") + " ms"; }

// Empty where nothing runs. Where nothing is decoded, prefill is what there is.
std::string bound_text(const Serving& s) {
  if (!s.memory.fits().value_or(true) || s.batch_fitting_total < 1) return {};
  if (!s.token_seconds) return "no token is decoded; of a prefill of " + time_text(s.prefill_seconds) + " products bound by arithmetic take " + time_text(s.prefill_arithmetic_seconds);
  return std::string(s.is_memory_bound() ? "decoding is bound by reading" : "decoding is bound by arithmetic") + ": weights " + time_text(s.decode.weights_seconds) + ", cache " +
         time_text(s.decode.cache_seconds) + ", arithmetic " + time_text(s.decode.compute_seconds) + " of a step";
}

// Empty where requests have one token.
std::string between_text(const Serving& now, const Serving& after) {
  if (!now.token_seconds || !after.token_seconds) return {};
  return "; time between tokens " + time_text(*now.token_seconds) + " to " + time_text(*after.token_seconds);
}

void advise_weights(const Serve& serve) {
  if (serve.one.settings.weights != WeightFormat::k16Bit) return;
  const std::string bound = bound_text(serve.one.serving);
  const bool has_fp8 = serve.model.rates().peak_flops_per_second(catalog::Precision::kFp8).ok();
  for (const WeightFormat format : {has_fp8 ? WeightFormat::kFp8 : WeightFormat::kInt8, WeightFormat::kInt4Weights}) {
    ServeSettings s = serve.one.settings;
    s.weights = format;
    const bool weights_only = format == WeightFormat::kInt4Weights;
    // Without a decode step only arithmetic in fewer bits is to be gained.
    if (serve.one.settings.output_tokens == 1 && (weights_only || serve.one.serving.prefill_arithmetic_seconds < serve.one.serving.prefill_seconds / 2)) continue;
    propose(serve, {"quantize_weights", std::string("weights in ") + (weights_only ? "4 bits" : has_fp8 ? "FP8" : "INT8") + " (--precision " + std::string(weight_format_name(format)) + ")", s, Confidence::kMedium,
                    bound + (weights_only ? std::string(bound.empty() ? "" : ". ") + "Groups of 128 with scale and zero take 4.16 bits: 3.85 times less, not 4; prefill gains nothing" : ""),
                    "accuracy depends on task and method, no percentage holds in general: evaluate", "(W+K)/(W/c+K/c_kv)", Saves::kOther});
  }
}

void advise_cache_format(const Serve& serve) {
  if (serve.one.settings.cache != CacheFormat::k16Bit) return;
  ServeSettings s = serve.one.settings;
  s.cache = CacheFormat::k8Bit;
  propose(serve, {"kv_precision", "the cache in FP8 (--kv-precision fp8)", s, Confidence::kMedium,
                  "half of the cache to read, and room for twice as many requests (" + number_text(serve.one.serving.batch_fitting_total, "%.0f") + " fit now)",
                  "long contexts lose accuracy first: evaluate", "(W+K)/(W/c+K/c_kv)", Saves::kOther});
}

void advise_batching(const Serve& serve) {
  if (serve.one.settings.continuous) return;
  if (serve.one.settings.output_lengths.empty()) {
    serve.out.rejected.push_back({"continuous_batching", "requests join when others end",
                                  "its gain is the longest output of a batch over the mean: 1.0 for equal lengths, 2.7 for exponential ones in batches of 8. Give --output-lengths"});
    return;
  }
  ServeSettings s = serve.one.settings;
  s.continuous = true;
  propose(serve, {"continuous_batching", "requests join when others end, not when the longest of a batch does", s, Confidence::kHigh,
                  "the longest output of a batch is " + number_text(serve.one.serving.batching_gain_ratio, "%.2f") + " times the mean one", "", "E[max of B] / E[mean] of the lengths given", Saves::kOther});
}

void advise_paging(const Serve& serve) {
  if (serve.one.settings.block_tokens > 0) return;
  ServeSettings s = serve.one.settings;
  s.block_tokens = 16;
  propose(serve, {"paged_cache", "a paged cache with blocks of 16 tokens", s, Confidence::kHigh,
                  percent_text(serve.one.serving.cache_waste_ratio) + " of what is reserved is not used; half a block a request would be. The gain ends where the cache is read as long as the weights are",
                  "", "Kwon et al. 2023, arXiv 2309.06180", Saves::kOther});
}

void advise_speculation(const Serve& serve) {
  if (!serve.one.settings.speculation) return;
  ServeSettings s = serve.one.settings;
  s.speculation.reset();
  const auto without = serve.model.predict(s);
  if (!without.ok()) return;
  const double gain = serve.one.serving.tokens_per_second / without->tokens_per_second - 1;
  if (gain >= 0) return;
  propose(serve, {"no_speculation", "no speculative decoding at this concurrency", s, Confidence::kMedium,
                  "verifying " + text(serve.one.settings.speculation->drafted_tokens + 1) + " tokens costs more than the accepted ones save: " + bound_text(serve.one.serving), "",
                  "Leviathan et al. 2023, arXiv 2211.17192", Saves::kOther, 0});
}

void advise_chunks(const Serve& serve) {
  const Serving& now = serve.one.serving;
  if (serve.one.settings.chunk_tokens > 0 || serve.one.settings.input_tokens <= kChunkTokens || now.batch_total <= 1) return;
  const double usual = now.decode.total_seconds();
  if (now.token_worst_seconds.value_or(0) < kStallLeastRatio * usual) return;
  ServeSettings s = serve.one.settings;
  s.chunk_tokens = kChunkTokens;
  const auto after = serve.model.predict(s);
  if (!after.ok() || !after->token_worst_seconds) return;
  propose(serve, {"chunked_prefill", "prefill in pieces of " + text(kChunkTokens) + " tokens beside decoding", s, Confidence::kMedium,
                  "a prefill stops the others for " + time_text(now.prefill_seconds) + ", " + number_text(*now.token_worst_seconds / usual, "%.0f") + " decode steps; in pieces the worst time between tokens is " +
                      time_text(*after->token_worst_seconds) + " instead of " + time_text(*now.token_worst_seconds),
                  "the first token comes later", "Agrawal et al. 2024, arXiv 2403.02310", Saves::kOther, -0.02});
}

void advise_tensor(const Serve& serve) {
  const ServeSettings& now = serve.one.settings;
  ServeSettings best = now;
  double best_rate = serve.one.serving.tokens_per_second * 1.03;
  for (std::uint64_t tensor = 1; tensor <= std::min(now.gpus, serve.model.fabric().node_gpus); tensor *= 2) {
    ServeSettings s = now;
    s.tensor = tensor;
    if (s.expert > 1) s.expert = std::max(s.expert, tensor);
    if (tensor == now.tensor) continue;
    const auto after = serve.model.predict(s);
    if (!after.ok() || !after->memory.fits().value_or(true) || after->batch_fitting_total < 1 || after->tokens_per_second <= best_rate) continue;
    best = s;
    best_rate = after->tokens_per_second;
  }
  if (best.tensor == now.tensor) return;
  const Serving after = serve.model.predict(best).value();
  const std::string idle = now.busy_replicas() == now.replicas() ? "" : text(now.replicas() - now.busy_replicas()) + " of " + text(now.replicas()) + " replicas have no request; ";
  propose(serve, {"tensor_parallel", text(best.replicas()) + (best.replicas() == 1 ? " replica of " : " replicas of ") + text(best.replica_gpus()) + (best.replica_gpus() == 1 ? " GPU" : " GPUs") + " (--tp " + text(best.tensor) + ")", best, Confidence::kMedium,
                  idle + "messages take " + time_text(serve.one.serving.decode.tensor_parallel_seconds) + " of a step now, " + time_text(after.decode.tensor_parallel_seconds) + " then" +
                      between_text(serve.one.serving, after),
                  best.tensor < now.tensor ? "a single request takes longer" : "", "roofline of decode and prefill", Saves::kOther});
}

void advise_expert(const Serve& serve) {
  const ServeSettings& now = serve.one.settings;
  const std::uint64_t experts = flops::routed_experts(serve.model.model());
  if (experts == 0 || now.expert > 1 || now.gpus <= now.tensor) return;
  ServeSettings s = now;
  s.expert = std::min(now.gpus, experts);
  propose(serve, {"expert_parallel", "experts divided over " + text(s.expert) + " GPUs (--ep " + text(s.expert) + ")", s, Confidence::kLow,
                  "every GPU reads a part of the experts for the tokens of all, instead of all experts for its own tokens", "uneven experts make the slowest GPU wait; not modelled",
                  "E (1 - (1 - k/E)^B) experts are read", Saves::kOther});
}

void advise_dispatch(const Serve& serve) {
  ServeSettings s = serve.one.settings;
  if (s.expert <= s.tensor || s.dispatch == Dispatch::kOnce) return;
  s.dispatch = Dispatch::kOnce;
  propose(serve, {"expert_dispatch", "--dispatch deepep: a token goes once to each GPU that has one of its experts, and once over the network to each node", s, Confidence::kMedium,
                  "tokens to and from experts take " + time_text(serve.one.serving.decode.expert_parallel_seconds) + " of a step, to each expert separately", "kernels of their own (DeepEP)",
                  "DeepSeek-V3, arXiv 2412.19437, section 3.4", Saves::kIdle});
}

void advise_concurrency(const Serve& serve) {
  const Serving& now = serve.one.serving;
  ServeSettings s = serve.one.settings;
  const double room = now.batch_fitting_total * static_cast<double>(s.replicas());
  if (room < 2 * static_cast<double>(s.concurrency)) return;
  s.concurrency *= 2;
  propose(serve, {"concurrency", "more requests at once (--concurrency " + text(s.concurrency) + ")", s, Confidence::kMedium,
                  bound_text(now) + "; there is room for " + number_text(room, "%.0f") + " requests", "each request takes longer", "tokens a second = B O / (O step(B) + B prefill)", Saves::kOther,
                  kConcurrencyGainLeast});
}

void advise_graphs(const Serve& serve) {
  if (serve.one.settings.graphs || serve.one.serving.decode.host_seconds <= 0) return;
  ServeSettings s = serve.one.settings;
  s.graphs = true;
  const auto after = serve.model.predict(s);
  if (!after.ok()) return;
  propose(serve, {"cuda_graphs", "CUDA graphs for decoding", s, Confidence::kMedium,
                  "the host needs " + time_text(serve.one.serving.decode.host_seconds - after->decode.host_seconds) + " of a step longer to launch kernels one by one than they take",
                  "memory for graphs of each batch size", "7 kernels a layer at 6 us, assumed", Saves::kIdle});
}

}  // namespace

Findings advise_serving(const ServeModel& model, const ServeCase& one) {
  Findings out;
  const Serve serve{model, one, out};
  using Rule = void (*)(const Serve&);
  constexpr Rule kRules[] = {advise_weights, advise_cache_format, advise_batching, advise_paging, advise_speculation, advise_chunks, advise_tensor, advise_expert, advise_dispatch, advise_concurrency, advise_graphs};
  for (const Rule rule : kRules) rule(serve);
  finish(one.usd_per_gpu_hour, one.settings.gpus, out);
  return out;
}

}  // namespace flopsight::tuning
