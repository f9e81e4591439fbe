#include "jobbook/jobs_import.h"

#include "base/text.h"
#include "jobs/job_file.h"
#include "schedulers/job_json.h"

namespace flopsight::app {
namespace {

// A list of jobs as we print and take them: no answer of Slurm is a bare list, and all have "meta" beside "jobs".
bool is_told(std::string_view text) {
  const std::string_view start = base::trim(text);
  if (start.starts_with('[')) return true;
  return start.starts_with('{') && text.find("\"meta\"") == std::string_view::npos;
}

bool is_jobs_file(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.find(',') != std::string_view::npos && line.find('|') == std::string_view::npos &&
         line.find('=') == std::string_view::npos;
}

}  // namespace

base::Result<schedulers::Parsed> read_jobs(const std::string& name, std::string_view text,
                                           const schedulers::SlurmOptions& options) {
  schedulers::Parsed parsed;
  if (is_told(text)) {
    auto jobs = schedulers::parse_told_jobs(text);
    if (!jobs.ok()) return jobs.error().within(name);
    parsed.jobs = std::move(jobs).value();
  } else if (is_jobs_file(text)) {
    const auto records = jobs::parse_jobs(text);
    if (!records.ok()) return records.error().within(name);
    for (const jobs::JobRecord& record : *records) parsed.jobs.push_back(schedulers::from_record(record));
  } else {
    auto slurm = schedulers::read_slurm(text, options);
    if (!slurm.ok()) return slurm.error().within(name);
    parsed = std::move(slurm).value();
  }
  for (schedulers::Job& job : parsed.jobs) {
    if (job.cluster.empty()) job.cluster = options.cluster;
    if (job.source.empty()) job.source = "file";
  }
  return parsed;
}

}  // namespace flopsight::app
