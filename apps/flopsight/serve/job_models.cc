#include "serve/job_models.h"

#include <filesystem>

#include "audit/model_rules.h"
#include "audit/told_model.h"
#include "base/file.h"
#include "jobs/job_name.h"
#include "jobs/label_rules.h"
#include "parse_file.h"
#include "tuning/told_training.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kMembersAsked = 64;

base::Result<std::string> told_of_file(const audit::ModelRule& rule, const std::filesystem::path& folder) {
  std::filesystem::path path = rule.config_path;
  if (path.is_relative()) path = folder / path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string config, base::read_file(path.string(), audit::kToldModelBytesMax));
  return audit::told_by_rule(rule, config);
}

// Told with the namespace, or by somebody who did not know it.
base::Result<std::optional<store::ToldModel>> told_of(JobService& jobs, const samples::Holder& holder) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<store::ToldModel> told, jobs.book().model(holder.job, holder.name_space));
  if (told || holder.name_space.empty()) return told;
  return jobs.book().model(holder.job, "");
}

}  // namespace

base::Result<JobModels> JobModels::read(const std::string& path, std::vector<std::string>& mistakes) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<audit::ModelRule> rules, parse_file(path, audit::parse_model_rules));
  JobModels models;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const audit::ModelRule& rule : rules) {
    base::Result<std::string> told = told_of_file(rule, folder);
    if (told.ok()) {
      models.rules_.push_back({rule.match, std::move(told).value()});
    } else {
      mistakes.push_back(path + ": line " + std::to_string(rule.line) + ": " + told.error().message);
    }
  }
  return models;
}

std::optional<JobModels::Match> JobModels::find(std::string_view name) const {
  for (const Rule& rule : rules_) {
    if (jobs::glob_matches(rule.match, name)) return Match{rule.match, rule.told};
  }
  return std::nullopt;
}

base::Result<std::optional<JobModel>> model_of(JobService& jobs, const JobModels* rules, const analysis::JobAnswer& job) {
  std::vector<samples::Holder> holders = {job.holder};
  for (const std::string& member : job.members) {
    if (holders.size() > kMembersAsked) break;
    if (const auto holder = jobs::parse_job_text(member)) holders.push_back(*holder);
  }
  for (const samples::Holder& holder : holders) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<store::ToldModel> told, told_of(jobs, holder));
    if (told) return std::optional(JobModel{std::move(told->text), "told of the job"});
  }
  if (rules == nullptr) return std::optional<JobModel>();
  for (const std::string_view name : {job.runs.empty() ? std::string_view() : std::string_view(job.runs.back().name), std::string_view(job.holder.job)}) {
    const auto match = name.empty() ? std::nullopt : rules->find(name);
    if (match) return std::optional(JobModel{std::string(match->told), "rule " + std::string(match->match)});
  }
  return std::optional<JobModel>();
}

base::Status tell_model(JobService& jobs, const samples::Holder& holder, std::string_view json_text, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const audit::Run run, audit::parse_told_model(json_text));
  FLOPSIGHT_ASSIGN_OR_RETURN(const tuning::ToldTraining training, tuning::parse_told_training(json_text));
  (void)run;
  (void)training;
  return jobs.book().put_model(holder.job, holder.name_space, json_text, now);
}

}  // namespace flopsight::app
