#include "serve/mfu_answers.h"

#include <algorithm>
#include <map>
#include <set>

#include "jobs/job_name.h"
#include "rollups/totals.h"
#include "serve/job_answers.h"
#include "store/gpu_runs.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kReportersMax = 5'000;

bool known_wrong(const AnswerSettings& settings, const std::string& job) {
  return settings.known_wrong != nullptr &&
         std::any_of(settings.known_wrong->begin(), settings.known_wrong->end(), [&](const base::Regex& regex) { return regex.found_in(job); });
}

// From the first step that was reported to the last, or the window where no step has a time.
units::Window time_of(const analysis::Reported& reported, units::Window window) {
  if (!reported.first || !reported.last || *reported.last <= *reported.first) return window;
  return {*reported.first, *reported.last};
}

// Who reported, by the id of the job that it is a part of. Of members that the caller may not see, nothing is told.
base::Result<std::map<std::string, std::vector<samples::Holder>>> reporting_groups(store::Reader& reader, JobService& jobs,
                                                                                   const AnswerSettings& settings,
                                                                                   units::Window window, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto reporters, jobs.reporters(window));
  std::map<std::string, std::vector<samples::Holder>> groups;
  for (const store::Reporter& reporter : reporters) {
    samples::Holder holder;
    holder.job = reporter.job;
    holder.name_space = reporter.name_space;
    if (!caller.sees_all()) {
      const auto known = reader.find_job(jobs::job_text(holder));
      if (!known.ok() || std::none_of(known->begin(), known->end(), [&](store::JobId job) { return caller.sees(reader.holder(job)); })) continue;
    }
    groups[jobs::job_text(group_of(holder, &jobs, settings))].push_back(std::move(holder));
  }
  return groups;
}

std::vector<samples::Holder> without_copies(std::vector<samples::Holder> holders) {
  std::vector<samples::Holder> out;
  std::set<std::pair<std::string, std::string>> known;
  for (samples::Holder& holder : holders) {
    if (known.emplace(holder.job, holder.name_space).second) out.push_back(std::move(holder));
  }
  return out;
}

struct Seen {
  std::optional<double> ofu_ratio;
  std::uint64_t gpu_count = 0;
};

base::Result<Seen> seen_of(store::Reader& reader, const FoundJob& found, units::Window window) {
  double delivered_seconds = 0, measured_seconds = 0;
  std::vector<std::uint32_t> gpus;
  for (const store::JobId job : found.jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, reader.job_totals(window, job));
    for (const store::JobTotal& total : totals) {
      const rollups::Totals sum = rollups::totals_of(total.cell);
      delivered_seconds += sum.delivered_seconds;
      measured_seconds += sum.measured_seconds;
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, reader.members(window, job));
    for (const store::Member& member : members) gpus.insert(gpus.end(), member.gpus.begin(), member.gpus.end());
  }
  store::make_distinct(gpus);
  reader.make_whole(gpus);
  Seen seen;
  seen.gpu_count = gpus.size();
  if (measured_seconds > 0) seen.ofu_ratio = delivered_seconds / measured_seconds;
  return seen;
}

}  // namespace

base::Result<MfuAnswer> answer_mfu(store::Reader& reader, JobService& jobs, const AnswerSettings& settings, units::Window window,
                                   const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto groups, reporting_groups(reader, jobs, settings, window, caller));
  if (groups.size() > kReportersMax) {
    return base::Error{base::ErrorCode::kLimit, "more than " + std::to_string(kReportersMax) + " jobs report in the window"};
  }
  MfuAnswer answer;
  std::vector<analysis::MfuPoint> points;
  std::set<std::string> answered;
  for (const auto& [id, tellers] : groups) {
    const auto found = find_known_job(reader, &jobs, settings, id, window, caller);
    // Not the caller's to see, or never seen by us: for the latter everybody may know that it has no OFU.
    if (!found.ok()) {
      answer.jobs_without_ofu += caller.sees_all() ? 1U : 0U;
      continue;
    }
    // A reporter need not know its namespace.
    if (!answered.insert(found->id).second) continue;
    std::vector<samples::Holder> holders = {found->holder};
    holders.insert(holders.end(), tellers.begin(), tellers.end());
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<analysis::Reported> reported, jobs.reported_of(without_copies(std::move(holders)), window));
    // What cannot be is for audits, and would drown what can.
    if (!reported || !reported->mfu_ratio || *reported->mfu_ratio > 1) {
      ++answer.jobs_without_mfu;
      continue;
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const Seen seen, seen_of(reader, *found, time_of(*reported, window)));
    if (!seen.ofu_ratio) {
      ++answer.jobs_without_ofu;
      continue;
    }
    points.push_back({found->holder.job, found->holder.name_space, seen.gpu_count, *reported->mfu_ratio, *seen.ofu_ratio,
                      known_wrong(settings, found->holder.job)});
  }
  answer.comparison = analysis::compare_mfu(std::move(points));
  return answer;
}

}  // namespace flopsight::app
