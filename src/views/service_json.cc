#include "views/service_json.h"

#include "schedulers/job_json.h"
#include "views/summary_internal.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;

Object head_json(const AnswerHead& head) {
  Object out;
  out.emplace_back("window", window_json(head.window));
  out.emplace_back("simulated", head.simulated);
  return out;
}

Object reported_json(const analysis::Reported& reported) {
  const auto time = [](const std::optional<units::Instant>& t) { return t ? Value(units::to_rfc3339(*t)) : Value(); };
  Object out;
  out.emplace_back("mfu_ratio", reported.mfu_ratio);
  out.emplace_back("flops_per_second_per_gpu", reported.flops_per_second_per_gpu);
  out.emplace_back("tokens_per_second_per_gpu", reported.tokens_per_second_per_gpu);
  out.emplace_back("step_seconds", reported.step_seconds);
  out.emplace_back("steps_used", reported.steps_used);
  out.emplace_back("steps_excluded", reported.steps_excluded);
  out.emplace_back("peak_flops_per_second_implied", reported.peak_flops_per_second_implied);
  out.emplace_back("first", time(reported.first));
  out.emplace_back("last", time(reported.last));
  out.emplace_back("source", text_or_null(reported.source));
  out.emplace_back("format", text_or_null(reported.format));
  return out;
}

Object job_object(const analysis::JobAnswer& job) {
  Object out;
  out.emplace_back("id", job.id);
  out.emplace_back("job", text_or_null(job.holder.job));
  out.emplace_back("namespace", text_or_null(job.holder.name_space));
  out.emplace_back("user", text_or_null(job.holder.user));
  out.emplace_back("team", text_or_null(job.holder.team));
  out.emplace_back("attributed_by", text_or_null(job.holder.rule));
  out.emplace_back("first", units::to_rfc3339(job.first));
  out.emplace_back("last", units::to_rfc3339(job.last));
  out.emplace_back("models", strings(job.models));
  add_summary(out, job.summary);
  if (job.gpu_count_unknown) {
    for (auto& [name, value] : out) {
      if (name == "gpu_count") value = Value();
    }
  }
  add_tile(out, job.summary);
  out.emplace_back("gpu_count_told", job.gpu_count_told ? Value(*job.gpu_count_told) : Value());
  out.emplace_back("ofu_ratio_min", job.spread.ofu_ratio_min);
  out.emplace_back("ofu_ratio_p5", job.spread.ofu_ratio_p5);
  out.emplace_back("ofu_ratio_p50", job.spread.ofu_ratio_p50);
  out.emplace_back("ofu_ratio_p95", job.spread.ofu_ratio_p95);
  out.emplace_back("ofu_ratio_max", job.spread.ofu_ratio_max);
  out.emplace_back("energy_joules", job.energy_joules);
  out.emplace_back("energy_coverage_ratio", job.energy_coverage_ratio);
  out.emplace_back("absent_reason", text_or_null(job.absent_reason));
  out.emplace_back("waterfall", waterfall_json(job.waterfall));
  out.emplace_back("reported", job.reported ? Value(reported_json(*job.reported)) : Value());
  out.emplace_back("audit_verdict", job.audit ? Value(job.audit->verdict) : Value());
  out.emplace_back("finding_count", job.finding_count);
  out.emplace_back("findings", findings_json(job.findings));
  out.emplace_back("family", text_or_null(job.family));
  out.emplace_back("members", strings(job.members));
  Array runs;
  for (const schedulers::Job& run : job.runs) runs.push_back(schedulers::to_json(run));
  out.emplace_back("runs", std::move(runs));
  return out;
}

std::string finish(Object& out, const AnswerHead& head) {
  out.emplace_back("quality", quality_json(head.quality));
  return base::json::dump(out, 0) + "\n";
}

template <typename T>
Array column(const std::vector<T>& values) {
  Array out;
  out.reserve(values.size());
  for (const T& value : values) out.emplace_back(Value(value));
  return out;
}

}  // namespace

