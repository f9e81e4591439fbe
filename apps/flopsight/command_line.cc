#include "command_line.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "env.h"
#include "error_line.h"
#include "number_options.h"

namespace flopsight::app {
namespace {

// Options as text; turned into settings after parsing, so that each mistake gets one line.
struct Texts : HttpTexts {
  std::string start, end, since, step, by = "job", format = "table", reference = "auto";
};

// What a report and a waste account have in common.
void add_sources(CLI::App& app, ReportArguments& a, Texts& t) {
  app.add_option("--file", a.files, "saved scrape(s): Prometheus text or OpenMetrics, plain or gzip; - is stdin")
      ->group("Source");
  app.add_option("--scrape", a.scrapes, "exporter URL(s), scraped in parallel")->group("Source");
  app.add_option("--prometheus", a.prometheus, "URL of a Prometheus-compatible server")->group("Source");
  app.add_option("--store", a.store_path, "store folder of flopsight serve or import, also while it runs")->group("Source");
  app.add_option("--match", a.match,
                 "with --prometheus: further label matchers, e.g. 'cluster=\"a\"'")
      ->group("Source");
  app.add_flag("--raw", a.raw, "with --prometheus: fetch raw samples instead of pushing the arithmetic down")
      ->group("Source");
  app.add_option("--start", t.start, "RFC 3339 with an offset, or Unix seconds")->group("Window");
  app.add_option("--end", t.end, "exclusive; default: now")->group("Window");
  app.add_option("--since", t.since, "length up to the end, e.g. 24h (default with --prometheus)")
      ->group("Window");
  app.add_option("--step", t.step, "with --prometheus: evaluation step (default: the scrape interval, at least 60s)")
      ->group("Window");
  app.add_option("--jobs", a.jobs_path, "jobs file (JSON or CSV) for GPUs whose labels name no job");
  app.add_option("--prices", a.prices_path, "US dollars per GPU-hour by model and team (CSV or JSON)");
  app.add_option("--rules", a.rules_path, "attribution rules (JSON) instead of the built-in ones");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
  app.add_option("--training-metrics", a.training_metrics_path,
                 "with --prometheus: metrics in which trainers export their MFU (YAML, docs/training-logs.md)");
  app.add_option("--reference-clock", t.reference, "auto|nvml-max|a clock in MHz")->capture_default_str();
  app.add_option("--top", a.top, "show only so many groups")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  app.add_flag("--quiet", a.quiet, "no progress on the terminal");
  add_http(app, a, t);
}

void add_report(CLI::App& app, ReportArguments& a, Texts& t) {
  add_sources(app, a, t);
  app.add_option("--by", t.by, "job|user|team|namespace|host|gpu|model|family")->capture_default_str();
  app.add_option("--format", t.format, "table|json|csv")->capture_default_str();
  app.add_flag("--errors", a.errors, "with table or json: what can be wrong with each OFU, part by part (docs/error-band.md)");
}

void add_waste(CLI::App& app, WasteArguments& a, Texts& t) {
  t.by = "";
  add_sources(app, a.report, t);
  app.add_option("--by", t.by, "job|user|team|namespace|model|family (default team)");
  app.add_option("--attainable", a.attainable, "attainable OFU: a ratio such as 0.5, or a file by GPU model and team (CSV or JSON)");
  app.add_option("--format", t.format, "table|json|csv|markdown|html|messages")->capture_default_str();
  app.add_option("--user", a.user, "with --format messages: only this user's");
}

// Every key of the configuration is a flag; what it says is checked with the file.
struct ServeTexts {
  std::vector<std::vector<std::string>> values;
};

void add_serve(CLI::App& app, ServeArguments& a, ServeTexts& t) {
  app.add_option("--config", a.config_path, "YAML file (docs/configuration.md)");
  app.add_flag("--demo", a.demo, "scrape exporters of this machine, else read its GPUs; if there are none, show a simulated fleet");
  t.values.resize(settings().size());
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const SettingInfo& info = settings()[i];
    if (info.is_in_file_only) continue;
    CLI::Option* option = app.add_option("--" + flag_of(info.key), t.values[i], std::string(info.meaning) + " (" + std::string(info.expected) + ")");
    option->group("Configuration")->expected(info.is_flag ? 0 : 1, 1)->take_all();
  }
}

std::optional<Said> set_serve(ServeArguments& a, const CLI::App& app, const ServeTexts& t) {
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const SettingInfo& info = settings()[i];
    if (info.is_in_file_only || app.count("--" + flag_of(info.key)) == 0) continue;
    if (t.values[i].size() > 1 && !info.is_list) {
      return Said{kExitUsage, error_line("serve", "--" + flag_of(info.key) + ": given " + std::to_string(t.values[i].size()) + " times, expected once")};
    }
    for (const std::string& value : t.values[i]) {
      // A bare --allow-insecure means yes.
      a.flags.emplace_back(info.key, info.is_flag && value.empty() ? "true" : value);
    }
    if (t.values[i].empty()) a.flags.emplace_back(info.key, info.is_flag ? "true" : "");
  }
  return std::nullopt;
}

