#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "views/text_table.h"
#include "views/validation_views.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;
using validation::Agreement;
using validation::Point;
using validation::PrecisionRow;

std::string_view simulated_text(const ExperimentHead& head) { return head.simulated ? "SIMULATED " : ""; }

std::string shape_text(const gemm::Shape& shape) { return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k); }

std::string head_text(const ExperimentHead& head) {
  std::string out = fmt::format("{}{}, {} SMs, {}", simulated_text(head), base::printable(head.gpu), head.sm_count, units::to_rfc3339(head.start));
  if (!head.gpu_raw.empty()) out += fmt::format("\n{} {}", base::printable(head.gpu_raw), base::printable(head.uuid));
  const auto add = [&](std::string_view name, const std::string& version) {
    if (!version.empty()) out += fmt::format(", {} {}", name, base::printable(version));
  };
  add("driver", head.driver_version);
  add("CUDA", head.cuda_version);
  add("cublasLt", head.library_version);
  out += fmt::format("\ncounters: {}, a reading every {:g} s", base::printable(head.counters), head.interval.value);
  if (head.simulated) out += fmt::format(", seed {}; no figure here says anything of a real GPU", head.seed);
  return out + "\n\n";
}

Object agreement_json(const Agreement& agreement) {
  return {{"points", std::uint64_t{agreement.points}},
          {"error_mean_ratio", agreement.error_mean_ratio},
          {"error_max_ratio", agreement.error_max_ratio},
          {"bias_ratio", agreement.bias_ratio},
          {"within_2_points_ratio", agreement.within_2_points_ratio},
          {"within_5_points_ratio", agreement.within_5_points_ratio}};
}

Object point_json(const Point& point) {
  return {{"precision", catalog::precision_name(point.what.precision)},
          {"m", point.what.shape.m},
          {"n", point.what.shape.n},
          {"k", point.what.shape.k},
          {"aligned", point.what.aligned},
          {"tile", gemm::tile_text(point.tile)},
          {"tile_source", validation::tile_source_name(point.tile_source)},
          {"kernel", point.prepared.kernel},
          {"launches", point.launches},
          {"elapsed_seconds", point.elapsed.value},
          {"theoretical_flops", point.quantized.theoretical_flops},
          {"executed_flops", point.quantized.executed_flops},
          {"overhead_ratio", point.quantized.overhead_ratio()},
          {"samples", point.counted.samples},
          {"tensor_active_ratio", point.counted.tensor_active_ratio},
          {"sm_clock_hertz_mean", point.counted.sm_clock_hertz_mean},
          {"reference_clock_hertz", point.reference_clock_hertz},
          {"mfu_ratio", point.mfu_ratio},
          {"ofu_ratio", point.ofu_ratio},
          {"ofu_adjusted_ratio", point.ofu_adjusted_ratio()},
          {"true_ofu_ratio", point.true_ofu_ratio}};
}

Value known(const std::string& text) { return text.empty() ? Value() : Value(text); }

}  // namespace

