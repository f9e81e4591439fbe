#include "advisor/measured_job.h"

#include "base/text.h"
#include "jobbook/open_jobs.h"
#include "serve/job_advice.h"
#include "serve/job_answers.h"

namespace flopsight::app {

std::optional<std::string> set_job_window(const std::string& prefix, const JobWindowTexts& t, JobWindow& w) {
  const auto instant = [](const std::string& text, std::optional<units::Instant>& out) {
    if (!text.empty()) out = units::parse_instant(text);
    return text.empty() || out.has_value();
  };
  w.prefix = prefix;
  if (!instant(t.start, w.start)) return prefix + "start " + base::printable(t.start, 40) + ": expected RFC 3339 with an offset or Unix seconds";
  if (!instant(t.end, w.end)) return prefix + "end " + base::printable(t.end, 40) + ": expected RFC 3339 with an offset or Unix seconds";
  if (!t.since.empty() && !(w.since = units::parse_duration(t.since))) return prefix + "since " + base::printable(t.since, 40) + ": expected a duration such as 24h or 90m";
  if (w.start && w.since) return prefix + "start and " + prefix + "since exclude each other";
  if (w.start && w.end && *w.end <= *w.start) return prefix + "end is not after " + prefix + "start";
  return std::nullopt;
}

base::Result<MeasuredJob> read_measured(const std::string& store_path, const JobWindow& w, const Env& env) {
  OpenedJobs opened;
  FLOPSIGHT_RETURN_IF_ERROR(open_jobs(store_path, opened));
  MeasuredJob out;
  samples::QualityLog quality;
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobInTime found, answer_job_in_time(opened, w.job, {w.start, w.end, w.since, w.prefix}, env.now(), quality));
  out.window = found.window;
  const analysis::JobAnswer& job = found.job;
  if (!job.summary.ofu_ratio) {
    return base::Error{base::ErrorCode::kNotFound, "job " + base::printable(w.job, 80) + ": nothing of it was measured in the window" + (job.absent_reason.empty() ? "" : " (" + job.absent_reason + ")")};
  }
  out.job = job.id;
  out.coverage_ratio = job.summary.coverage_ratio;
  out.gpu_count = job.summary.gpu_count;
  out.models = job.models;
  out.measured = measured_of(job);
  return out;
}

}  // namespace flopsight::app