Said wrong(const std::string& what) { return Said{kExitUsage, error_line("report", what)}; }

std::optional<Said> set_times(ReportArguments& a, const Texts& t) {
  const auto instant = [](const std::string& text, std::optional<units::Instant>& out) {
    if (text.empty()) return true;
    out = units::parse_instant(text);
    return out.has_value();
  };
  const auto duration = [](const std::string& text, std::optional<units::Seconds>& out) {
    if (text.empty()) return true;
    out = units::parse_duration(text);
    return out.has_value();
  };
  std::optional<units::Seconds> step;
  if (!instant(t.start, a.start)) return wrong("--start " + t.start + ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds");
  if (!instant(t.end, a.end)) return wrong("--end " + t.end + ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds");
  if (!duration(t.since, a.since)) return wrong("--since " + t.since + ": expected a duration such as 24h or 90m");
  if (!duration(t.step, step)) return wrong("--step " + t.step + ": expected a duration such as 60s");
  if (a.start && a.since) return wrong("--start and --since exclude each other");
  if (a.start && a.end && *a.end <= *a.start) return wrong("--end is not after --start");
  if (step) {
    a.step = *step;
    a.step_given = true;
    if (step->value < 1) return wrong("--step " + t.step + ": expected one second or more");
  }
  if (const auto mistake = set_http(a, t)) return wrong(*mistake);
  return std::nullopt;
}

std::optional<Said> set_choices(ReportArguments& a, const Texts& t) {
  const auto by = analysis::parse_group_by(t.by);
  if (!by) return wrong("--by " + t.by + ": expected job, user, team, namespace, host, gpu, model or family");
  a.by = *by;
  if (t.format == "json") {
    a.format = ReportFormat::kJson;
  } else if (t.format == "csv") {
    a.format = ReportFormat::kCsv;
  } else if (t.format != "table") {
    return wrong("--format " + t.format + ": expected table, json or csv");
  }
  if (a.errors && a.format == ReportFormat::kCsv) return wrong("--errors is for table and json, which has the parts in any case; rows of csv have no room for them");
  if (t.reference == "nvml-max") {
    a.reference_nvml_max = true;
  } else if (t.reference != "auto") {
    const auto mhz = base::parse_number(t.reference);
    if (!mhz || *mhz < 100 || *mhz > 10000) {
      return wrong("--reference-clock " + t.reference + ": expected auto, nvml-max or MHz between 100 and 10000");
    }
    a.reference_clock = units::megahertz(*mhz);
  }
  return std::nullopt;
}

std::optional<Said> check_sources(const ReportArguments& a) {
  const int sources = (a.files.empty() ? 0 : 1) + (a.scrapes.empty() ? 0 : 1) + (a.prometheus.empty() ? 0 : 1) +
                      (a.store_path.empty() ? 0 : 1);
  if (sources != 1) return wrong("expected one of --file, --scrape, --prometheus or --store");
  if (!a.store_path.empty() && (a.reference_clock || a.reference_nvml_max || !a.jobs_path.empty() || !a.rules_path.empty() || !a.catalog_path.empty())) {
    return wrong("--store has rollups: --reference-clock, --gpu-catalog, --jobs and --rules are the service's");
  }
  if (a.prometheus.empty() && a.step_given) return wrong("--step needs --prometheus; files and stores have steps of their own");
  if (a.prometheus.empty() && (!a.match.empty() || a.raw)) return wrong("--match and --raw need --prometheus");
  if (a.prometheus.empty() && !a.training_metrics_path.empty()) return wrong("--training-metrics needs --prometheus");
  if (!a.scrapes.empty() && (a.start || a.end || a.since)) {
    return wrong("--scrape is an instant; --start, --end and --since need --prometheus or --file");
  }
  return std::nullopt;
}

std::optional<Said> set_report(ReportArguments& a, const Texts& t) {
  if (const auto said = set_times(a, t)) return said;
  if (const auto said = set_choices(a, t)) return said;
  if (const auto said = check_sources(a)) return said;
  if (a.prometheus.empty() && a.scrapes.empty() && any_given(a, t)) {
    return wrong("--timeout, --header, credentials and certificates need --prometheus or --scrape");
  }
  return std::nullopt;
}

// What is common is checked as a report's; its mistakes are said of this command.
std::optional<std::string> set_waste(WasteArguments& a, Texts& t) {
  constexpr std::pair<std::string_view, WasteFormat> kFormats[] = {
      {"table", WasteFormat::kTable}, {"json", WasteFormat::kJson}, {"csv", WasteFormat::kCsv},
      {"markdown", WasteFormat::kMarkdown}, {"html", WasteFormat::kHtml}, {"messages", WasteFormat::kMessages}};
  const auto format = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& one) { return one.first == t.format; });
  if (format == std::end(kFormats)) return "--format " + base::printable(t.format, 40) + ": expected table, json, csv, markdown, html or messages";
  a.format = format->second;
  const bool messages = a.format == WasteFormat::kMessages;
  const std::string by_text = t.by.empty() ? (messages ? "job" : "team") : t.by;
  const auto by = analysis::parse_waste_by(by_text);
  if (!by) return "--by " + base::printable(by_text, 40) + ": expected job, user, team, namespace, model or family";
  if (messages && *by != analysis::WasteBy::kJob) return "--format messages: expected --by job, or none, as a message lists a user's jobs";
  if (!a.user.empty() && !messages) return "--user needs --format messages";
  a.by = *by;
  t.by = "job";
  t.format = "table";
  auto said = set_report(a.report, t);
  if (!said) return std::nullopt;
  constexpr std::string_view kReport = "flopsight report: ";
  const std::string text(base::trim(said->text));
  return text.starts_with(kReport) ? text.substr(kReport.size()) : text;
}

