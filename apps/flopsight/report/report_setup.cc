// What is before the sources and after them: settings that files say, the window, and a fleet that is complete.

#include "base/text.h"
#include "jobs/grouping.h"
#include "parse_file.h"
#include "report/report_sources.h"

namespace flopsight::app {

// Everything that files on disk say, read before any network is touched.
base::Status read_settings(const ReportArguments& a, ReportSettings& settings) {
  settings.rules = jobs::LabelRules::builtin();
  settings.catalog = catalog::DeviceCatalog::builtin();
  if (!a.rules_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.rules, parse_file(a.rules_path, jobs::LabelRules::parse));
  }
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.catalog,
                               parse_file(a.catalog_path, catalog::DeviceCatalog::with_user_rows));
  }
  if (!a.jobs_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(auto records, parse_file(a.jobs_path, jobs::parse_jobs));
    settings.jobs = jobs::JobTable(std::move(records));
  }
  if (!a.prices_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.prices, parse_file(a.prices_path, analysis::Prices::parse));
    settings.prices.say_unknown(settings.catalog, settings.notes);
  }
  if (!a.training_metrics_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.metrics, parse_file(a.training_metrics_path, training_logs::ExportedMetrics::parse));
  }
  settings.http = a.http;
  FLOPSIGHT_RETURN_IF_ERROR(read_credentials(a, settings.http));
  settings.fleet.catalog = &settings.catalog;
  settings.fleet.override_clock = a.reference_clock;
  if (a.reference_nvml_max) settings.fleet.policy = model::ReferencePolicy::kNvmlMax;
  settings.fleet.integrate.bridge_intervals = settings.rules.bridge_intervals();
  return {};
}

// [start, end) from --start, --end and --since; nothing for files and scrapes without them.
std::optional<units::Window> window_of(const ReportArguments& a, const Env& env) {
  if (!a.start && !a.end && !a.since && a.prometheus.empty() && a.store_path.empty()) return std::nullopt;
  const units::Instant end = a.end.value_or(env.now());
  if (a.start) return units::Window{*a.start, end};
  return units::Window{end - a.since.value_or(units::Seconds(24 * 3600)), end};
}

base::Status roll_source(const ReportArguments& a, const ReportSettings& settings, const std::optional<units::Window>& window, const Env& env,
                         SourceResult& source) {
  FLOPSIGHT_RETURN_IF_ERROR(!a.files.empty()     ? roll_files(a.files, settings, source)
                            : !a.scrapes.empty() ? roll_scrapes(a.scrapes, settings, env.now(), source)
                                                 : roll_prometheus(a, *window, settings, env, source));
  if (window && !source.fleet.gpus.empty() && !source.fleet.has_times) {
    return base::Error{base::ErrorCode::kInvalid, source.name + ": no timestamps, expected some for --start, --end or --since"};
  }
  // From here on the fleet is complete: GPUs that only the jobs file knows are added as unmeasured.
  rollups::add_unseen_gpus(source.fleet, settings.fleet, settings.jobs, source.holders, source.quality);
  if (!source.fleet.gpus.empty()) return {};
  return base::Error{base::ErrorCode::kNotFound,
                     source.name + ": no GPU found, expected metrics of a GPU exporter (see flopsight docs metrics)" + source.hint()};
}

samples::Holder SourceResult::group_of(const samples::Holder& holder) const {
  samples::Holder named = holder;
  owners.complete(named);
  return jobs::Grouping().group_of(
      named, [&](const std::string& name_space, const std::string& pod) { return owners.owner_of(name_space, pod); });
}

}  // namespace flopsight::app
