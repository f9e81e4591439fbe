#include <algorithm>
#include <array>

#include "audit/told_model.h"
#include "base/json.h"
#include "base/text.h"
#include "jobs/job_name.h"
#include "schedulers/job_json.h"
#include "serve/job_models.h"
#include "serve/route_answers.h"
#include "serve/routes.h"
#include "training_logs/told_steps.h"

// What others tell by POST: jobs, and how fast a job says it trains. Answered once it is durable.

namespace flopsight::app {

using base::json::Object;
using base::json::Value;
using net::ServerRequest;
using net::ServerResponse;

namespace {

constexpr std::size_t kJobIdBytesMax = 1'000;

// By the id that answers give it (jobs/job_name.h); a name as its trainer writes it, where that is no such id.
store::ReportedKey key_of(std::string_view id, std::string source) {
  if (const auto holder = jobs::parse_job_text(id)) return {holder->job, holder->name_space, std::move(source)};
  return {std::string(id), "", std::move(source)};
}

}  // namespace

ServerResponse Routes::tell_jobs(const ServerRequest& request) {
  const auto told = schedulers::parse_told_jobs(request.body);
  if (!told.ok()) return failed(400, told.error().message);
  std::vector<schedulers::Job> jobs = *told;
  for (schedulers::Job& job : jobs) {
    if (job.source.empty()) job.source = "api";
  }
  const auto put = jobs_.tell(jobs, now_());
  if (!put.ok()) return not_kept(put.error());
  Object answer{{"added", put->added}, {"changed", put->changed}, {"unchanged", put->unchanged}, {"not_started", put->not_started}};
  if (put->ambiguous > 0) {
    answer.emplace_back("ambiguous", put->ambiguous);
    answer.emplace_back("first_ambiguous", put->first_ambiguous);
  }
  return json(base::json::dump(std::move(answer), 0) + "\n");
}

// Whether somebody else has spoken of the job: samples, or a scheduler. What is told of another is kept all the same, as a job is often
// told of after it began to report.
// Of a job that is not the caller's, as of one that is not there.
bool Routes::is_known(const store::ReportedKey& key, const Caller& caller) {
  samples::Holder holder;
  holder.job = key.job;
  holder.name_space = key.name_space;
  const auto runs = jobs_.book().runs(key.job, std::nullopt);
  if (runs.ok() && std::any_of(runs->begin(), runs->end(), [&](const store::ToldJob& told) {
        samples::Holder theirs = holder;
        theirs.user = told.job.user;
        theirs.team = told.job.account;
        return caller.sees(theirs);
      })) {
    return true;
  }
  auto reader = ingest_.reader(now_());
  if (!reader.ok()) return false;
  const auto found = (*reader)->find_job(jobs::job_text(holder));
  if (found.ok()) {
    return std::any_of(found->begin(), found->end(), [&](store::JobId job) { return caller.sees((*reader)->holder(job)); });
  }
  // Several of the name are known as well; whose they are is not looked up.
  return found.error().code == base::ErrorCode::kInvalid && caller.sees_all();
}

ServerResponse Routes::tell_mfu(const ServerRequest& request, const Caller& caller) {
  constexpr std::string_view kPrefix = "/api/v1/jobs/", kSuffix = "/mfu";
  const std::string_view path = request.path;
  const std::string_view id =
      path.substr(kPrefix.size(), path.size() - kPrefix.size() - kSuffix.size());
  if (id.empty() || id.size() > kJobIdBytesMax || id.starts_with('@'))
    return failed(400, "the path has no job: expected /api/v1/jobs/ID/mfu");
  const auto told = training_logs::parse_told_steps(request.body);
  if (!told.ok())
    return failed(told.error().code == base::ErrorCode::kLimit ? 422 : 400, told.error().message);
  const store::ReportedKey key = key_of(id, told->source);
  if (const base::Status put = jobs_.tell_reported(key, "api", told->steps, now_()); !put.ok())
    return not_kept(put.error());
  std::array<std::uint64_t, training_logs::kExclusionCount> excluded{};
  for (const training_logs::Step& step : told->steps) {
    if (step.excluded) ++excluded[static_cast<std::size_t>(*step.excluded)];
  }
  Object reasons;
  for (std::size_t i = 0; i < excluded.size(); ++i) {
    if (excluded[i] > 0) {
      reasons.emplace_back(
          std::string(training_logs::exclusion_name(static_cast<training_logs::Exclusion>(i))),
          excluded[i]);
    }
  }
  return json(base::json::dump(
                  Object{{"job", key.job},
                         {"namespace", key.name_space.empty() ? Value() : Value(key.name_space)},
                         {"is_known", is_known(key, caller)},
                         {"steps", static_cast<std::uint64_t>(told->steps.size())},
                         {"excluded", std::move(reasons)}},
                  0) +
              "\n");
}

ServerResponse Routes::tell_model(const ServerRequest& request, const Caller& caller) {
  constexpr std::string_view kPrefix = "/api/v1/jobs/", kSuffix = "/model";
  const std::string_view path = request.path;
  const std::string_view id = path.substr(kPrefix.size(), path.size() - kPrefix.size() - kSuffix.size());
  if (id.empty() || id.size() > kJobIdBytesMax || id.starts_with('@')) return failed(400, "the path has no job: expected /api/v1/jobs/ID/model");
  if (request.body.size() > audit::kToldModelBytesMax)
    return failed(413, "a model of " + std::to_string(request.body.size()) + " bytes, expected at most " + std::to_string(audit::kToldModelBytesMax));
  const store::ReportedKey key = key_of(id, "");
  samples::Holder holder;
  holder.job = key.job;
  holder.name_space = key.name_space;
  const base::Status told = app::tell_model(jobs_, holder, request.body, now_());
  if (!told.ok()) return told.error().code == base::ErrorCode::kInvalid || told.error().code == base::ErrorCode::kUnsupported ? failed(400, told.error().message) : not_kept(told.error());
  if (model_told_) model_told_(holder);
  return json(base::json::dump(Object{{"job", key.job}, {"namespace", key.name_space.empty() ? Value() : Value(key.name_space)}, {"is_known", is_known(key, caller)}}, 0) + "\n");
}

}  // namespace flopsight::app
