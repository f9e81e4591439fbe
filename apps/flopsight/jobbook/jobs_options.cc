#include "jobbook/jobs_options.h"

#include <CLI/CLI.hpp>

namespace flopsight::app {
namespace {

constexpr const char* kInstant = ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds";

void add_window(CLI::App& app, JobsTexts& t) {
  app.add_option("--start", t.start, "RFC 3339 with an offset, or Unix seconds")->group("Window");
  app.add_option("--end", t.end, "exclusive; default: now")->group("Window");
  app.add_option("--since", t.since, "length up to the end (default 24h)")->group("Window");
}

}  // namespace

void add_jobs(CLI::App& app, JobsArguments& a, JobsTexts& t) {
  app.require_subcommand(1, 1);
  const auto common = [&](CLI::App& one, const char* formats = "table|json") {
    one.add_option("--store", a.store, "folder of the store")->capture_default_str();
    one.add_option("--format", t.format, formats)->capture_default_str();
  };
  CLI::App* import = app.add_subcommand("import", "jobs from files of a scheduler into the store");
  common(*import);
  import->add_option("file", a.files,
                     "output of sacct, squeue, scontrol or slurmrestd (JSON or text), a list of jobs as JSON, or a jobs file; - is stdin")
      ->required();
  import->add_option("--cluster", a.cluster, "name of the cluster, for output that does not say");
  import->add_option("--zone", a.zone, "time zone of times without an offset, e.g. Europe/Paris");
  import->add_flag("--dry-run", a.dry_run, "read and print, keep nothing");
  CLI::App* list = app.add_subcommand("list", "jobs of a window: what they held, their OFU, and the MFU they report");
  common(*list, "table|json|csv");
  add_window(*list, t);
  list->add_option("--limit", a.limit, "at most so many")->capture_default_str()->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  CLI::App* show = app.add_subcommand("show", "one job");
  common(*show);
  add_window(*show, t);
  show->add_option("job", a.id, "the job, or job@namespace")->required();
}

std::optional<std::string> set_jobs(const CLI::App& app, JobsArguments& a, const JobsTexts& t) {
  a.action = app.got_subcommand("import") ? JobsArguments::Action::kImport
             : app.got_subcommand("list") ? JobsArguments::Action::kList
                                          : JobsArguments::Action::kShow;
  const bool is_list = a.action == JobsArguments::Action::kList;
  a.json = t.format == "json";
  a.csv = is_list && t.format == "csv";
  if (t.format != "table" && !a.json && !a.csv) return "--format " + t.format + (is_list ? ": expected table, json or csv" : ": expected table or json");
  if (!t.start.empty() && !(a.start = units::parse_instant(t.start))) return "--start " + t.start + kInstant;
  if (!t.end.empty() && !(a.end = units::parse_instant(t.end))) return "--end " + t.end + kInstant;
  if (!t.since.empty() && !(a.since = units::parse_duration(t.since))) {
    return "--since " + t.since + ": expected a duration such as 24h or 90m";
  }
  if (a.start && a.since) return "--start and --since exclude each other";
  if (a.start && a.end && *a.end <= *a.start) return "--end is not after --start";
  return std::nullopt;
}

}  // namespace flopsight::app
