#include "logs/logs_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "training_logs/report.h"

namespace flopsight::app {

void add_logs(CLI::App& app, LogsArguments& a, LogsTexts& t) {
  app.add_option("file", a.files, "log(s) of training jobs, plain, gzip or zstd; - is stdin")->required();
  app.add_option("--format", t.format, "table|json")->capture_default_str();
  app.add_flag("--steps", a.steps, "with --format json: every step");
  app.add_option("--zone", a.zone, "time zone of dates without an offset: Europe/Berlin, UTC or +02:00");
  app.add_option("--patterns", a.patterns_path, "YAML file with patterns of your own (docs/training-logs.md)");
  app.add_option("--log-format", a.log_format, "read only this format, e.g. megatron");
  app.add_option("--warm-up", a.warm_up_steps, "leave out so many steps at the start of each attempt (default: found out)")
      ->check(CLI::Range(std::uint32_t{0}, std::uint32_t{1000}));
}

std::optional<std::string> set_logs(LogsArguments& a, const LogsTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + t.format + ": expected table or json";
  a.json = t.format == "json";
  if (a.steps && !a.json) return "--steps needs --format json";
  if (!a.log_format.empty() && !training_logs::known_format(a.log_format)) {
    return "--log-format " + base::printable(a.log_format, 60) + ": expected " + training_logs::format_names();
  }
  return std::nullopt;
}

}  // namespace flopsight::app
