#include "enginerules/rules_options.h"

#include <CLI/CLI.hpp>

#include "base/regex.h"
#include "base/text.h"
#include "new_files.h"
#include "units/time.h"

namespace flopsight::app {
namespace {

using Wrong = std::optional<std::string>;

// No SM clock lies outside (catalog/metrics.h has the same range for a maximum).
constexpr double kClockHertzMin = 1e8, kClockHertzMax = 5e9;

Wrong set_duration(const char* option, const std::string& text, units::Seconds& out) {
  const auto length = units::parse_duration(text);
  if (!length || length->value < 1 || length->value > 3600) {
    return std::string(option) + " " + base::printable(text, 40) + ": expected a duration from 1s to 1h, such as 1m";
  }
  out = *length;
  return std::nullopt;
}

Wrong add_clock(RulesArguments& a, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string_view model = equals == std::string::npos ? std::string_view() : base::trim(std::string_view(text).substr(0, equals));
  const auto hertz = equals == std::string::npos ? std::nullopt : base::parse_number(std::string_view(text).substr(equals + 1));
  if (model.empty() || !hertz || *hertz < kClockHertzMin || *hertz > kClockHertzMax) {
    return "--clock " + base::printable(text, 80) + ": expected MODEL=HERTZ with 1e8 to 5e9 hertz, such as \"NVIDIA X900=1.83e9\"";
  }
  a.clocks.emplace_back(std::string(model), units::Hertz(*hertz));
  return std::nullopt;
}

Wrong check_match(const std::string& match) {
  if (match.empty()) return std::nullopt;
  const std::string one = R"re(\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*"\s*)re";
  const auto expression = base::Regex::parse("^" + one + "(?:," + one + ")*$");
  if (expression.ok() && expression->found_in(match)) return std::nullopt;
  return "--match " + base::printable(match, 80) + ": expected label matchers, such as cluster=\"a\"";
}

}  // namespace

void add_rules(CLI::App& app, RulesArguments& a, RulesTexts& t) {
  app.add_option("target", t.target, "prometheus: a rule file, also for vmalert; grafana: a dashboard that stands on these rules")->required();
  app.add_option("--out", a.out, std::string("write this file instead of standard output").append(kFoldersAreMade));
  app.add_flag("--force", a.force, "with --out: replace a file that is there");
  app.add_option("--interval", t.interval, "how often rules are evaluated")->capture_default_str();
  app.add_option("--scrape-interval", t.scrape_interval, "how often exporters are scraped; a longer interval than the true one hides gaps, a shorter one makes some")
      ->capture_default_str();
  app.add_option("--match", a.match, "further label matchers, e.g. 'cluster=\"a\"'");
  app.add_option("--group-by", a.group_by, "further labels that jobs are told apart by, e.g. cluster,label_team")->delimiter(',');
  app.add_option("--rules", a.rules_path, "attribution rules (JSON) instead of the built-in ones, as for report");
  app.add_option("--gpu-label", a.gpu_label, "label that names a GPU")->capture_default_str();
  app.add_option("--model-label", a.model_label, "label that names its model")->capture_default_str();
  app.add_option("--gpu", a.gpus, "only these models (default: all of the catalogue)")->delimiter(',');
  app.add_option("--clock", t.clocks, "MODEL=HERTZ: another reference clock, or that of a model which is not in the catalogue");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_flag("--alerts,!--no-alerts", a.has_alerts, "alerting rules beside the recording rules (default: with)");
  for (CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name == "target" || name == "--out" || name == "--force" || name == "--help") continue;
    // Noted beside what the option does.
    option->each([&t, name](const std::string&) { t.of_rules.push_back(name); });
  }
}

std::optional<std::string> set_rules(RulesArguments& a, const RulesTexts& t) {
  if (t.target != "prometheus" && t.target != "grafana") {
    return base::printable(t.target, 40) + ": expected prometheus or grafana";
  }
  a.grafana = t.target == "grafana";
  // The dashboard asks for what the rules recorded, whatever they were made with.
  if (a.grafana && !t.of_rules.empty()) return t.of_rules.front() + ": for rules prometheus only; the dashboard shows what these recorded";
  if (a.force && a.out.empty()) return "--force needs --out";
  if (auto wrong = set_duration("--interval", t.interval, a.interval)) return wrong;
  if (auto wrong = set_duration("--scrape-interval", t.scrape_interval, a.scrape_interval)) return wrong;
  if (auto wrong = check_match(a.match)) return wrong;
  for (const std::string& clock : t.clocks) {
    if (auto wrong = add_clock(a, clock)) return wrong;
  }
  return std::nullopt;
}

}  // namespace flopsight::app
