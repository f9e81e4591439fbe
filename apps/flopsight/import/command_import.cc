#include "import/command_import.h"

#include <cmath>
#include <ostream>

#include "base/json.h"
#include "base/text.h"
#include "import/import_sources.h"
#include "parse_file.h"
#include "serve/job_service.h"
#include "serve/serve_config.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Result;
using base::Status;

// Longer than any import: a GPU is not to be closed out because others take their time.
constexpr units::Seconds kNever{1e9};
// An hour of samples ten times a second.
constexpr std::uint32_t kRowsPerGpuMax = 50'000;

struct Settings {
  ServeConfig config;
  jobs::LabelRules rules;
  catalog::DeviceCatalog catalog;
  net::HttpOptions http;
};

Status read_settings(const ImportArguments& a, Settings& settings) {
  FLOPSIGHT_ASSIGN_OR_RETURN(settings.config, read_config(a.config_path, {}));
  ServeConfig& config = settings.config;
  if (!a.store.empty()) config.store = a.store;
  if (!a.rules_path.empty()) config.rules = a.rules_path;
  if (!a.catalog_path.empty()) config.gpu_catalog = a.catalog_path;
  settings.rules = jobs::LabelRules::builtin();
  if (!config.rules.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.rules, parse_file(config.rules, jobs::LabelRules::parse));
  }
  settings.catalog = catalog::DeviceCatalog::builtin();
  if (!config.gpu_catalog.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settings.catalog, parse_file(config.gpu_catalog, catalog::DeviceCatalog::with_user_rows));
  }
  settings.http = a.http;
  return read_credentials(a, settings.http);
}

IngestOptions ingest_options(const Settings& settings, units::Window window) {
  const ServeConfig& c = settings.config;
  IngestOptions options;
  options.folder = c.store;
  options.live.fleet.catalog = &settings.catalog;
  options.live.fleet.integrate.bridge_intervals = settings.rules.bridge_intervals();
  options.live.slot = c.rollup_slot;
  options.live.late = c.rollup_late;
  options.live.idle = kNever;
  options.live.gap_attribution_max = c.rollup_gap;
  options.live.rows_per_gpu_max = kRowsPerGpuMax;
  options.live.closed_max = window.end;
  options.log.bytes_max = c.limits_log_bytes;
  options.log.free_bytes_min = c.limits_disk_free_bytes;
  return options;
}

// Whole slots: what lies in the one that the window ends in is for whoever goes on from there.
base::Result<units::Window> window_of(const ImportArguments& a, const ImportFiles& files, const ServeConfig& config,
                                      units::Instant now) {
  const auto slot = static_cast<std::int64_t>(std::llround(config.rollup_slot.value * 1000));
  const bool has_files = !a.files.empty();
  units::Window window;
  if (has_files) {
    window = files.window();
    // The slot of the last sample is closed, and none after it, however far that sample would hold: a file that goes on begins there.
    window.end.unix_milliseconds += slot - 1;
  } else {
    window.end = now;
  }
  if (a.end) window.end = std::min(*a.end, has_files ? window.end : now);
  if (a.since) window.start = window.end - *a.since;
  if (a.start) window.start = has_files ? std::max(*a.start, window.start) : *a.start;
  window.end.unix_milliseconds = window.end.unix_milliseconds / slot * slot;
  if (window.end <= window.start) {
    return base::Error{base::ErrorCode::kInvalid, "the window holds no whole rollup slot before " + units::to_rfc3339(window.end)};
  }
  return window;
}

Status check_window(const ImportFeed& feed, units::Window window, const std::string& store) {
  const auto known = feed.known();
  if (!known || window.end > known->start) return {};
  return base::Error{base::ErrorCode::kInvalid,
                     store + " has GPUs from " + units::to_rfc3339(known->start) + " to " + units::to_rfc3339(known->end) +
                         ", and time is only added at its end; a window that ends at " + units::to_rfc3339(window.end) +
                         " belongs into a store of its own, or has to be imported first"};
}

std::string thousands(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// "90 minutes", "3 hours", "2.5 hours".
std::string length_text(units::Seconds length) {
  if (length.value < 2 * 3600 && std::fmod(length.value, 3600) != 0) return base::json::number_text(std::round(length.value / 6) / 10) + " minutes";
  const double hours = std::round(length.value / 360) / 10;
  const auto whole = static_cast<std::uint64_t>(hours);
  return (hours == static_cast<double>(whole) ? thousands(whole) : base::json::number_text(hours)) + (hours == 1 ? " hour" : " hours");
}

std::string closing_line(const ImportFeed& feed, const ImportFiles& files, units::Window window) {
  const ImportTotals t = feed.totals();
  std::string line = "imported " + thousands(t.taken) + " samples of " + thousands(feed.gpu_count()) + " GPUs, " +
                     length_text(window.length()) + " from " + units::to_rfc3339(window.start) + " to " +
                     units::to_rfc3339(window.end) + "; " + thousands(t.already) + " already there";
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) line += ", " + thousands(count) + " " + std::string(what);
  };
  add(t.copies, "copies");
  add(t.no_gpu, "without a GPU in their labels");
  add(files.untimed(), "without a time");
  add(files.malformed(), "malformed lines");
  add(t.too_early, "refused: older than what the store has of their GPU");
  add(t.unusable, "refused: malformed, in the future or over a limit");
  return line;
}

Status import(const ImportArguments& a, const Env& env, bool& all_taken) {
  Settings settings;
  FLOPSIGHT_RETURN_IF_ERROR(read_settings(a, settings));
  ImportFiles files;
  FLOPSIGHT_RETURN_IF_ERROR(files.read(a.files));
  const units::Instant now = env.now();
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Window window, window_of(a, files, settings.config, now));
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto ingest, Ingest::open(ingest_options(settings, window), settings.rules));
  // Jobs that were told before the samples come have their GPUs to the second.
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<JobService> jobs, JobService::open(settings.config.store, false));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<jobs::JobRecord> records, jobs->records(window));
  ingest->set_jobs(std::move(records));
  ImportFeed feed(*ingest, settings.rules, settings.config.rollup_slot, now);
  FLOPSIGHT_RETURN_IF_ERROR(check_window(feed, window, settings.config.store));
  {
    ProgressBar bar(env, a.quiet);
    const ImportContext context{a, settings.rules, settings.http, feed, bar};
    FLOPSIGHT_RETURN_IF_ERROR(a.files.empty() ? import_server(context, window) : files.feed(context, window));
    FLOPSIGHT_RETURN_IF_ERROR(feed.finish());
  }
  for (const std::string& note : ingest->take_notes()) env.err << error_line("import", note);
  env.out << closing_line(feed, files, window) << "\n";
  const ImportTotals totals = feed.totals();
  all_taken = totals.too_early == 0 && totals.unusable == 0;
  return {};
}

}  // namespace

int run_import(const ImportArguments& arguments, const Env& env) {
  bool all_taken = true;
  if (const Status status = import(arguments, env, all_taken); !status.ok()) return fail(env, "import", status.error());
  return all_taken ? kExitDone : kExitFailure;
}

}  // namespace flopsight::app
