#include "jobbook/command_jobs.h"

#include <cmath>
#include <ostream>

#include "base/file.h"
#include "base/text.h"
#include "base/zone.h"
#include "jobbook/jobs_import.h"
#include "jobbook/open_jobs.h"
#include "schedulers/job_json.h"
#include "serve/answer.h"
#include "serve/job_answers.h"
#include "serve/job_audit.h"
#include "serve/job_service.h"
#include "serve/late_jobs.h"
#include "store/disk.h"
#include "store/store.h"
#include "views/jobs_table.h"
#include "views/service_json.h"
#include "wire/gzip.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Result;
using base::json::Array;
using base::json::Object;

constexpr std::size_t kProblemsShown = 10;
constexpr std::size_t kInflatedBytesMax = std::size_t{1} << 30;  // of a compressed file

int fail(const base::Error& error, const Env& env) { return fail(env, "jobs", error); }

base::Status read_all(const JobsArguments& a, const base::Zone* zone, schedulers::Parsed& all) {
  schedulers::SlurmOptions options;
  options.cluster = a.cluster;
  options.zone = zone;
  for (const std::string& file : a.files) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string text, base::read_file(file));
    if (wire::looks_like_gzip(text)) {
      auto inflated = wire::gunzip(text, kInflatedBytesMax);
      if (!inflated.ok()) return inflated.error().within(file);
      text = std::move(inflated).value();
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(schedulers::Parsed parsed, read_jobs(file, text, options));
    all.jobs.insert(all.jobs.end(), std::make_move_iterator(parsed.jobs.begin()), std::make_move_iterator(parsed.jobs.end()));
    all.nodes.insert(all.nodes.end(), std::make_move_iterator(parsed.nodes.begin()), std::make_move_iterator(parsed.nodes.end()));
    for (schedulers::Problem& problem : parsed.problems) {
      problem.where = file + ": " + problem.where;
      all.problems.push_back(std::move(problem));
    }
    all.problem_count += parsed.problem_count;
    all.steps_skipped += parsed.steps_skipped;
  }
  return {};
}

void say_problems(const schedulers::Parsed& parsed, const Env& env) {
  for (std::size_t i = 0; i < parsed.problems.size() && i < kProblemsShown; ++i) {
    env.err << error_line("jobs", parsed.problems[i].where + ": " + parsed.problems[i].what);
  }
  if (parsed.problem_count > kProblemsShown) {
    env.err << error_line("jobs", "and " + std::to_string(parsed.problem_count - kProblemsShown) + " more that could not be read");
  }
}

base::json::Value count_or_null(const std::optional<std::uint32_t>& count) {
  return count ? base::json::Value(static_cast<double>(*count)) : base::json::Value();
}

// Jobs of which it stays unknown how many GPUs they held, where none of them says it: the cluster does not count GPUs.
void say_uncounted(const schedulers::Parsed& parsed, const Env& env) {
  std::size_t started = 0, uncounted = 0;
  for (const schedulers::Job& job : parsed.jobs) {
    started += job.start ? 1U : 0U;
    uncounted += job.start && !job.gpu_count ? 1U : 0U;
  }
  if (uncounted == 0 || uncounted < started) return;
  env.err << error_line("jobs", "of none of the " + std::to_string(started) + " jobs the number of GPUs is known; Slurm counts them with AccountingStorageTRES=gres/gpu, and `scontrol show job -d` "
                                "says those of running jobs");
}

// Where no service does it: what is stored and was nobody's becomes the GPU time of these jobs.
Result<double> attribute_stored(const std::string& folder, JobService& service) {
  const auto lock = store::FolderLock::take(folder);
  if (!lock.ok()) return 0.0;  // a service runs on it
  store::SqliteStoreOptions how;
  how.read_only = true;
  {
    const auto stored = store::open_sqlite_store(folder, how);
    if (!stored.ok()) return stored.error().code == base::ErrorCode::kNotFound ? Result<double>(0.0) : stored.error();
    how.slot = (*stored)->slot();
  }
  how.read_only = false;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::open_sqlite_store(folder, how));
  LateJobs late(service);
  for (bool more = true; more;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(more, late.step(*store));
  }
  return late.gpu_seconds() / 3600;
}

std::string import_json(const schedulers::Parsed& parsed, const store::JobBook::Put& put, bool kept, double attributed_gpu_hours) {
  Array jobs;
  for (const schedulers::Job& job : parsed.jobs) jobs.push_back(schedulers::to_json(job));
  Array nodes;
  for (const schedulers::Node& node : parsed.nodes) {
    nodes.emplace_back(Object{{"name", node.name}, {"state", node.state}, {"gpu_count", count_or_null(node.gpu_count)}, {"gpu_count_used", count_or_null(node.gpu_count_used)}});
  }
  Array problems;
  for (const schedulers::Problem& problem : parsed.problems) {
    problems.emplace_back(Object{{"where", problem.where}, {"what", problem.what}});
  }
  return base::json::dump(Object{{"jobs", std::move(jobs)},
                                     {"nodes", std::move(nodes)},
                                     {"kept", kept},
                                     {"added", put.added},
                                     {"changed", put.changed},
                                     {"unchanged", put.unchanged},
                                     {"not_started", put.not_started},
                                     {"attributed_gpu_hours", attributed_gpu_hours},
                                     {"steps_skipped", static_cast<std::uint64_t>(parsed.steps_skipped)},
                                     {"problem_count", static_cast<std::uint64_t>(parsed.problem_count)},
                                     {"problems", std::move(problems)}});
}