std::string jobs_json(const AnswerHead& head, const std::vector<analysis::JobAnswer>& jobs,
                      const std::optional<std::string>& next_cursor) {
  Object out = head_json(head);
  Array list;
  for (const analysis::JobAnswer& job : jobs) list.emplace_back(job_object(job));
  out.emplace_back("jobs", std::move(list));
  out.emplace_back("next_cursor", Value(next_cursor));
  return finish(out, head);
}

std::string job_json(const AnswerHead& head, const analysis::JobAnswer& job) {
  Object out = head_json(head);
  for (auto& field : job_object(job)) out.push_back(std::move(field));
  add_error(out, job.summary.error);
  out.emplace_back("error_sources", error_sources_json());
  const auto audit = job.audit ? base::json::parse(job.audit->evidence_json) : base::Result<Value>(Value());
  out.emplace_back("audit", audit.ok() ? *audit : Value());
  return finish(out, head);
}

std::string series_json(const AnswerHead& head, const std::string& id, const analysis::JobSeries& series) {
  Object out = head_json(head);
  out.emplace_back("id", id);
  out.emplace_back("step_seconds", series.step.value);
  Array times;
  for (const units::Instant t : series.time) times.emplace_back(units::to_rfc3339(t));
  out.emplace_back("time", std::move(times));
  out.emplace_back("ofu_ratio", column(series.ofu_ratio));
  out.emplace_back("tensor_active_ratio", column(series.tensor_active_ratio));
  out.emplace_back("sm_active_ratio", column(series.sm_active_ratio));
  out.emplace_back("dram_active_ratio", column(series.dram_active_ratio));
  out.emplace_back("sm_clock_hertz", column(series.sm_clock_hertz));
  out.emplace_back("coverage_ratio", column(series.coverage_ratio));
  out.emplace_back("power_watts", column(series.power_watts));
  out.emplace_back("gpu_count", column(series.gpu_count));
  out.emplace_back("nvlink_bytes_per_second", column(series.nvlink_bytes_per_second));
  out.emplace_back("pcie_bytes_per_second", column(series.pcie_bytes_per_second));
  out.emplace_back("ofu_ratio_p5", column(series.ofu_ratio_p5));
  out.emplace_back("ofu_ratio_p50", column(series.ofu_ratio_p50));
  out.emplace_back("ofu_ratio_p95", column(series.ofu_ratio_p95));
  out.emplace_back("reported_mfu_ratio", column(series.reported_mfu_ratio));
  Array reasons;
  for (const std::string& reason : series.absent_reason) reasons.push_back(text_or_null(reason));
  out.emplace_back("absent_reason", std::move(reasons));
  return finish(out, head);
}

std::string gpus_json(const AnswerHead& head, const std::string& id, const std::vector<analysis::GpuRow>& gpus,
                      const std::optional<std::string>& next_cursor) {
  Object out = head_json(head);
  out.emplace_back("id", id);
  Array list;
  for (const analysis::GpuRow& row : gpus) list.emplace_back(gpu_json(row));
  out.emplace_back("gpus", std::move(list));
  out.emplace_back("next_cursor", Value(next_cursor));
  return finish(out, head);
}

std::string mfu_json(const AnswerHead& head, const analysis::MfuComparison& comparison, std::uint64_t jobs_without_mfu,
                     std::uint64_t jobs_without_ofu) {
  Object out = head_json(head);
  for (auto& [key, value] : mfu_object(comparison)) out.emplace_back(key, std::move(value));
  out.emplace_back("jobs_without_mfu", jobs_without_mfu);
  out.emplace_back("jobs_without_ofu", jobs_without_ofu);
  return finish(out, head);
}

std::string error_json(std::string_view message) {
  Object out;
  out.emplace_back("error", message);
  return base::json::dump(out, 0) + "\n";
}

}  // namespace flopsight::views
