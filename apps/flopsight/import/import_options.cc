#include "import/import_options.h"

#include <CLI/CLI.hpp>

namespace flopsight::app {
namespace {

constexpr const char* kInstant = ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds";

}  // namespace

void add_import(CLI::App& app, ImportArguments& a, ImportTexts& t) {
  app.add_option("--store", a.store, "folder of the store (default: the configuration's, or flopsight-data)");
  app.add_option("--config", a.config_path, "YAML file of serve: its store, rollup slot, rules and GPU catalogue");
  app.add_option("--prometheus", a.prometheus, "URL of a Prometheus-compatible server")->group("Source");
  app.add_option("--victoria-metrics", a.victoria_metrics, "URL of VictoriaMetrics, read by /api/v1/export")->group("Source");
  app.add_option("--file", a.files,
                 "file(s) with times: Prometheus text, OpenMetrics, or lines of VictoriaMetrics' export; plain or gzip")
      ->group("Source");
  app.add_option("--match", a.match, "with a server: further label matchers, e.g. 'cluster=\"a\"'")->group("Source");
  app.add_option("--start", t.start, "RFC 3339 with an offset, or Unix seconds")->group("Window");
  app.add_option("--end", t.end, "exclusive; default: now, or with --file the last sample")->group("Window");
  app.add_option("--since", t.since, "length up to the end, e.g. 30d, instead of --start")->group("Window");
  app.add_option("--step", t.step, "with --prometheus: evaluate at this step instead of reading raw samples")->group("Window");
  app.add_option("--rules", a.rules_path, "attribution rules (JSON) instead of the built-in ones");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_flag("--quiet", a.quiet, "no progress on the terminal");
  add_http(app, a, t);
}

std::optional<std::string> set_import(ImportArguments& a, const ImportTexts& t) {
  const int sources = (a.files.empty() ? 0 : 1) + (a.prometheus.empty() ? 0 : 1) + (a.victoria_metrics.empty() ? 0 : 1);
  if (sources != 1) return "expected one of --prometheus, --victoria-metrics or --file";
  if (!t.start.empty() && !(a.start = units::parse_instant(t.start))) return "--start " + t.start + kInstant;
  if (!t.end.empty() && !(a.end = units::parse_instant(t.end))) return "--end " + t.end + kInstant;
  if (!t.since.empty() && !(a.since = units::parse_duration(t.since))) {
    return "--since " + t.since + ": expected a duration such as 30d";
  }
  if (!t.step.empty()) {
    a.step = units::parse_duration(t.step);
    if (!a.step || a.step->value < 1) return "--step " + t.step + ": expected a duration of one second or more, such as 60s";
    if (a.prometheus.empty()) return "--step needs --prometheus";
  }
  if (a.start && a.since) return "--start and --since exclude each other";
  if (a.start && a.end && *a.end <= *a.start) return "--end is not after --start";
  if (a.files.empty() && !a.start && !a.since) return "expected --start or --since: how much history";
  if (!a.files.empty() && a.since) return "--since needs a server; with --file: --start and --end";
  if (!a.files.empty() && !a.match.empty()) return "--match needs a server";
  if (!a.files.empty() && any_given(a, t)) return "options of HTTP (--timeout, --header, those of credentials and TLS) need a server";
  return set_http(a, t);
}

}  // namespace flopsight::app
