#include "jobbook/jobs_import.h"

#include "base/text.h"
#include "jobs/job_file.h"
#include "schedulers/job_json.h"

namespace flopsight::app {
namespace {

// Whether an object has the key itself, and not only somewhere inside.
bool has_key(std::string_view object, std::string_view key) {
  int depth = 0;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const char c = object[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t begin = i + 1;
    for (++i; i < object.size() && object[i] != '"'; ++i) i += object[i] == '\\' ? 1U : 0U;
    if (depth != 1 || i >= object.size() || object.substr(begin, i - begin) != key) continue;
    const std::size_t after = object.find_first_not_of(" \t\r\n", i + 1);
    if (after != std::string_view::npos && object[after] == ':') return true;
  }
  return false;
}

// A list of jobs as we print and take them: no answer of Slurm is a bare list, and all have "meta" beside "jobs" unless somebody took it away.
bool is_told(std::string_view text) {
  const std::string_view start = base::trim(text);
  return start.starts_with('[') || (start.starts_with('{') && !has_key(start, "meta") && !jobs::is_of_slurm(start));
}

bool is_jobs_file(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return !base::trim(text).starts_with('{') && line.find(',') != std::string_view::npos && line.find('|') == std::string_view::npos &&
         line.find('=') == std::string_view::npos;
}

}  // namespace

base::Result<schedulers::Parsed> read_jobs(const std::string& name, std::string_view text,
                                           const schedulers::SlurmOptions& options) {
  schedulers::Parsed parsed;
  if (base::trim(text).starts_with('[') && jobs::is_of_slurm(text)) {
    return base::Error{base::ErrorCode::kUnsupported, name + ": a list that looks like the jobs of Slurm's JSON without what is around them (\"jobs\", \"meta\"), expected the whole output of sacct, squeue or slurmrestd"};
  }
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