std::string validation_table(const ExperimentHead& head, const validation::Experiment& experiment) {
  std::vector<text_table::Column> columns = {{"precision", {}, true}, {"products", {}}, {"OFU MAE", {}}, {"<=2 pp", {}},  {"<=5 pp", {}},
                                             {"OFU_adj MAE", {}},     {"<=2 pp", {}},   {"<=5 pp", {}},  {"worst adj", {}}, {"overhead up to", {}}};
  std::size_t modelled = 0;
  for (const PrecisionRow& row : validation::agreement_by_precision(experiment.points)) {
    const std::string cells[] = {std::string(catalog::precision_name(row.precision)),
                                 std::to_string(row.ofu.points),
                                 fmt::format("{:.2f}", 100 * row.ofu.error_mean_ratio),
                                 fmt::format("{:.0f} %", 100 * row.ofu.within_2_points_ratio),
                                 fmt::format("{:.0f} %", 100 * row.ofu.within_5_points_ratio),
                                 fmt::format("{:.2f}", 100 * row.adjusted.error_mean_ratio),
                                 fmt::format("{:.0f} %", 100 * row.adjusted.within_2_points_ratio),
                                 fmt::format("{:.0f} %", 100 * row.adjusted.within_5_points_ratio),
                                 fmt::format("{:.2f}", 100 * row.adjusted.error_max_ratio),
                                 fmt::format("{:.3f}", row.overhead_max_ratio)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
    modelled += row.tiles_modelled;
  }
  std::string out = head_text(head);
  if (experiment.points.empty()) out += "No product could be measured.\n";
  if (!experiment.points.empty()) {
    out += text_table::render(columns, columns[0].cells.size());
    out += "\nerrors against MFU from time, in points; OFU_adj: without what tiles execute for nothing\n";
  }
  if (modelled > 0) out += fmt::format("{} of {} tiles are modelled, as the library did not say them: OFU_adj is as good as that model\n", modelled, experiment.points.size());
  for (const validation::LeftOut& one : experiment.left_out) {
    out += fmt::format("left out: {} {}: {}\n", catalog::precision_name(one.what.precision), shape_text(one.what.shape), base::printable(one.reason, 300));
  }
  if (!head.complete) out += "ended before all products ran\n";
  return out;
}

std::string validation_json(const ExperimentHead& head, const validation::Experiment& experiment) {
  Object root;
  root.emplace_back("simulated", head.simulated);
  root.emplace_back("complete", head.complete);
  root.emplace_back("gpu", head.gpu);
  root.emplace_back("gpu_raw", known(head.gpu_raw));
  root.emplace_back("uuid", known(head.uuid));
  root.emplace_back("sm_count", head.sm_count);
  root.emplace_back("driver_version", known(head.driver_version));
  root.emplace_back("cuda_version", known(head.cuda_version));
  root.emplace_back("library_version", known(head.library_version));
  root.emplace_back("counters", head.counters);
  root.emplace_back("interval_seconds", head.interval.value);
  root.emplace_back("start", units::to_rfc3339(head.start));
  root.emplace_back("seed", head.seed);
  Array rows, points, left_out;
  for (const PrecisionRow& row : validation::agreement_by_precision(experiment.points)) {
    rows.emplace_back(Object{{"precision", catalog::precision_name(row.precision)},
                             {"ofu", agreement_json(row.ofu)},
                             {"ofu_adjusted", agreement_json(row.adjusted)},
                             {"overhead_max_ratio", row.overhead_max_ratio},
                             {"tiles_modelled", std::uint64_t{row.tiles_modelled}}});
  }
  for (const Point& point : experiment.points) points.emplace_back(point_json(point));
  for (const validation::LeftOut& one : experiment.left_out) {
    left_out.emplace_back(Object{{"precision", catalog::precision_name(one.what.precision)},
                                 {"m", one.what.shape.m},
                                 {"n", one.what.shape.n},
                                 {"k", one.what.shape.k},
                                 {"reason", one.reason}});
  }
  root.emplace_back("agreement", std::move(rows));
  root.emplace_back("points", std::move(points));
  root.emplace_back("left_out", std::move(left_out));
  return base::json::dump(root) + "\n";
}

std::string validation_csv(const ExperimentHead& head, const std::vector<Point>& points) {
  std::string out = fmt::format("# {}flopsight validate: {}, driver {}, {}\n", simulated_text(head), base::printable(head.gpu),
                                head.driver_version.empty() ? "not known" : base::printable(head.driver_version), units::to_rfc3339(head.start));
  out +=
      "simulated,precision,m,n,k,aligned,tile,tile_source,launches,elapsed_seconds,overhead_ratio,samples,tensor_active_ratio,sm_clock_hertz_mean,"
      "reference_clock_hertz,mfu_ratio,ofu_ratio,ofu_adjusted_ratio\n";
  using base::json::number_text;
  for (const Point& point : points) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", head.simulated, catalog::precision_name(point.what.precision),
                       point.what.shape.m, point.what.shape.n, point.what.shape.k, point.what.aligned, gemm::tile_text(point.tile),
                       validation::tile_source_name(point.tile_source), point.launches, number_text(point.elapsed.value),
                       number_text(point.quantized.overhead_ratio()), point.counted.samples, number_text(point.counted.tensor_active_ratio),
                       number_text(point.counted.sm_clock_hertz_mean), number_text(point.reference_clock_hertz), number_text(point.mfu_ratio),
                       number_text(point.ofu_ratio), number_text(point.ofu_adjusted_ratio()));
  }
  return out;
}

}  // namespace flopsight::views
