#include <algorithm>

#include "base/json.h"
#include "tiles/gemm_answer.h"
#include "gemm/kernel_name.h"

namespace flopsight::app {
namespace {

namespace json = base::json;

// FLOPs that measured rates are summed up from: below it, launches and caches decide, which the prediction knows little of.
constexpr double kLargeFlops = 1e10;

json::Value suggestion_json(const GemmRow& row) {
  if (!row.suggestion) return {};
  const gemm::Suggestion& s = *row.suggestion;
  return json::Object{
      {"dimension", std::string(1, s.dimension)},
      {"m", s.shape.m},
      {"n", s.shape.n},
      {"k", s.shape.k},
      {"gain_ratio", s.gain_ratio},
      {"overhead_ratio", s.quantized.overhead_ratio()},
      {"wave_efficiency_ratio", s.quantized.waves ? json::Value(s.quantized.waves->efficiency_ratio) : json::Value()},
      {"reason", gemm::reason_name(s.reason)},
      {"aligns", s.aligns},
  };
}

json::Object row_json(const GemmRow& row) {
  const auto& waves = row.quantized.waves;
  json::Object out{
      {"m", row.shape.m},
      {"n", row.shape.n},
      {"k", row.shape.k},
      {"batch", row.shape.batch},
      {"count", row.count},
      {"tile", gemm::tile_text(row.tile)},
      {"tile_source", row.tile_source},
      {"split_k", row.splits},
      {"executed_flops", row.quantized.executed_flops},
      {"theoretical_flops", row.quantized.theoretical_flops},
      {"overhead_ratio", row.quantized.overhead_ratio()},
      {"ctas", row.quantized.ctas},
      {"waves", waves ? json::Value(waves->waves) : json::Value()},
      {"wave_efficiency_ratio", waves ? json::Value(waves->efficiency_ratio) : json::Value()},
      {"suggested", suggestion_json(row)},
  };
  if (row.swapped_overhead_ratio) out.emplace_back("swapped_overhead_ratio", *row.swapped_overhead_ratio);
  if (!row.what.empty()) out.emplace_back(row.time ? "kernel" : "what", row.what);
  if (!row.pass.empty()) out.emplace_back("pass", row.pass);
  if (row.time) out.emplace_back("seconds", row.time->value);
  return out;
}

json::Object trace_json(const gemm::TraceSummary& trace) {
  json::Object kinds;
  for (std::size_t i = 0; i < gemm::kKernelKinds; ++i) {
    kinds.emplace_back(std::string(gemm::kernel_kind_name(static_cast<gemm::KernelKind>(i))), json::Object{{"count", trace.count[i]}, {"seconds", trace.time[i].value}});
  }
  json::Array unread;
  for (const gemm::TraceNamed& kernel : trace.unread) unread.emplace_back(json::Object{{"kernel", kernel.kernel}, {"count", kernel.count}, {"seconds", kernel.time.value}});
  const double total = trace.total().value, tensor = trace.tensor_time().value;
  return {
      {"gpu", trace.gpu_name.empty() ? json::Value() : json::Value(trace.gpu_name)},
      {"events", trace.events},
      {"kernel_seconds", total},
      {"tensor_time_ratio", total > 0 ? json::Value(tensor / total) : json::Value()},
      {"overhead_covers_tensor_time_ratio", tensor > 0 ? json::Value(trace.joined_time().value / tensor) : json::Value()},
      {"kernels", std::move(kinds)},
      {"operators", trace.operators},
      {"operators_without_shape", trace.operators_without_shape},
      {"products_without_shape", json::Object{{"count", trace.without_shape}, {"seconds", trace.time_without_shape.value}, {"several_of_one_operator", trace.several_of_one}}},
      {"unread_kernels", std::move(unread)},
      {"operators_with_unusable_shape", trace.operators_with_unusable_shape},
      {"impossible_launches", trace.impossible},
      {"malformed_events", trace.malformed},
  };
}

json::Value errors_json(const std::optional<gemm::RateErrors>& errors) {
  if (!errors) return {};
  return json::Object{{"rows", static_cast<std::uint64_t>(errors->rows)}, {"median_ratio", errors->median_ratio}, {"p10_ratio", errors->p10_ratio}, {"p90_ratio", errors->p90_ratio},
                      {"median_absolute_ratio", errors->median_absolute_ratio}, {"within_25_percent_ratio", errors->within_quarter_ratio}};
}

json::Object rates_json(const std::vector<gemm::RateCheck>& rates) {
  json::Array rows, impossible;
  for (const gemm::RateCheck& check : rates) {
    const gemm::Shape& s = check.measured.shape;
    if (check.impossible) impossible.emplace_back(static_cast<std::uint64_t>(check.measured.line));
    rows.emplace_back(json::Object{{"line", static_cast<std::uint64_t>(check.measured.line)},
                                   {"m", s.m}, {"n", s.n}, {"k", s.k}, {"batch", s.batch},
                                   {"precision", catalog::precision_name(check.measured.precision)},
                                   {"measured_flops_per_second", check.measured.rate.value},
                                   {"predicted_flops_per_second", check.predicted ? json::Value(check.predicted->value) : json::Value()},
                                   {"impossible", check.impossible}});
  }
  return {{"rows", std::move(rows)},
          {"impossible_lines", std::move(impossible)},
          {"predicted_over_measured_less_one", json::Object{{"all", errors_json(gemm::rate_errors(rates, 0))}, {"from_1e10_flops", errors_json(gemm::rate_errors(rates, kLargeFlops))}}}};
}

}  // namespace

std::string gemm_json(const GemmAnswer& answer) {
  json::Array shapes;
  for (const GemmRow& row : answer.rows) shapes.emplace_back(row_json(row));
  json::Value accuracy;
  if (answer.accuracy) {
    accuracy = json::Object{{"same_tile_ratio", answer.accuracy->same_tile_ratio},
                            {"overhead_error_ratio", answer.accuracy->overhead_error_ratio},
                            {"on", answer.accuracy->on}};
  }
  json::Object out{
      {"gpu", answer.gpu.empty() ? json::Value() : json::Value(answer.gpu)},
      {"sm_count", answer.sm_count ? json::Value(*answer.sm_count) : json::Value()},
      {"precision", answer.precision ? json::Value(catalog::precision_name(*answer.precision)) : json::Value()},
      {"shapes", std::move(shapes)},
      {"overhead_ratio", answer.overhead_ratio()},
      {"tile_model_accuracy", accuracy},
  };
  if (answer.predicted) out.emplace_back("predicted_flops_per_second", answer.predicted->value);
  if (answer.trace) out.emplace_back("trace", trace_json(*answer.trace));
  if (!answer.rates.empty()) out.emplace_back("measured", rates_json(answer.rates));
  if (!answer.attached.empty()) out.emplace_back("attached_to", answer.attached);
  out.emplace_back("assumptions", json::Array(answer.assumptions.begin(), answer.assumptions.end()));
  return json::dump(out) + "\n";
}

}  // namespace flopsight::app
