#include "findingdesk/command_findings.h"

#include <cmath>
#include <cstdlib>
#include <ostream>

#include "base/json.h"
#include "findingdesk/finding_desk.h"
#include "findingdesk/findings_table.h"
#include "findings/act.h"
#include "findings/record_json.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using Action = FindingsArguments::Action;
using base::json::Array;
using base::json::Object;
using base::json::Value;
using findings::Record;

int fail(const base::Error& error, const Env& env) { return fail(env, "findings", error); }

std::string author_of(const FindingsArguments& a) {
  if (!a.author.empty()) return a.author;
  const char* user = std::getenv("USER");
  return user != nullptr && *user != '\0' ? std::string(user) : std::string(findings::kNobodyKnown);
}

// One of those that were asked for is that severe, and not resolved.
base::Result<bool> is_failure(FindingDesk& desk, const FindingsArguments& a) {
  if (!a.fail_on) return false;
  std::vector<std::pair<std::string, std::string>> filters;
  for (const auto& filter : a.filters) {
    if (filter.first != "state") filters.push_back(filter);
  }
  filters.emplace_back("state", "open,acknowledged");
  // The most severe are first.
  FLOPSIGHT_ASSIGN_OR_RETURN(const findings::Page page, desk.list(filters, 1));
  return !page.records.empty() && page.records.front().severity >= *a.fail_on;
}

int run_list(FindingDesk& desk, const FindingsArguments& a, const Env& env) {
  const auto page = desk.list(a.filters, a.limit);
  if (!page.ok()) return fail(page.error(), env);
  const auto failure = is_failure(desk, a);
  if (!failure.ok()) return fail(failure.error(), env);
  switch (a.format) {
    case FindingsFormat::kTable: env.out << findings_table(page->records); break;
    case FindingsFormat::kCsv: env.out << findings_csv(page->records); break;
    case FindingsFormat::kJson: {
      Array list;
      for (const Record& record : page->records) list.emplace_back(findings::record_json(record, false));
      env.out << base::json::dump(Object{{"findings", std::move(list)}, {"findings_total", page->records_total}}) << "\n";
    }
  }
  if (page->records_total > page->records.size()) env.err << error_line("findings", std::to_string(page->records_total - page->records.size()) + " more; see --limit");
  return *failure ? kExitFailure : kExitDone;
}

int run_show(FindingDesk& desk, const FindingsArguments& a, const Env& env) {
  const auto record = desk.show(a.id);
  if (!record.ok()) return fail(record.error(), env);
  env.out << (a.format == FindingsFormat::kJson ? base::json::dump(findings::record_json(*record)) + "\n" : finding_text(*record));
  return kExitDone;
}

int run_act(FindingDesk& desk, const FindingsArguments& a, const Env& env) {
  const std::string what = a.action == Action::kAcknowledge ? "acknowledge" : a.action == Action::kUnacknowledge ? "unacknowledge" : "resolve";
  const auto record = desk.act(a.id, what, author_of(a), a.note);
  if (!record.ok()) return fail(record.error(), env);
  env.out << record->id << " is " << findings::state_name(record->state) << ": " << record->kind << (record->job.empty() ? "" : " of " + record->job) << "\n";
  return kExitDone;
}

int run_silence_add(FindingDesk& desk, const FindingsArguments& a, const Env& env) {
  Array matchers;
  for (const std::string& matcher : a.matchers) matchers.emplace_back(matcher);
  const std::string told = base::json::dump(Object{{"matchers", std::move(matchers)},
                                                   {"duration_seconds", a.length.value},
                                                   {"comment", a.comment},
                                                   {"author", author_of(a)}},
                                            0);
  const auto silence = desk.add_silence(told);
  if (!silence.ok()) return fail(silence.error(), env);
  env.out << silence->id << " until " << units::to_rfc3339(silence->end) << "\n";
  return kExitDone;
}

int run_silence_list(FindingDesk& desk, const FindingsArguments& a, const Env& env) {
  const auto silences = desk.silences();
  if (!silences.ok()) return fail(silences.error(), env);
  if (a.format != FindingsFormat::kJson) {
    env.out << silences_table(*silences);
    return kExitDone;
  }
  Array list;
  for (const findings::Silence& silence : *silences) list.emplace_back(findings::silence_json(silence));
  env.out << base::json::dump(Object{{"silences", std::move(list)}}) << "\n";
  return kExitDone;
}

}  // namespace

int run_findings(const FindingsArguments& a, const Env& env) {
  std::unique_ptr<FindingDesk> desk;
  if (a.server.empty()) {
    desk = store_desk(a.store, env.now());
  } else {
    auto server = server_desk(a);
    if (!server.ok()) return fail(server.error(), env);
    desk = std::move(server).value();
  }
  switch (a.action) {
    case Action::kList: return run_list(*desk, a, env);
    case Action::kShow: return run_show(*desk, a, env);
    case Action::kAcknowledge:
    case Action::kUnacknowledge:
    case Action::kResolve: return run_act(*desk, a, env);
    case Action::kSilenceAdd: return run_silence_add(*desk, a, env);
    case Action::kSilenceList: return run_silence_list(*desk, a, env);
    case Action::kSilenceEnd: break;
  }
  if (const base::Status ended = desk->end_silence(a.id); !ended.ok()) return fail(ended.error(), env);
  env.out << a.id << " is over\n";
  return kExitDone;
}

}  // namespace flopsight::app
