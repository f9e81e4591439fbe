#include "report/command_report.h"

#include <filesystem>
#include <map>
#include <ostream>

#include "findings/ledger.h"
#include "serve/answer.h"
#include "serve/finding_service.h"
#include "serve/mfu_answers.h"
#include "serve/open_folder.h"
#include "serve/tile_overheads.h"
#include "base/text.h"
#include "report/reported_mfu_query.h"
#include "jobs/grouping.h"
#include "parse_file.h"
#include "report/report_sources.h"
#include "store/store.h"
#include "views/report_views.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Result;

int fail(const base::Error& error, const Env& env) { return fail(env, "report", error); }

void print(const analysis::Report& report, const ReportArguments& a, const Env& env) {
  switch (a.format) {
    case ReportFormat::kTable: env.out << views::report_table(report, {a.errors}); break;
    case ReportFormat::kJson: env.out << views::report_json(report); break;
    case ReportFormat::kCsv: env.out << views::report_csv(report); break;
  }
}

// The MFU that jobs report, beside their OFU; nothing where none does.
base::Status add_reported(store::Reader& stored, JobService& jobs, const AnswerSettings& answers, units::Window window,
                          const Caller& caller, analysis::Report& report) {
  FLOPSIGHT_ASSIGN_OR_RETURN(MfuAnswer answer, answer_mfu(stored, jobs, answers, window, caller));
  if (answer.comparison.points.empty()) return {};
  std::map<std::pair<std::string, std::string>, double> mfu;
  for (const analysis::MfuPoint& point : answer.comparison.points) mfu[{point.job, point.name_space}] = point.mfu_ratio;
  for (analysis::Group& group : report.groups) {
    if (const auto at = mfu.find(analysis::job_of(group)); at != mfu.end()) group.reported_mfu_ratio = at->second;
  }
  report.mfu = std::move(answer.comparison);
  return {};
}

// Those that are open and showed in the window; nothing where no service kept any.
base::Status add_findings(const std::string& folder, units::Window window, analysis::Report& report) {
  if (!std::filesystem::exists(findings::Ledger::path_in(folder))) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<findings::Ledger> ledger, findings::Ledger::open(folder, {true}));
  findings::Query query;
  query.states = {findings::State::kOpen, findings::State::kAcknowledged};
  query.window = window;
  query.limit = analysis::kFindingsMentionedMax;
  FLOPSIGHT_ASSIGN_OR_RETURN(const findings::Page page, ledger->find(query));
  report.findings.emplace();
  for (const findings::Record& record : page.records) report.findings->push_back(mention_of(record));
  report.finding_count = page.records_total;
  return {};
}

// From what `flopsight serve` or `flopsight import` stored; also while the service runs.
Result<analysis::Report> report_store(const ReportArguments& a, const ReportSettings& settings, units::Window window, const Env& env) {
  // What schedulers told is beside the rollups, where it was told.
  std::unique_ptr<store::Reader> stored;
  std::unique_ptr<JobService> jobs;
  FLOPSIGHT_RETURN_IF_ERROR(open_folder(a.store_path, stored, jobs));
  if (jobs != nullptr) jobs->use_clock(env.now);
  AnswerSettings answers;
  answers.fleet = settings.fleet;
  answers.prices = settings.prices;
  answers.simulated = stored->simulated();
  answers.grouping = std::make_shared<const jobs::Grouping>();
  const Caller everybody{"", true, true, true, {}, {}};
  window = stored->answered(window);
  FLOPSIGHT_ASSIGN_OR_RETURN(analysis::Report report, answer_fleet(*stored, answers, window, a.by, a.top,
                                                                   a.format == ReportFormat::kJson, everybody, jobs.get()));
  if (report.groups.empty()) {
    return base::Error{base::ErrorCode::kNotFound, a.store_path + ": nothing stored between " +
                                                       units::to_rfc3339(window.start) + " and " +
                                                       units::to_rfc3339(window.end)};
  }
  report.source += " " + a.store_path;
  if (jobs != nullptr && a.by == analysis::GroupBy::kJob) {
    FLOPSIGHT_RETURN_IF_ERROR(add_reported(*stored, *jobs, answers, window, everybody, report));
    FLOPSIGHT_RETURN_IF_ERROR(add_tile_overheads(jobs->book(), report));
  }
  FLOPSIGHT_RETURN_IF_ERROR(add_findings(a.store_path, window, report));
  return report;
}

}  // namespace

int run_report(const ReportArguments& a, const Env& env) {
  ReportSettings settings;
  if (const base::Status status = read_settings(a, settings); !status.ok()) {
    return fail(status.error(), env);
  }
  for (const std::string& note : settings.notes) env.err << error_line("report", note);
  const auto window = window_of(a, env);
  if (window && window->end <= window->start) {
    return fail({base::ErrorCode::kInvalid, "the window ends before it starts"}, env);
  }
  if (!a.store_path.empty()) {
    const auto stored = report_store(a, settings, *window, env);
    if (!stored.ok()) return fail(stored.error(), env);
    print(*stored, a, env);
    return kExitDone;
  }
  settings.fleet.integrate.window = window;
  SourceResult source;
  if (const base::Status status = roll_source(a, settings, window, env, source); !status.ok()) return fail(status.error(), env);

  const analysis::FamilyRule families = analysis::FamilyRule::builtin();
  analysis::ReportOptions options;
  options.by = a.by;
  options.families = &families;
  options.top = a.top;
  options.prices = settings.prices;
  options.source = source.name;
  options.assumptions = source.assumptions;
  const auto group_of = [&](const samples::Holder& holder) { return source.group_of(holder); };
  analysis::Report report = analysis::build_report(source.fleet, source.holders.mapped(group_of), std::move(source.quality), options);
  add_reported_mfu(source, group_of, report);
  print(report, a, env);
  return kExitDone;
}

}  // namespace flopsight::app
