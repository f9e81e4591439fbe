#include "serve/job_audit.h"

#include <algorithm>

#include "audit/told_model.h"
#include "base/json.h"
#include "serve/job_answers.h"
#include "serve/job_models.h"
#include "views/audit_json.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kKnownMax = 64;
constexpr units::Seconds kShortestTime{60};  // that OFU is taken over
std::string figure(const std::optional<double>& value) { return value ? base::json::number_text(*value) + " " : "- "; }

}  // namespace

base::Result<std::optional<double>> ofu_while_reported(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                                       const analysis::JobAnswer& job, const std::string& id, const Caller& caller) {
  const auto& reported = job.reported;
  if (!reported || !reported->first || !reported->last) return job.summary.ofu_ratio;
  units::Window window{*reported->first, *reported->last};
  // One step, which ended at its time.
  if (window.end <= window.start) window.start = window.start - units::Seconds(std::max(kShortestTime.value, reported->step_seconds.value_or(0)));
  samples::QualityLog unused;
  const auto then = answer_known_job(reader, jobs, settings, id, window, caller, unused);
  // Not seen at all in that time. What was measured at another time is not put in its place: the job may have done something else then.
  if (!then.ok() && then.error().code == base::ErrorCode::kNotFound) return std::optional<double>();
  if (!then.ok()) return then.error();
  return then->summary.ofu_ratio;
}

base::Result<std::optional<double>> recompute_overhead(JobService& jobs, const AnswerSettings& settings, const analysis::JobAnswer& job) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<JobModel> model, model_of(jobs, settings.models.get(), job));
  if (!model) return std::optional<double>();
  FLOPSIGHT_ASSIGN_OR_RETURN(const audit::Run run, audit::parse_told_model(model->told));
  if (!run.recompute || !run.sequence_tokens) return std::optional<double>();
  const double with = audit::expected_ofu_over_mfu(run, *run.recompute, std::nullopt).ratio;
  return std::optional(with / audit::expected_ofu_over_mfu(run, flops::Recompute::kNone, std::nullopt).ratio);
}

base::Result<std::optional<audit::Audit>> JobAudits::audit(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                           const analysis::JobAnswer& job, const std::string& id, const Caller& caller) {
  if (!job.reported) return std::optional<audit::Audit>();
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<JobModel> known_model, model_of(jobs, settings.models.get(), job));
  if (!known_model) return std::optional<audit::Audit>();
  audit::Claim claim;
  claim.mfu_ratio = job.reported->mfu_ratio;
  claim.flops_per_second_per_gpu = job.reported->flops_per_second_per_gpu;
  claim.tokens_per_second_per_gpu = job.reported->tokens_per_second_per_gpu;
  claim.peak_flops_per_second = job.reported->peak_flops_per_second_implied;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<double> ofu, ofu_while_reported(reader, &jobs, settings, job, id, caller));
  const std::string model = job.models.size() == 1 ? job.models.front() : std::string();  // of several no one peak is the job's
  const std::string asked = figure(claim.mfu_ratio) + figure(claim.flops_per_second_per_gpu) + figure(claim.tokens_per_second_per_gpu) +
                            figure(claim.peak_flops_per_second) + figure(ofu) + model + " " + std::to_string(job.summary.gpu_count) + " " + known_model->from + " " + known_model->told;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(id);
    if (found != known_.end() && found->second.asked == asked) return std::optional(found->second.audit);
  }
  const catalog::DeviceCatalog& catalog = settings.fleet.catalog != nullptr ? *settings.fleet.catalog : catalog::DeviceCatalog::builtin();
  FLOPSIGHT_ASSIGN_OR_RETURN(audit::Run run, audit::parse_told_model(known_model->told));
  if (!model.empty()) run.device = catalog.find_whole(model);
  if (!model.empty() && run.device == nullptr) run.unknown_device = catalog.not_found(model);
  if (job.summary.gpu_count > 0) run.layout.gpus = job.summary.gpu_count;
  audit::Audit audit = audit::audit(run, claim, {ofu, false}, catalog);
  audit.assumptions.insert(audit.assumptions.begin(), "model: " + known_model->from);
  if (!ofu) audit.missing.insert(audit.missing.begin(), kNoOfu);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kKnownMax) known_.clear();
  known_[id] = {asked, audit};
  return std::optional(std::move(audit));
}

base::Result<std::optional<jobs::AuditFinding>> JobAudits::finding(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                                   const analysis::JobAnswer& job, const std::string& id, const Caller& caller,
                                                                   units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<audit::Audit> audited, audit(reader, jobs, settings, job, id, caller));
  if (!audited) return std::optional<jobs::AuditFinding>();
  jobs::AuditFinding finding;
  finding.holder = job.holder;
  finding.time = now;
  finding.verdict = audit::verdict_name(audited->verdict);
  finding.summary = audited->summary;
  for (const audit::Ranked& ranked : audited->hypotheses) finding.hypotheses.push_back(ranked.hypothesis.id);
  finding.evidence_json = views::finding_json(*audited, now, *job.reported);
  return std::optional(std::move(finding));
}

base::Status JobAudits::audit_answer(store::Reader& reader, JobService& jobs, const AnswerSettings& settings, const std::string& id,
                                     const Caller& caller, units::Instant now, analysis::JobAnswer& job) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<jobs::AuditFinding> of_window, finding(reader, jobs, settings, job, id, caller, now));
  if (of_window) job.audit = std::move(of_window);
  return {};
}

void note_discrepancy(const analysis::JobAnswer& job, samples::QualityLog& quality) {
  if (job.audit && job.audit->is_discrepancy()) quality.add("mfu_discrepancy", job.id + ": " + job.audit->verdict);
}

}  // namespace flopsight::app