// CLI11's sentence as one line.
std::string one_line(const std::string& text) {
  return base::printable(base::split(std::string(base::trim(text)), '\n').front(), 300);
}

// What is wrong with the words themselves, of the command that they were for.
Said misused(const CLI::App& app, const std::string& what) {
  if (app.get_subcommands().empty()) return Said{kExitUsage, "flopsight: " + what + "; see flopsight --help\n"};
  const std::string command = app.get_subcommands().front()->get_name();
  return Said{kExitUsage, error_line(command, what + "; see flopsight " + command + " --help")};
}

// The settings of a command, or what is wrong with them.
template <typename Arguments>
CommandLine checked(const Arguments& arguments, const std::string& command, const std::optional<std::string>& mistake) {
  if (mistake) return Said{kExitUsage, error_line(command, *mistake)};
  return arguments;
}

// A command's options, where the parser writes them: does not move.
template <typename Arguments, typename CommandTexts>
struct Command {
  Command(CLI::App& parent, const char* name, const char* does, void (*add)(CLI::App&, Arguments&, CommandTexts&))
      : app(parent.add_subcommand(name, does)) {
    add(*app, arguments, texts);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  CLI::App* app;
  Arguments arguments;
  CommandTexts texts;
};

// Of the command that was asked about.
std::string help_of(const CLI::App& app) {
  const CLI::App* asked = &app;
  std::string path;
  while (!asked->get_subcommands().empty()) {
    path += (path.empty() ? "" : " ") + asked->get_name();
    asked = asked->get_subcommands().front();
  }
  return asked->help(path);
}

// What is to be said instead of doing something.
std::optional<Said> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Said{kExitDone, help_of(app)};
  } catch (const CLI::CallForVersion&) {
    return Said{kExitDone, "flopsight " FLOPSIGHT_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    return misused(app, one_line(error.what()));
  }
  if (const auto mistake = wrong_number(app)) return misused(app, *mistake);
  return std::nullopt;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app("What share of the paid-for GPU FLOPs is really used, for every job and every GPU.", "flopsight");
  app.set_version_flag("--version", "flopsight " FLOPSIGHT_VERSION);
  app.require_subcommand(0, 1);
  Command<ReportArguments, Texts> report(app, "report", "efficiency of a fleet: OFU by job, user, team, host, GPU or model", add_report);
  Command<WasteArguments, Texts> waste(app, "waste", "where GPU-hours and dollars went: delivered, lost by cause, unmeasured", add_waste);
  DocsArguments docs;
  CLI::App* docs_app = app.add_subcommand("docs", "print a page of facts the program is built on");
  docs_app->add_option("page", docs.page, "metrics|attribution|gpus|configuration")->required();
  Command<SimulateArguments, SimulateTexts> simulate(app, "simulate", "a fleet that does not exist, with the truth about it", add_simulate);
  Command<ServeArguments, ServeTexts> serve(app, "serve", "the continuous service: scrape, receive remote write, roll up, answer", add_serve);
  CheckConfigArguments check;
  CLI::App* check_app = app.add_subcommand("check-config", "is a configuration of serve right, and if not, where");
  check_app->add_option("file", check.config_path, "YAML file")->required();
  Command<ImportArguments, ImportTexts> import(app, "import", "history into the store: from a server or from files", add_import);
  Command<LogsArguments, LogsTexts> logs(app, "logs", "what training jobs printed about their own speed", add_logs);
  Command<JobsArguments, JobsTexts> jobs(app, "jobs", "whose GPU it was: jobs of a scheduler in, jobs with their OFU out", add_jobs);
  Command<FlopsArguments, FlopsTexts> flops(app, "flops", "what a model costs: parameters and FLOPs of a token from its config.json", add_flops);
  Command<AuditArguments, AuditTexts> audit(app, "audit", "is a reported MFU right, and if not, which mistake explains it", add_audit);
  Command<GemmArguments, GemmTexts> gemm(app, "gemm", "what tiles and waves cost: a matrix product, a model's, or those of a profiler's trace", add_gemm);
  Command<AgentArguments, AgentTexts> agent(app, "agent", "this machine's GPUs at /metrics, where there is a driver and no exporter", add_agent);
  Command<TuneArguments, TuneTexts> tune(app, "tune", "what to change next and what it will bring: training or serving of a model", add_tune);
  Command<ValidateArguments, ValidateTexts> validate(app, "validate", "can OFU be trusted on this GPU: matrix products, their time and their counters", add_validate);
  Command<RulesArguments, RulesTexts> rules(app, "rules", "OFU inside an engine that exists: rules for Prometheus, a dashboard for Grafana", add_rules);
  Command<FindingsArguments, FindingsTexts> findings(app, "findings", "what is the matter with jobs and GPUs, and what people say of it", add_findings);
  Command<NotifyArguments, NotifyTexts> notify(app, "notify", "do messages reach who is to be told of findings", add_notify);
  if (const auto said = parse(app, argc, argv)) return *said;
  if (docs_app->parsed()) return docs;
  if (waste.app->parsed()) return checked(waste.arguments, "waste", set_waste(waste.arguments, waste.texts));
  if (simulate.app->parsed()) return checked(simulate.arguments, "simulate", set_simulate(simulate.arguments, simulate.texts));
  if (serve.app->parsed()) {
    if (auto said = set_serve(serve.arguments, *serve.app, serve.texts)) return *said;
    return serve.arguments;
  }
  if (check_app->parsed()) return check;
  if (import.app->parsed()) return checked(import.arguments, "import", set_import(import.arguments, import.texts));
  if (logs.app->parsed()) return checked(logs.arguments, "logs", set_logs(logs.arguments, logs.texts));
  if (jobs.app->parsed()) return checked(jobs.arguments, "jobs", set_jobs(*jobs.app, jobs.arguments, jobs.texts));
  if (flops.app->parsed()) return checked(flops.arguments, "flops", set_flops(flops.arguments, flops.texts));
  if (audit.app->parsed()) return checked(audit.arguments, "audit", set_audit(audit.arguments, audit.texts));
  if (gemm.app->parsed()) return checked(gemm.arguments, "gemm", set_gemm(gemm.arguments, gemm.texts));
  if (agent.app->parsed()) return checked(agent.arguments, "agent", set_agent(agent.arguments, agent.texts));
  if (tune.app->parsed()) return checked(tune.arguments, "tune", set_tune(*tune.app, tune.arguments, tune.texts));
  if (validate.app->parsed()) return checked(validate.arguments, "validate", set_validate(validate.arguments, validate.texts));
  if (notify.app->parsed()) return checked(notify.arguments, "notify", set_notify(notify.arguments, notify.texts));
  if (rules.app->parsed()) return checked(rules.arguments, "rules", set_rules(rules.arguments, rules.texts));
  if (findings.app->parsed()) return checked(findings.arguments, "findings", set_findings(*findings.app, findings.arguments, findings.texts));
  if (!report.app->parsed()) {
    return Said{kExitUsage, "flopsight: expected a command: report, waste, serve, findings, import, jobs, logs, flops, audit, gemm, validate, agent, tune, rules, simulate, notify, check-config or docs; see flopsight --help\n"};
  }
  if (const auto said = set_report(report.arguments, report.texts)) return *said;
  return report.arguments;
}

}  // namespace flopsight::app
