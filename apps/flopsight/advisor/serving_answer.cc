#include <algorithm>
#include <cmath>
#include <iterator>

#include "advisor/tune_answer.h"
#include "advisor/tune_html.h"
#include "parse_file.h"
#include "tuning/formulas.h"
#include "tuning/lengths.h"
#include "views/text_table.h"
#include "views/advice_json.h"

namespace flopsight::app {
namespace {

namespace json = base::json;
using views::text_table::number;

std::vector<std::pair<std::string, std::string>> facts(const TuneServeAnswer& answer) {
  const tuning::ServeSettings& s = answer.arguments.settings;
  const tuning::Serving& v = answer.serving;
  const std::uint64_t idle = s.replicas() - s.busy_replicas();
  std::vector<std::pair<std::string, std::string>> out = {
      {"GPUs", std::to_string(s.gpus) + " x " + answer.gpu + ", " + answer.fabric},
      {"replicas", std::to_string(s.replicas()) + " of " + std::to_string(s.replica_gpus()) + " GPUs" + (idle > 0 ? ", " + std::to_string(idle) + " without a request" : "")}};
  if (!answer.fits().value_or(true)) {
    out.emplace_back("does not fit", answer.over());
    return out;
  }
  const std::pair<std::string, std::string> figures[] = {
      {"requests at once", number(v.batch_total, "%.0f") + " on a replica; its cache has room for " + number(v.batch_fitting_total, "%.0f")},
      {"time to first token", seconds_text(v.first_token_seconds) + ", of which prefill " + seconds_text(v.prefill_seconds)},
      {"between tokens", v.token_seconds ? seconds_text(*v.token_seconds) + " in the mean, " + seconds_text(*v.token_worst_seconds) + " while a prefill is in the way" : "there is one token only"},
      {"a request", seconds_text(v.request_seconds)},
      {"output tokens a second", number(v.tokens_per_second, "%.0f") + ", " + number(v.tokens_per_second / static_cast<double>(s.gpus), "%.0f") + " on a GPU"},
      {"decoding is bound by", v.is_memory_bound() ? "reading weights and cache" : "arithmetic"},
      {"attainable OFU", number(100 * v.attainable_ofu_ratio, "%.1f %%")}};
  // Of one token there is no decode step, and nothing bounds it.
  std::copy_if(std::begin(figures), std::end(figures), std::back_inserter(out), [&](const auto& figure) { return s.output_tokens > 1 || figure.first != "decoding is bound by"; });
  if (answer.usd_per_million_tokens) out.emplace_back("USD a million tokens", number(*answer.usd_per_million_tokens, "%.2f") + " of output");
  return out;
}

// Lengths and their mean are two ways to say one thing; a token or a hundredth is rounding.
base::Status check_lengths(const TuneServeArguments& arguments, const tuning::Histogram& lengths) {
  const double told = static_cast<double>(arguments.settings.output_tokens), mean = told / tuning::padded_to_length_ratio(lengths, arguments.settings.output_tokens);
  if (told == 0 || std::abs(told - mean) <= std::max(1.0, 0.01 * mean)) return {};
  return base::Error{base::ErrorCode::kInvalid, "--output-tokens " + std::to_string(arguments.settings.output_tokens) + ": the mean of --output-lengths is " + number(mean, "%.0f") + ", expected the same"};
}

}  // namespace

std::optional<bool> TuneServeAnswer::fits() const {
  const auto memory = serving.memory.fits();
  if (!memory) return std::nullopt;
  return *memory && serving.batch_fitting_total >= 1;
}

std::string TuneServeAnswer::over() const {
  if (fits().value_or(true)) return {};
  const std::string of_memory = serving.memory.over();
  return of_memory.empty() ? "no room for the cache of one request beside the weights" : of_memory;
}

base::Result<TuneServeAnswer> tune_serve(const TuneServeArguments& arguments) {
  TuneGround ground;
  FLOPSIGHT_RETURN_IF_ERROR(read_ground(arguments, ground));
  FLOPSIGHT_ASSIGN_OR_RETURN(const tuning::Rates rates, tuning::Rates::of(*ground.device));
  const tuning::ServeModel model(ground.model, rates, ground.fabric);
  tuning::ServeCase one;
  one.settings = arguments.settings;
  FLOPSIGHT_RETURN_IF_ERROR(choose_attention(ground, rates, {arguments.attention_given, false}, one.settings.attention, ground.assumptions));
  one.usd_per_gpu_hour = arguments.usd_per_gpu_hour;
  if (!arguments.lengths_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(one.settings.output_lengths, parse_file(arguments.lengths_path, &tuning::read_lengths));
    FLOPSIGHT_RETURN_IF_ERROR(check_lengths(arguments, one.settings.output_lengths));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(one.serving, model.predict(one.settings));
  TuneServeAnswer out;
  out.arguments = arguments;
  out.gpu = ground.device->model;
  out.fabric = fabric_text(arguments, ground.fabric);
  out.serving = one.serving;
  out.findings = tuning::advise_serving(model, one);
  if (arguments.usd_per_gpu_hour && out.fits().value_or(true)) {
    out.usd_per_million_tokens = tuning::usd_per_million_tokens(*arguments.usd_per_gpu_hour, static_cast<double>(one.settings.gpus), one.serving.tokens_per_second);
  }
  out.assumptions = ground.assumptions;
  out.assumptions.insert(out.assumptions.end(), arguments.assumed.begin(), arguments.assumed.end());
  say_positions(ground.model, one.settings.input_tokens + one.settings.output_tokens, "--input-tokens and --output-tokens", out.assumptions);
  if (one.settings.expert > one.settings.tensor) out.assumptions.emplace_back("expert-parallel messages overlap with nothing, and each expert gets as many tokens as any other");
  out.assumptions.emplace_back("kernels reach 80 % of the memory bandwidth, and 90 % of the memory is for weights and cache");
  if (one.settings.output_lengths.empty()) out.assumptions.emplace_back("no --output-lengths: all outputs are equally long");
  if (!arguments.usd_per_gpu_hour) out.assumptions.emplace_back("no --usd-per-gpu-hour: no cost");
  return out;
}

std::string serve_json(const TuneServeAnswer& answer) {
  const tuning::ServeSettings& s = answer.arguments.settings;
  const tuning::Serving& v = answer.serving;
  const std::string over = answer.over();
  const json::Object figures{{"step_seconds", v.breakdown.total_seconds()},
                             {"tokens_per_second", v.tokens_per_second},
                             {"tokens_per_second_per_gpu", v.tokens_per_second / static_cast<double>(s.gpus)},
                             {"requests_per_second", v.request_rate_hertz},
                             {"time_to_first_token_seconds", v.first_token_seconds},
                             {"time_per_output_token_seconds", v.token_seconds},
                             {"time_per_output_token_worst_seconds", v.token_worst_seconds},
                             {"request_seconds", v.request_seconds},
                             {"prefill_seconds", v.prefill_seconds},
                             {"decode_step_seconds", v.decode.total_seconds()},
                             {"tokens_per_decode_step", v.tokens_per_step_total},
                             {"batch_per_replica", v.batch_total},
                             {"batch_that_fits_per_replica", v.batch_fitting_total},
                             {"kv_cache_waste_ratio", v.cache_waste_ratio},
                             {"bound_by", s.output_tokens == 1 ? json::Value() : json::Value(v.is_memory_bound() ? "memory" : "compute")},
                             {"mfu_ratio", v.mfu_ratio},
                             {"attainable_ofu_ratio", v.attainable_ofu_ratio},
                             {"usd_per_million_output_tokens", answer.usd_per_million_tokens},
                             {"breakdown_seconds", breakdown_json(v.breakdown)},
                             {"decode_seconds", json::Object{{"weights", v.decode.weights_seconds}, {"kv_cache", v.decode.cache_seconds}, {"compute", v.decode.compute_seconds}, {"elementwise", v.decode.elementwise_seconds},
                                                             {"tensor_parallel", v.decode.tensor_parallel_seconds}, {"expert_parallel", v.decode.expert_parallel_seconds},
                                                             {"host", v.decode.host_seconds}}}};
  // What cannot run has no speed.
  const bool runs = answer.fits().value_or(true);
  const json::Object out{
      {"settings", json::Object{{"gpu", answer.gpu}, {"gpus", s.gpus}, {"fabric", answer.fabric}, {"tp", s.tensor}, {"ep", s.expert}, {"redundant_experts", s.redundant_experts}, {"dispatch", tuning::dispatch_name(s.dispatch)}, {"replicas", s.replicas()}, {"input_tokens", s.input_tokens},
                                {"output_tokens", s.output_tokens}, {"concurrency", s.concurrency}, {"precision", tuning::weight_format_name(s.weights)},
                                {"kv_precision", tuning::cache_format_name(s.cache)}, {"batching", s.continuous ? "continuous" : "static"}}},
      {"predicted", runs ? json::Value(figures) : json::Value()},
      {"memory_bytes_per_gpu", memory_json(v.memory)},
      {"kv_cache_bytes_per_token_per_gpu", v.cache_bytes_per_token},
      {"fits", answer.fits()},
      {"over", over.empty() ? json::Value() : json::Value(over)},
      {"measured", json::Value()},
      {"advice", views::advice_json(answer.findings)},
      {"rejected", views::rejected_json(answer.findings)},
      {"assumptions", json::Array(answer.assumptions.begin(), answer.assumptions.end())},
  };
  return json::dump(out) + "\n";
}

std::string serve_table(const TuneServeAnswer& answer) {
  std::string out;
  for (const auto& fact : facts(answer)) out += fact.first + std::string(fact.first.size() < 24 ? 24 - fact.first.size() : 1, ' ') + fact.second + "\n";
  if (answer.fits().value_or(true)) out += breakdown_table(answer.arguments.settings.output_tokens > 1 ? "between two decode steps" : "prefills", answer.serving.breakdown, "in all, with prefills");
  out += memory_table(answer.serving.memory);
  out += advice_table(answer.findings) + "\n";
  for (const std::string& assumption : answer.assumptions) out += "assumed: " + assumption + "\n";
  return out;
}

std::string serve_html(const TuneServeAnswer& answer) {
  HtmlPage page;
  page.title = "Predicted serving: " + answer.arguments.config_path;
  page.facts = facts(answer);
  if (answer.fits().value_or(true)) page.parts = breakdown_parts(answer.serving.breakdown);
  page.parts_title = answer.arguments.settings.output_tokens > 1 ? "Where the time between two decode steps goes" : "Where the time of prefills goes";
  page.memory = answer.serving.memory;
  page.findings = &answer.findings;
  page.assumptions = answer.assumptions;
  return html_page(page);
}

}  // namespace flopsight::app
