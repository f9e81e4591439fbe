#include "findingdesk/findings_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "findings/act.h"
#include "findings/silence.h"

namespace flopsight::app {
namespace {

using Action = FindingsArguments::Action;

constexpr const char* kDefaultStore = "flopsight-data";

void add_source(CLI::App& app, FindingsArguments& a, FindingsTexts& t) {
  app.add_option("--store", a.store, "folder of the store (default flopsight-data); to change something, while no service runs on it")->group("Source");
  app.add_option("--server", a.server, "URL of a service that runs, such as http://127.0.0.1:9890")->group("Source");
  add_http(app, a, t);
}

void add_filters(CLI::App& app, FindingsTexts& t) {
  app.add_option("--state", t.state, "open, acknowledged, resolved, several with commas, or all (default open,acknowledged)")->group("Which");
  app.add_option("--kind", t.kind, "kinds, with commas (docs/findings.md has all)")->group("Which");
  app.add_option("--severity", t.severity, "info, warning, critical, several with commas")->group("Which");
  app.add_option("--job", t.job, "of a job, or job@namespace")->group("Which");
  app.add_option("--host", t.host, "of a host")->group("Which");
  app.add_option("--gpu", t.gpu, "of a GPU, by its UUID")->group("Which");
  app.add_option("--user", t.user, "of a user's jobs")->group("Which");
  app.add_option("--team", t.team, "of a team's jobs")->group("Which");
  app.add_option("--start", t.start, "that showed at or after it: RFC 3339 with an offset, or Unix seconds")->group("Which");
  app.add_option("--end", t.end, "that showed before it")->group("Which");
  app.add_option("--since", t.since, "that showed in the last 24h, or as long as it says")->group("Which");
}

void add_act(CLI::App& parent, const char* name, const char* does, bool has_note, FindingsArguments& a, FindingsTexts& t) {
  CLI::App* act = parent.add_subcommand(name, does);
  add_source(*act, a, t);
  act->add_option("id", a.id, "the finding, by its id")->required();
  if (has_note) act->add_option("--note", a.note, "why; kept and shown with it");
  act->add_option("--author", a.author, "who (default: the user of this login); a service that knows its users goes by them");
}

void add_silences(CLI::App& parent, FindingsArguments& a, FindingsTexts& t) {
  CLI::App* silence = parent.add_subcommand("silence", "findings that are not to be delivered for a while");
  silence->require_subcommand(1, 1);
  CLI::App* add = silence->add_subcommand("add", "from now on, for as long as --for says");
  add_source(*add, a, t);
  add->add_option("--match", a.matchers, "name=pattern, '*' for any text: job=train*; several have to match all")->required();
  add->add_option("--for", t.length, "how long, such as 2h or 7d")->required();
  add->add_option("--comment", a.comment, "why")->required();
  add->add_option("--author", a.author, "who (default: the user of this login)");
  CLI::App* list = silence->add_subcommand("list", "silences that are not over");
  add_source(*list, a, t);
  list->add_option("--format", t.format, "table|json")->capture_default_str();
  CLI::App* end = silence->add_subcommand("end", "before its time");
  add_source(*end, a, t);
  end->add_option("id", a.id, "the silence, by its id")->required();
}

Action action_of(const CLI::App& app) {
  if (app.got_subcommand("show")) return Action::kShow;
  if (app.got_subcommand("ack")) return Action::kAcknowledge;
  if (app.got_subcommand("unack")) return Action::kUnacknowledge;
  if (app.got_subcommand("resolve")) return Action::kResolve;
  if (!app.got_subcommand("silence")) return Action::kList;
  const CLI::App* silence = app.get_subcommand("silence");
  return silence->got_subcommand("add") ? Action::kSilenceAdd : silence->got_subcommand("end") ? Action::kSilenceEnd : Action::kSilenceList;
}

std::optional<std::string> check_words(const std::string& name, const std::string& text, const char* expected, const std::function<bool(const std::string&)>& known) {
  if (text.empty()) return std::nullopt;
  for (const std::string& word : base::split(text, ',')) {
    if (!known(word)) return "--" + name + " " + base::printable(text, 80) + ": expected " + expected;
  }
  return std::nullopt;
}

std::optional<std::string> set_filters(FindingsArguments& a, const FindingsTexts& t) {
  const auto is_state = [](const std::string& word) { return findings::parse_state(word).has_value(); };
  if (t.state != "all") {
    if (auto wrong = check_words("state", t.state, "open, acknowledged, resolved, several with commas, or all", is_state)) return wrong;
  }
  if (auto wrong = check_words("kind", t.kind, "kinds of findings (docs/findings.md has all)",
                               [](const std::string& word) { return findings::find_kind(word) != nullptr; })) {
    return wrong;
  }
  const auto is_severity = [](const std::string& word) { return findings::parse_severity(word).has_value(); };
  if (auto wrong = check_words("severity", t.severity, "info, warning or critical", is_severity)) return wrong;
  for (const auto& [name, text] : {std::pair("start", t.start), std::pair("end", t.end)}) {
    if (!text.empty() && !units::parse_instant(text)) {
      return "--" + std::string(name) + " " + text + ": expected RFC 3339 with an offset (2026-11-29T16:00:00Z) or Unix seconds";
    }
  }
  if (!t.since.empty() && !units::parse_duration(t.since)) return "--since " + t.since + ": expected a duration such as 24h or 90m";
  if (!t.start.empty() && !t.since.empty()) return "--start and --since exclude each other";
  for (const auto& [name, text] : {std::pair("state", t.state), std::pair("kind", t.kind), std::pair("severity", t.severity), std::pair("job", t.job),
                                   std::pair("host", t.host), std::pair("gpu", t.gpu), std::pair("user", t.user), std::pair("team", t.team),
                                   std::pair("start", t.start), std::pair("end", t.end), std::pair("since", t.since)}) {
    if (!text.empty()) a.filters.emplace_back(name, text);
  }
  return std::nullopt;
}

std::optional<std::string> set_silence(FindingsArguments& a, const FindingsTexts& t) {
  for (const std::string& text : a.matchers) {
    if (const auto matcher = findings::parse_matcher(text); !matcher.ok()) return "--match: " + matcher.error().message.substr(sizeof("matchers: ") - 1);
  }
  const auto length = units::parse_duration(t.length);
  if (!length || length->value > findings::kSilenceDaysMax * 86'400) return "--for " + t.length + ": expected a duration up to 366d, such as 2h";
  a.length = *length;
  return std::nullopt;
}

}  // namespace

void add_findings(CLI::App& app, FindingsArguments& a, FindingsTexts& t) {
  app.require_subcommand(1, 1);
  CLI::App* list = app.add_subcommand("list", "what is the matter: open and acknowledged findings, the most severe first");
  add_source(*list, a, t);
  add_filters(*list, t);
  list->add_option("--limit", a.limit, "at most so many")->capture_default_str()->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}));
  list->add_option("--fail-on", t.fail_on, "warning|critical: exit code 1 where one of those that were asked for is that severe and not resolved");
  list->add_option("--format", t.format, "table|json|csv")->capture_default_str();
  CLI::App* show = app.add_subcommand("show", "one finding, with its evidence");
  add_source(*show, a, t);
  show->add_option("id", a.id, "the finding, by its id")->required();
  show->add_option("--format", t.format, "table|json")->capture_default_str();
  add_act(app, "ack", "says that somebody knows of it", true, a, t);
  add_act(app, "unack", "takes that back", false, a, t);
  add_act(app, "resolve", "says that it is done; it stays so while it goes on showing", true, a, t);
  add_silences(app, a, t);
}

