#include "schedulers/slurm.h"

#include "base/text.h"
#include "schedulers/job_json.h"

namespace flopsight::schedulers {

namespace {

base::Result<Parsed> read_any(std::string_view text, const SlurmOptions& options) {
  const std::string_view start = base::trim(text);
  if (start.starts_with('{')) return read_slurm_json(text, options);
  const std::string_view line = start.substr(0, start.find('\n'));
  if (line.starts_with("JobId=") || line.starts_with("NodeName="))
    return read_scontrol_text(text, options);
  if (line.find('|') != std::string_view::npos) return read_sacct_text(text, options);
  // What the commands say where there is nothing.
  if (line.starts_with("No jobs in the system") || line.starts_with("No nodes in the system"))
    return Parsed();
  if (line.find("JOBID") != std::string_view::npos && line.find("NODELIST") != std::string_view::npos) {
    return base::Error{base::ErrorCode::kUnsupported,
                       "line 1: the table of squeue, which says neither when a job began nor which GPUs it has; expected `squeue --json` or "
                       "`scontrol show job -d`"};
  }
  if (start.empty())
    return base::Error{base::ErrorCode::kInvalid,
                       "empty, expected output of sacct, squeue or scontrol"};
  return base::Error{
      base::ErrorCode::kInvalid,
      "line 1: \"" + base::printable(line, 60) +
          "\", expected JSON, the header of `sacct -P`, or JobId= or NodeName= of scontrol"};
}

// They are kept, and shown in every answer.
void cut_long_texts(Parsed& parsed) {
  for (Job& job : parsed.jobs) {
    for (const auto member : {&Job::name, &Job::user, &Job::account, &Job::partition, &Job::qos, &Job::state, &Job::cluster}) {
      std::string& text = job.*member;
      if (text.size() <= kTextBytesMax) continue;
      text.resize(kTextBytesMax);
      ++parsed.problem_count;
      if (parsed.problems.size() < kProblemsMax) {
        parsed.problems.push_back({"job " + job.id, "\"" + base::printable(text, 20) + "\" is longer than " + std::to_string(kTextBytesMax) + " bytes; cut"});
      }
    }
  }
}

}  // namespace

base::Result<Parsed> read_slurm(std::string_view text, const SlurmOptions& options) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Parsed parsed, read_any(text, options));
  cut_long_texts(parsed);
  return parsed;
}

std::string_view sacct_columns() {
  // Restarts would be an error before Slurm 23.02, so it is not asked for.
  return "Cluster,JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,"
         "TimelimitRaw,AllocTRES,NodeList,"
         "NNodes,ExitCode,TRESUsageInTot,JobName";
}

}  // namespace flopsight::schedulers
