#include "jobbook/open_jobs.h"

#include <algorithm>

#include "base/text.h"
#include "serve/job_answers.h"

#include "serve/open_folder.h"

namespace flopsight::app {

base::Status open_jobs(const std::string& folder, OpenedJobs& opened) {
  FLOPSIGHT_RETURN_IF_ERROR(open_folder(folder, opened.store, opened.service));
  opened.settings.fleet.catalog = &opened.catalog;
  opened.settings.simulated = opened.store->simulated();
  opened.settings.grouping = std::make_shared<const jobs::Grouping>();
  opened.settings.families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  return {};
}

base::Result<JobInTime> answer_job_in_time(OpenedJobs& opened, const std::string& id, const AskedTime& asked, units::Instant now,
                                           samples::QualityLog& quality) {
  const units::Instant end = asked.end.value_or(now);
  const units::Window window{asked.start.value_or(end - asked.since.value_or(units::Seconds(24 * 3600))), end};
  const auto answer_in = [&](units::Window asked_for, bool is_own_time) -> base::Result<JobInTime> {
    const units::Window in = opened.store->answered(asked_for);
    samples::QualityLog noted = quality;
    FLOPSIGHT_ASSIGN_OR_RETURN(analysis::JobAnswer job, answer_known_job(*opened.store, opened.service.get(), opened.settings, id, in, everybody(), noted));
    quality = std::move(noted);
    return JobInTime{std::move(job), in, is_own_time};
  };
  auto answer = answer_in(window, false);
  const bool is_there = answer.ok() && answer->job.first < window.end && answer->job.last > window.start;
  if (is_there || (!answer.ok() && answer.error().code != base::ErrorCode::kNotFound)) return answer;
  const auto life = life_of_job(*opened.store, opened.service.get(), opened.settings, id, std::max(now, window.end), everybody());
  if (!life.ok() || life->end <= life->start) return answer;
  if (!asked.start && !asked.end && !asked.since) return answer_in(*life, true);
  return base::Error{base::ErrorCode::kNotFound, "job " + base::printable(id, 60) + " was not there between " + units::to_rfc3339(window.start) + " and " +
                                                     units::to_rfc3339(window.end) + ": it ran from " + units::to_rfc3339(life->start) + " to " +
                                                     units::to_rfc3339(life->end) + " (" + asked.prefix + "start " + units::to_rfc3339(life->start) + " " + asked.prefix +
                                                     "end " + units::to_rfc3339(life->end) + ")"};
}

}  // namespace flopsight::app