int run_import(const JobsArguments& a, const Env& env) {
  std::optional<base::Zone> zone;
  if (!a.zone.empty()) {
    auto found = base::Zone::find(a.zone);
    if (!found.ok()) return fail(found.error().within("--zone"), env);
    zone = std::move(found).value();
  }
  schedulers::Parsed parsed;
  if (const base::Status read = read_all(a, zone ? &*zone : nullptr, parsed); !read.ok()) return fail(read.error(), env);
  say_problems(parsed, env);
  say_uncounted(parsed, env);
  store::JobBook::Put put;
  double attributed_gpu_hours = 0;
  if (!a.dry_run) {
    const auto kept = [&]() -> base::Status {
      FLOPSIGHT_RETURN_IF_ERROR(store::real_disk().make_folder(a.store));
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<JobService> service, JobService::open(a.store, false));
      FLOPSIGHT_RETURN_IF_ERROR(service->tell_nodes(parsed.nodes, env.now()));
      FLOPSIGHT_ASSIGN_OR_RETURN(put, service->tell(parsed.jobs, env.now()));
      FLOPSIGHT_ASSIGN_OR_RETURN(attributed_gpu_hours, attribute_stored(a.store, *service));
      return {};
    }();
    if (!kept.ok()) return fail(kept.error(), env);
  }
  if (put.ambiguous > 0) {
    env.err << error_line("jobs", std::to_string(put.ambiguous) + " runs without a cluster are counted apart, since several clusters have that id and start (" +
                                      put.first_ambiguous + "); --cluster says whose they are");
  }
  if (a.json) {
    env.out << import_json(parsed, put, !a.dry_run, attributed_gpu_hours) << "\n";
    return kExitDone;
  }
  if (a.dry_run) {
    if (!parsed.jobs.empty() || parsed.nodes.empty()) env.out << views::told_jobs_table(parsed.jobs);
    if (!parsed.nodes.empty()) env.out << (parsed.jobs.empty() ? "" : "\n") << views::told_nodes_table(parsed.nodes);
    return kExitDone;
  }
  env.out << parsed.jobs.size() << " jobs read: " << put.added << " new, " << put.changed << " changed, " << put.unchanged
          << " known already, " << put.not_started << " not started yet\n";
  if (!parsed.nodes.empty()) env.out << parsed.nodes.size() << " hosts read\n";
  if (attributed_gpu_hours > 0) {
    env.out << base::json::number_text(std::round(attributed_gpu_hours * 100) / 100) << " GPU-hours of the store that were nobody's are theirs now\n";
  }
  return kExitDone;
}

units::Window window_of(const JobsArguments& a, const Env& env) {
  const units::Instant end = a.end.value_or(env.now());
  return {a.start.value_or(end - a.since.value_or(units::Seconds(24 * 3600))), end};
}

int run_list(const JobsArguments& a, const Env& env) {
  OpenedJobs opened;
  if (const base::Status status = open_jobs(a.store, opened); !status.ok()) return fail(status.error(), env);
  if (opened.service) opened.service->use_clock(env.now);
  const units::Window window = opened.store->answered(window_of(a, env));
  samples::QualityLog quality;
  const auto page =
      answer_known_jobs(*opened.store, opened.service.get(), opened.settings, window, everybody(), {}, {0, a.limit}, quality);
  if (!page.ok()) return fail(page.error(), env);
  std::optional<std::string> next;
  if (page->jobs_total > page->jobs.size()) {
    env.err << error_line("jobs", std::to_string(page->jobs_total - page->jobs.size()) + " more; see --limit");
    next = std::to_string(page->jobs.size());
  }
  if (a.json) {
    env.out << views::jobs_json({window, opened.settings.simulated, quality.entries()}, page->jobs, next);
  } else if (a.csv) {
    env.out << views::jobs_csv(page->jobs, opened.settings.simulated);
  } else {
    env.out << views::jobs_table(page->jobs);
  }
  return kExitDone;
}

int run_show(const JobsArguments& a, const Env& env) {
  OpenedJobs opened;
  if (const base::Status status = open_jobs(a.store, opened); !status.ok()) return fail(status.error(), env);
  if (opened.service) opened.service->use_clock(env.now);
  samples::QualityLog quality;
  auto found = answer_job_in_time(opened, a.id, {a.start, a.end, a.since}, env.now(), quality);
  if (!found.ok()) return fail(found.error(), env);
  analysis::JobAnswer* const job = &found->job;
  if (opened.service) {
    JobAudits audits;
    const base::Status audited = audits.audit_answer(*opened.store, *opened.service, opened.settings, a.id, everybody(), env.now(), *job);
    if (!audited.ok()) return fail(audited.error(), env);
  }
  note_discrepancy(*job, quality);
  env.out << (a.json ? views::job_json({found->window, opened.settings.simulated, quality.entries()}, *job) : views::job_text(*job));
  return kExitDone;
}

}  // namespace

int run_jobs(const JobsArguments& arguments, const Env& env) {
  switch (arguments.action) {
    case JobsArguments::Action::kImport: return run_import(arguments, env);
    case JobsArguments::Action::kList: return run_list(arguments, env);
    case JobsArguments::Action::kShow: return run_show(arguments, env);
  }
  return kExitUsage;
}

}  // namespace flopsight::app
