#include <CLI/CLI.hpp>

#include "advisor/tune_options.h"
#include "base/text.h"
#include "number_options.h"

namespace flopsight::app {

void add_tune_serve(CLI::App& app, TuneServeArguments& a, TuneServeTexts& t) {
  add_tune_common(app, a, t);
  app.add_option("--gpus", t.gpus, "how many GPUs");
  app.add_option("--input-tokens", t.input, "tokens of a prompt");
  app.add_option("--output-tokens", t.output, "tokens that a request generates, in the mean");
  app.add_option("--concurrency", t.concurrency, "requests in flight, on all GPUs together (default: 1)")->check(CLI::Range(std::uint64_t{1}, tuning::kConcurrencyMax));
  app.add_option("--tp", t.tensor, "tensor-parallel GPUs of a replica (default: 1)")->check(CLI::Range(std::uint64_t{1}, tuning::kGpusMax))->group("Layout");
  app.add_option("--ep", t.expert, "GPUs that routed experts are divided over (default: 1)")->check(CLI::Range(std::uint64_t{1}, tuning::kGpusMax))->group("Layout");
  app.add_option("--redundant-experts", t.redundant, "copies of experts beside the model's own (default: 0)")->check(CLI::Range(std::uint64_t{0}, tuning::kGpusMax))->group("Layout");
  app.add_option("--dispatch", t.dispatch, "all-to-all|deepep: how tokens go to experts, once for each or once to each node (default: all-to-all)")->group("Layout");
  app.add_option("--precision", t.precision, "bf16|fp8|int8|fp4, or weights alone: int8-weights|int4-weights (default: bf16)");
  app.add_option("--kv-precision", t.cache, "bf16|fp8|int8|fp4|int4 of the cache (default: bf16)");
  app.add_option("--attention", t.attention, "flash1|flash2|flash3 (default: flash2, before Ampere flash1)");
  app.add_option("--batching", t.batching, "continuous|static (default: continuous)");
  app.add_option("--kv-block", t.block, "tokens of a block of a paged cache; 0: reserved to --max-tokens (default: 16)")->check(CLI::Range(std::uint64_t{0}, std::uint64_t{65536}));
  app.add_option("--max-tokens", t.tokens_max, "of a request, reserved without paging (default: input and output)")->check(CLI::Range(std::uint64_t{1}, tuning::kSequenceTokensMax));
  app.add_option("--chunked-prefill", t.chunk, "tokens of a piece of prefill beside decoding; 0: whole (default: 0)")->check(CLI::Range(std::uint64_t{0}, tuning::kSequenceTokensMax));
  in_range(app.add_option("--prefix-hit-ratio", t.prefix, "of input tokens whose cache is there already (default: 0)"), 0.0, 1.0);
  app.add_flag("--no-cuda-graphs", t.no_graphs, "kernels are launched one by one");
  app.add_option("--output-lengths", a.lengths_path, "CSV of output lengths (tokens,count), for static batching");
  app.add_option("--draft-tokens", t.drafted, "speculative decoding: tokens of a draft")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{64}))->group("Speculation");
  in_range(app.add_option("--acceptance", t.acceptance, "part of drafted tokens that are accepted, measured"), 0.0, 1.0)->group("Speculation");
  in_range(app.add_option("--draft-cost", t.draft_cost, "of a draft token, in decode steps of the model"), 0.0, 1.0)->group("Speculation");
}

std::optional<std::string> set_tune_serve(TuneServeArguments& a, const TuneServeTexts& t) {
  if (auto mistake = set_tune_common(a, t, t.gpus)) return mistake;
  tuning::ServeSettings& s = a.settings;
  if (!t.input) return "--input-tokens: expected the tokens of a prompt";
  if (!t.output) return "--output-tokens: expected the tokens that a request generates";
  s.gpus = a.gpus;
  s.input_tokens = *t.input;
  s.output_tokens = *t.output;
  s.concurrency = t.concurrency.value_or(1);
  s.tensor = t.tensor.value_or(1);
  s.expert = t.expert.value_or(1);
  s.redundant_experts = t.redundant.value_or(0);
  if (!t.precision.empty()) {
    const auto format = tuning::parse_weight_format(t.precision);
    if (!format) return "--precision " + base::printable(t.precision, 40) + ": expected bf16, fp8, int8, fp4, int8-weights or int4-weights";
    s.weights = *format;
  }
  if (!t.cache.empty()) {
    const auto format = tuning::parse_cache_format(t.cache);
    if (!format) return "--kv-precision " + base::printable(t.cache, 40) + ": expected bf16, fp8, int8, fp4 or int4";
    s.cache = *format;
  }
  if (!t.attention.empty()) {
    const auto kernel = tuning::parse_attention_kernel(t.attention);
    if (!kernel || *kernel == tuning::AttentionKernel::kStandard) return "--attention " + base::printable(t.attention, 40) + ": expected flash1, flash2 or flash3";
    s.attention = *kernel;
    a.attention_given = true;
  }
  if (!t.dispatch.empty()) {
    const auto dispatch = tuning::parse_dispatch(t.dispatch);
    if (!dispatch) return "--dispatch " + base::printable(t.dispatch, 40) + ": expected all-to-all or deepep";
    s.dispatch = *dispatch;
  }
  if (!t.dispatch.empty() && s.expert <= s.tensor) return "--dispatch " + t.dispatch + ": needs --ep over more GPUs than --tp, without which no tokens are sent to experts";
  if (!t.batching.empty() && t.batching != "continuous" && t.batching != "static") return "--batching " + base::printable(t.batching, 40) + ": expected continuous or static";
  s.continuous = t.batching != "static";
  s.block_tokens = t.block.value_or(16);
  s.tokens_max = t.tokens_max.value_or(0);
  if (t.tokens_max && s.block_tokens > 0) return "--max-tokens " + std::to_string(s.tokens_max) + ": needs --kv-block 0, as a paged cache reserves nothing";
  s.chunk_tokens = t.chunk.value_or(0);
  s.prefix_hit_ratio = t.prefix.value_or(0);
  s.graphs = !t.no_graphs;
  const int speculation = (t.drafted ? 1 : 0) + (t.acceptance ? 1 : 0) + (t.draft_cost ? 1 : 0);
  if (speculation != 0 && speculation != 3) return "--draft-tokens, --acceptance and --draft-cost go together";
  if (speculation == 3) s.speculation = tuning::Speculation{*t.drafted, *t.acceptance, *t.draft_cost};
  const auto say = [&](bool given, const char* text) {
    if (!given) a.assumed.emplace_back(text);
  };
  say(t.concurrency.has_value(), "no --concurrency: one request at a time");
  say(t.tensor.has_value(), "no --tp: every GPU is a replica");
  say(!t.dispatch.empty() || s.expert <= s.tensor, "no --dispatch: a token goes to each of its experts separately, by all-to-all");
  say(!t.precision.empty(), "no --precision: weights in 16 bits");
  say(!t.cache.empty(), "no --kv-precision: the cache in 16 bits");
  say(!t.batching.empty(), "no --batching: continuous");
  say(t.block.has_value(), "no --kv-block: a paged cache with blocks of 16 tokens");
  say(s.expert == 1 || s.expert > s.tensor, "--ep within --tp: experts lie whole on GPUs of the tensor-parallel group; counted as if they were cut over it, which is as much to read and to compute");
  if (s.graphs) a.assumed.emplace_back("CUDA graphs for decoding: seven kernels a layer, each 3 us to start");
  return std::nullopt;
}

}  // namespace flopsight::app
