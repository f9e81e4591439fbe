#include "tiles/command_gemm.h"

#include <cstdio>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "jobs/job_name.h"
#include "serve/job_answers.h"
#include "serve/open_folder.h"
#include "serve/tile_overheads.h"
#include "store/store.h"
#include "tiles/gemm_answer.h"
#include "error_line.h"

namespace flopsight::app {

namespace {

std::string source_of(const GemmArguments& arguments, const GemmAnswer& answer) {
  char text[64];
  if (!answer.trace) return "tiles of " + base::printable(arguments.config_path, 120) + (answer.modelled ? ", modelled" : ", as given");
  std::snprintf(text, sizeof text, ", %.1f %% of the tensor kernels' time", 100 * answer.trace->joined_time().value / answer.trace->tensor_time().value);
  return "trace " + base::printable(arguments.trace_path, 120) + text;
}

// That reports have such a job: an overhead of one that they do not have would be kept and never seen.
base::Status check_job(const GemmArguments& arguments, units::Instant now) {
  std::unique_ptr<store::Reader> rollups;
  std::unique_ptr<JobService> jobs;
  FLOPSIGHT_RETURN_IF_ERROR(open_folder(arguments.store_path, rollups, jobs));
  AnswerSettings settings;
  settings.grouping = std::make_shared<const jobs::Grouping>();
  samples::Holder wanted;
  wanted.job = arguments.job;
  wanted.name_space = arguments.name_space;
  const units::Window ever{units::Instant{0}, now + units::Seconds(24 * 3600)};
  const Caller everybody{"", true, true, true, {}, {}};
  const auto found = find_known_job(*rollups, jobs.get(), settings, jobs::job_text(wanted), ever, everybody);
  // A pod whose owner is the job is shown under its owner's name only.
  const samples::Holder shown = found.ok() ? group_of(found->holder, jobs.get(), settings) : samples::Holder{};
  if (found.ok() && shown.job == wanted.job && shown.name_space == wanted.name_space) return {};
  if (!found.ok() && found.error().code != base::ErrorCode::kNotFound) return found.error();
  if (jobs != nullptr) {
    const auto cluster = arguments.name_space.empty() ? std::nullopt : std::optional(arguments.name_space);
    FLOPSIGHT_ASSIGN_OR_RETURN(const auto runs, jobs->book().runs(arguments.job, cluster));
    if (!runs.empty()) return {};
  }
  const std::string hint = found.ok() ? "; reports show it as --job " + shown.job + (shown.name_space.empty() ? "" : " --namespace " + shown.name_space)
                                      : "; expected one as flopsight report --store names it";
  return base::Error{base::ErrorCode::kNotFound, arguments.store_path + ": no job " + base::printable(arguments.job, 120) +
                                                     (arguments.name_space.empty() ? "" : " in " + base::printable(arguments.name_space, 120)) + base::printable(hint)};
}

base::Status attach(const GemmArguments& arguments, units::Instant now, GemmAnswer& answer) {
  if (!answer.overhead_ratio()) return base::Error{base::ErrorCode::kInvalid, "--attach: no overhead is known: no tensor product has both tile and shape"};
  // The store is another's to make; a folder without one is a mistake in the path.
  store::SqliteStoreOptions how;
  how.read_only = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> stored, store::open_sqlite_store(arguments.store_path, how));
  FLOPSIGHT_RETURN_IF_ERROR(check_job(arguments, now));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<store::JobBook> book, store::JobBook::open(arguments.store_path, {}));
  FLOPSIGHT_RETURN_IF_ERROR(keep_tile_overhead(*book, arguments.job, arguments.name_space, {*answer.overhead_ratio(), source_of(arguments, answer)}));
  answer.attached = arguments.job + (arguments.name_space.empty() ? "" : " in " + arguments.name_space);
  return {};
}

}  // namespace

int run_gemm(const GemmArguments& arguments, const Env& env) {
  base::Result<GemmAnswer> answer = gemm_answer(arguments);
  if (answer.ok() && arguments.attach) {
    if (const base::Status status = attach(arguments, env.now(), *answer); !status.ok()) answer = status.error();
  }
  if (!answer.ok()) return fail(env, "gemm", answer.error());
  env.out << (arguments.json ? gemm_json(*answer) : gemm_table(*answer, arguments.top));
  return kExitDone;
}

}  // namespace flopsight::app
