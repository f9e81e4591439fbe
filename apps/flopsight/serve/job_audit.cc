#include "serve/job_audit.h"

#include "audit/told_model.h"
#include "base/json.h"
#include "base/text.h"
#include "jobs/job_name.h"
#include "serve/job_answers.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kKnownMax = 64;
constexpr std::string_view kCountNote = "models told";

std::string note_key(const samples::Holder& holder) { return "model " + jobs::job_text(holder); }

// Told with the namespace, or by somebody who did not know it.
base::Result<std::optional<std::string>> told_of(JobService& jobs, samples::Holder holder) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<std::string> told, jobs.book().note(note_key(holder)));
  if (told || holder.name_space.empty()) return told;
  holder.name_space.clear();
  return jobs.book().note(note_key(holder));
}

std::string figure(const std::optional<double>& value) { return value ? base::json::number_text(*value) + " " : "- "; }

}  // namespace

base::Status tell_model(JobService& jobs, const samples::Holder& holder, std::string_view json_text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const audit::Run run, audit::parse_told_model(json_text));
  (void)run;
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto before, jobs.book().note(note_key(holder)));
  if (!before) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const auto counted, jobs.book().note(kCountNote));
    const double count = base::parse_number(counted.value_or("0")).value_or(0);
    if (count >= static_cast<double>(audit::kToldModelsMax)) {
      return base::Error{base::ErrorCode::kLimit, "models of " + std::to_string(audit::kToldModelsMax) + " jobs are kept already"};
    }
    FLOPSIGHT_RETURN_IF_ERROR(jobs.book().put_note(kCountNote, base::json::number_text(count + 1)));
  }
  return jobs.book().put_note(note_key(holder), json_text);
}

base::Result<std::optional<double>> ofu_while_reported(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                                       const analysis::JobAnswer& job, const std::string& id, const Caller& caller) {
  const auto& reported = job.reported;
  if (!reported || !reported->first || !reported->last || *reported->last <= *reported->first) return job.summary.ofu_ratio;
  samples::QualityLog unused;
  FLOPSIGHT_ASSIGN_OR_RETURN(const analysis::JobAnswer then, answer_known_job(reader, jobs, settings, id, {*reported->first, *reported->last}, caller, unused));
  return then.summary.ofu_ratio ? then.summary.ofu_ratio : job.summary.ofu_ratio;
}

base::Result<std::optional<audit::Audit>> JobAudits::audit(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                           const analysis::JobAnswer& job, const std::string& id, const Caller& caller) {
  if (!job.reported) return std::optional<audit::Audit>();
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<std::string> told, told_of(jobs, job.holder));
  if (!told) return std::optional<audit::Audit>();
  audit::Claim claim;
  claim.mfu_ratio = job.reported->mfu_ratio;
  claim.flops_per_second_per_gpu = job.reported->flops_per_second_per_gpu;
  claim.tokens_per_second_per_gpu = job.reported->tokens_per_second_per_gpu;
  claim.peak_flops_per_second = job.reported->peak_flops_per_second_implied;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<double> ofu, ofu_while_reported(reader, &jobs, settings, job, id, caller));
  const std::string model = job.models.size() == 1 ? job.models.front() : std::string();  // of several no one peak is the job's
  const std::string asked = figure(claim.mfu_ratio) + figure(claim.flops_per_second_per_gpu) + figure(claim.tokens_per_second_per_gpu) +
                            figure(claim.peak_flops_per_second) + figure(ofu) + model + " " + std::to_string(job.summary.gpu_count) + " " + *told;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(id);
    if (found != known_.end() && found->second.told == asked) return std::optional(found->second.audit);
  }
  const catalog::DeviceCatalog& catalog = settings.fleet.catalog != nullptr ? *settings.fleet.catalog : catalog::DeviceCatalog::builtin();
  FLOPSIGHT_ASSIGN_OR_RETURN(audit::Run run, audit::parse_told_model(*told));
  if (!model.empty()) run.device = catalog.find(model);
  if (job.summary.gpu_count > 0) run.layout.gpus = job.summary.gpu_count;
  audit::Audit audit = audit::audit(run, claim, {ofu, false}, catalog);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kKnownMax) known_.clear();
  known_[id] = {asked, audit};
  return std::optional(std::move(audit));
}

}  // namespace flopsight::app
