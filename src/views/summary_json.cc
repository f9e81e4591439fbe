#include "views/summary_internal.h"

namespace flopsight::views {

using base::json::Array;
using base::json::Object;
using base::json::Value;

Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

void add_summary(Object& out, const analysis::Summary& s) {
  out.emplace_back("gpu_count", s.gpu_count);
  out.emplace_back("gpu_hours_allocated", s.gpu_hours_allocated);
  out.emplace_back("gpu_hours_delivered", s.gpu_hours_delivered);
  out.emplace_back("gpu_hours_lost", s.gpu_hours_lost);
  out.emplace_back("gpu_hours_unmeasured", s.gpu_hours_unmeasured);
  out.emplace_back("ofu_ratio", s.ofu_ratio);
  out.emplace_back("ofu_ratio_low", s.ofu_ratio_low);
  out.emplace_back("ofu_ratio_high", s.ofu_ratio_high);
  out.emplace_back("tensor_active_ratio", s.tensor_active_ratio);
  out.emplace_back("sm_clock_hertz_mean", s.sm_clock_hertz_mean);
  out.emplace_back("clock_loss_ratio", s.clock_loss_ratio);
  out.emplace_back("coverage_ratio", s.coverage_ratio);
  out.emplace_back("cost_usd", s.cost_usd);
  out.emplace_back("cost_lost_usd", s.cost_lost_usd);
  out.emplace_back("cost_unmeasured_usd", s.cost_unmeasured_usd);
}

void add_tile(Object& out, const analysis::Summary& summary) {
  if (!summary.tile_overhead_ratio) return;
  out.emplace_back("ofu_adjusted_ratio", summary.ofu_adjusted_ratio());
  out.emplace_back("tile_overhead_ratio", *summary.tile_overhead_ratio);
  out.emplace_back("tile_overhead_source", summary.tile_overhead_source);
}

void add_error(Object& out, const std::optional<model::ErrorBudget>& error) {
  if (!error) {
    out.emplace_back("error_band", Value());
    out.emplace_back("error_parts", Value());
    return;
  }
  Array parts, unknown;
  parts.reserve(model::kErrorSources);
  for (std::size_t i = 0; i < model::kErrorSources; ++i) {
    const model::ErrorPart& part = error->parts[i];
    const std::string_view name = model::error_source_name(static_cast<model::ErrorSource>(i));
    const bool known = part.basis != model::ErrorBasis::kUnknown;
    if (!known) unknown.emplace_back(name);
    parts.emplace_back(Object{{"id", name},
                              {"basis", model::error_basis_name(part.basis)},
                              {"low_ratio", known ? Value(part.low_ratio) : Value()},
                              {"high_ratio", known ? Value(part.high_ratio) : Value()},
                              {"in_band", model::error_sum_name(part.sum)}});
  }
  out.emplace_back("error_band", Object{{"low_ratio", error->band.low_ratio},
                                        {"high_ratio", error->band.high_ratio},
                                        {"confidence_ratio", model::kConfidenceRatio},
                                        {"unknown", std::move(unknown)}});
  out.emplace_back("error_parts", std::move(parts));
}

Object error_sources_json() {
  Object out;
  for (std::size_t i = 0; i < model::kErrorSources; ++i) {
    const auto source = static_cast<model::ErrorSource>(i);
    out.emplace_back(std::string(model::error_source_name(source)), model::error_source_meaning(source));
  }
  return out;
}

Object waterfall_json(const analysis::Waterfall& w) {
  Object out;
  out.reserve(9);
  out.emplace_back("ofu_ratio", w.ofu_ratio);
  out.emplace_back("clock_loss_ratio", w.clock_loss_ratio);
  out.emplace_back("tensor_idle_sm_busy_ratio", w.tensor_idle_sm_busy_ratio);
  out.emplace_back("sm_idle_ratio", w.sm_idle_ratio);
  out.emplace_back("tensor_idle_unsplit_ratio", w.tensor_idle_unsplit_ratio);
  out.emplace_back("unmeasured_ratio", w.unmeasured_ratio);
  const auto part = [&](const char* key, bool known, Object parts) { out.emplace_back(key, known ? Value(std::move(parts)) : Value()); };
  const auto clock = w.clock.value_or(analysis::Waterfall::Clock{});
  part("clock_loss_by_cause", w.clock.has_value(),
       {{"power_cap_ratio", clock.power_cap_ratio},
        {"thermal_ratio", clock.thermal_ratio},
        {"setting_ratio", clock.setting_ratio},
        {"unexplained_ratio", clock.unexplained_ratio},
        {"gain_ratio", clock.gain_ratio}});
  const auto busy = w.sm_busy.value_or(analysis::Waterfall::SmBusy{});
  part("tensor_idle_sm_busy_by_cause", w.sm_busy.has_value(),
       {{"memory_bound_ratio", busy.memory_bound_ratio},
        {"other_kernels_ratio", busy.other_kernels_ratio},
        {"unsplit_ratio", busy.unsplit_ratio}});
  const auto idle = w.sm_idle.value_or(analysis::Waterfall::SmIdle{});
  part("sm_idle_by_cause", w.sm_idle.has_value(),
       {{"stalled_ratio", idle.stalled_ratio},
        {"communication_ratio", idle.communication_ratio},
        {"host_ratio", idle.host_ratio},
        {"small_kernels_ratio", idle.small_kernels_ratio},
        {"unsplit_ratio", idle.unsplit_ratio}});
  if (w.below_ofu) {
    const auto& below = *w.below_ofu;
    out.emplace_back("ofu_by_work", Object{{"model_ratio", below.model_ratio},
                                           {"tile_ratio", below.tile_ratio},
                                           {"tile_absent_reason", below.tile_ratio ? Value() : Value("no tiles were told of the job")},
                                           {"recompute_ratio", below.recompute_ratio},
                                           {"recompute_absent_reason", below.recompute_ratio ? Value() : Value("not told what the job computes again, or how long its sequences are")}});
  }
  return out;
}

Array strings(const std::vector<std::string>& list) {
  Array out;
  for (const std::string& item : list) out.emplace_back(item);
  return out;
}

Object gpu_json(const analysis::GpuRow& row) {
  Object out;
  out.emplace_back("uuid", text_or_null(row.gpu.uuid));
  out.emplace_back("mig_instance", text_or_null(row.gpu.mig_instance));
  out.emplace_back("mig_profile", text_or_null(row.gpu.mig_profile));
  out.emplace_back("host", text_or_null(row.gpu.host));
  out.emplace_back("index", text_or_null(row.gpu.index));
  out.emplace_back("model", text_or_null(row.model));
  out.emplace_back("model_raw", text_or_null(row.gpu.model_raw));
  out.emplace_back("driver_version", text_or_null(row.gpu.driver_version));
  out.emplace_back("job", row.jobs.size() == 1 ? Value(row.jobs[0]) : Value());
  out.emplace_back("jobs", strings(row.jobs));
  out.emplace_back("attributed_by", strings(row.attributed_by));
  out.emplace_back("shared_by", std::uint64_t{row.shared_by});
  out.emplace_back("reference_clock_hertz", row.reference_clock_hertz);
  out.emplace_back("reference_clock_source", text_or_null(row.reference_clock_source));
  out.emplace_back("tensor_active_ratio", row.tensor_active_ratio);
  out.emplace_back("sm_clock_hertz", row.sm_clock_hertz);
  out.emplace_back("ofu_ratio", row.ofu_ratio);
  out.emplace_back("coverage_ratio", row.coverage_ratio);
  out.emplace_back("absent_reason", text_or_null(row.absent_reason));
  return out;
}

Array quality_json(const std::vector<samples::QualityEntry>& entries) {
  Array list;
  for (const samples::QualityEntry& entry : entries) {
    Object out;
    out.emplace_back("code", entry.code);
    out.emplace_back("count", entry.count);
    out.emplace_back("where", entry.where);
    out.emplace_back("meaning", entry.meaning);
    list.emplace_back(std::move(out));
  }
  return list;
}

Object window_json(const std::optional<units::Window>& window) {
  Object out;
  out.emplace_back("start", window ? Value(units::to_rfc3339(window->start)) : Value());
  out.emplace_back("end", window ? Value(units::to_rfc3339(window->end)) : Value());
  return out;
}

namespace {

Object agreement_json(const analysis::MfuAgreement& agreement) {
  return {{"job_count", agreement.job_count},
          {"pearson_ratio", agreement.pearson_ratio},
          {"spearman_ratio", agreement.spearman_ratio},
          {"correlation_absent_reason", text_or_null(std::string(agreement.correlation_absent_reason))},
          {"error_mean_ratio", agreement.error_mean_ratio},
          {"within_5_points_ratio", agreement.within_5_points_ratio},
          {"within_10_points_ratio", agreement.within_10_points_ratio}};
}

}  // namespace

Object mfu_object(const analysis::MfuComparison& comparison) {
  Object out;
  out.emplace_back("all", agreement_json(comparison.all));
  out.emplace_back("without_known_wrong", agreement_json(comparison.without_known_wrong));
  Array sizes;
  for (const auto& size : comparison.by_size) {
    Object row{{"gpu_count_min", size.gpu_count_min}, {"gpu_count_max", size.gpu_count_max}};
    for (auto& [key, value] : agreement_json(size.agreement)) row.emplace_back(key, std::move(value));
    sizes.emplace_back(std::move(row));
  }
  out.emplace_back("by_size", std::move(sizes));
  Array points;
  for (const analysis::MfuPoint& point : comparison.points) {
    points.emplace_back(Object{{"job", point.job},
                               {"namespace", text_or_null(point.name_space)},
                               {"gpu_count", point.gpu_count},
                               {"reported_mfu_ratio", point.mfu_ratio},
                               {"ofu_ratio", point.ofu_ratio},
                               {"formula_known_wrong", point.formula_known_wrong}});
  }
  out.emplace_back("points", std::move(points));
  return out;
}

base::json::Array findings_json(const std::vector<analysis::FindingMention>& findings) {
  base::json::Array out;
  for (const analysis::FindingMention& finding : findings) {
    out.emplace_back(base::json::Object{{"id", finding.id},
                                        {"kind", finding.kind},
                                        {"severity", finding.severity},
                                        {"state", finding.state},
                                        {"job", text_or_null(finding.job)},
                                        {"text", finding.text},
                                        {"cost_gpu_hours", finding.cost_gpu_hours},
                                        {"cost_usd", finding.cost_usd}});
  }
  return out;
}

}  // namespace flopsight::views