std::optional<std::string> set_findings(const CLI::App& app, FindingsArguments& a, const FindingsTexts& t) {
  a.action = action_of(app);
  if (!a.store.empty() && !a.server.empty()) return "--store and --server exclude each other";
  if (!a.server.empty() && !a.server.starts_with("http://") && !a.server.starts_with("https://")) {
    return "--server " + base::printable(a.server, 80) + ": expected http:// or https://";
  }
  if (a.server.empty() && a.store.empty()) a.store = kDefaultStore;
  while (a.server.ends_with('/')) a.server.pop_back();
  const bool has_csv = a.action == Action::kList;
  if (t.format == "json") {
    a.format = FindingsFormat::kJson;
  } else if (t.format == "csv" && has_csv) {
    a.format = FindingsFormat::kCsv;
  } else if (t.format != "table") {
    return "--format " + base::printable(t.format, 40) + ": expected table" + (has_csv ? ", json or csv" : " or json");
  }
  if (!t.fail_on.empty()) {
    a.fail_on = findings::parse_severity(t.fail_on);
    if (!a.fail_on) return "--fail-on " + base::printable(t.fail_on, 40) + ": expected warning or critical";
  }
  if (a.note.size() > findings::kNoteBytesMax) return "--note: expected at most " + std::to_string(findings::kNoteBytesMax) + " bytes";
  if (a.action == Action::kSilenceAdd) {
    if (auto wrong = set_silence(a, t)) return wrong;
  }
  if (auto wrong = set_filters(a, t)) return wrong;
  return set_http(a, t);
}

}  // namespace flopsight::app
