// /api/v1/findings and /api/v1/silences, and where other answers mention findings.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "findings/act.h"
#include "findings/record_json.h"
#include "serve/finding_query.h"
#include "serve/parameters.h"
#include "serve/route_answers.h"
#include "serve/routes.h"

namespace flopsight::app {
namespace {

using base::Result;
using base::json::Array;
using base::json::Object;
using base::json::Value;
using findings::Record;
using net::ServerRequest;
using net::ServerResponse;

constexpr std::size_t kFleetFindings = 20;
constexpr std::string_view kFindings = "/api/v1/findings/";
constexpr std::string_view kSilences = "/api/v1/silences/";

// "/PREFIX/ID/what": the id, and what.
std::pair<std::string, std::string_view> split_path(std::string_view path, std::string_view prefix) {
  const std::string_view rest = path.substr(prefix.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  return {std::string(rest.substr(0, slash)), rest.substr(slash)};
}

Result<findings::Query> query_of(const ServerRequest& request, const Parameters& parameters, const ServeConfig& config, const Caller& caller) {
  FLOPSIGHT_RETURN_IF_ERROR(parameters.only({"state", "kind", "severity", "job", "host", "gpu", "user", "team", "start", "end", "since", "limit", "cursor"}));
  findings::Query query;
  FLOPSIGHT_RETURN_IF_ERROR(read_finding_query([&](std::string_view name) { return request.query_value(name); }, query));
  // Without one, whenever it was.
  if (request.query_value("start") || request.query_value("end") || request.query_value("since")) {
    FLOPSIGHT_ASSIGN_OR_RETURN(query.window, parameters.window());
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(query.limit, parameters.count("limit", std::min<std::uint64_t>(100, config.limits_page), config.limits_page));
  FLOPSIGHT_ASSIGN_OR_RETURN(query.skip, parameters.cursor());
  query.seen_users = caller.users;
  query.seen_teams = caller.teams;
  return query;
}

Value window_of(const findings::Query& query) {
  if (!query.window) return {};
  return Object{{"start", units::to_rfc3339(query.window->start)}, {"end", units::to_rfc3339(query.window->end)}};
}

// Where the service does not know its users, they say who they are.
std::string author_of(const Access& access, const Caller& caller, const std::string& told) {
  if (!access.is_open()) return caller.name;
  return told.empty() ? std::string(findings::kNobodyKnown) : told;
}

ServerResponse silences_answer(const std::vector<findings::Silence>& silences, std::uint64_t skip, std::uint64_t limit) {
  Array list;
  for (std::size_t i = skip; i < silences.size() && i < skip + limit; ++i) list.emplace_back(findings::silence_json(silences[i]));
  const std::uint64_t shown = skip + list.size();
  const Value next = shown < silences.size() ? Value(std::to_string(shown)) : Value();
  return json(base::json::dump(Object{{"silences", std::move(list)}, {"next_cursor", next}}, 0) + "\n");
}

}  // namespace

ServerResponse Routes::findings(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  const auto query = query_of(request, parameters, settings.config, caller);
  if (!query.ok()) return failed(query.error());
  const auto page = findings_->find(*query);
  if (!page.ok()) return failed(page.error());
  Array list;
  bool is_simulated = ingest_.health().simulated;
  for (const Record& record : page->records) {
    list.emplace_back(findings::record_json(record, false));
    is_simulated = is_simulated || record.simulated;
  }
  const std::uint64_t shown = query->skip + page->records.size();
  const auto looked = findings_->looked_until();
  Object out{{"window", window_of(*query)},
             {"simulated", is_simulated},
             {"findings", std::move(list)},
             {"findings_total", page->records_total},
             {"next_cursor", shown < page->records_total ? Value(std::to_string(shown)) : Value()},
             {"looked_until", looked ? Value(units::to_rfc3339(*looked)) : Value()},
             {"absent_reason", looked ? Value() : Value(settings.config.findings_use ? "no minute was looked at yet" : "findings.use is false")}};
  return json(base::json::dump(out, 0) + "\n");
}

ServerResponse Routes::finding(const ServerRequest& request, const Caller& caller) {
  const auto [id, part] = split_path(request.path, kFindings);
  if (!part.empty()) return failed(404, "no such path");
  const auto record = findings_->record(id);
  if (!record.ok()) return failed(record.error());
  if (!*record || !caller.sees((*record)->holder)) return failed(404, "no finding with the id " + base::printable(id, 60));
  return json(base::json::dump(findings::record_json(**record), 0) + "\n");
}

ServerResponse Routes::change(const ServerRequest& request, const Caller& caller) {
  if (request.path.starts_with(kFindings)) return act(request, caller);
  return request.path == "/api/v1/silences" ? add_silence(request, caller) : end_silence(request);
}

ServerResponse Routes::act(const ServerRequest& request, const Caller& caller) {
  const auto [id, what] = split_path(request.path, kFindings);
  const auto told = findings::act_from_told(request.body);
  if (!told.ok()) return failed(400, told.error().message);
  const auto record = findings_->act(FindingService::act_of(what.substr(1)), id, author_of(*current()->access, caller, told->author), told->note, now_());
  if (record.ok()) return json(base::json::dump(findings::record_json(*record), 0) + "\n");
  // It is there, and not in a state for this.
  if (record.error().code == base::ErrorCode::kInvalid) return failed(409, record.error().message);
  return not_kept(record.error());
}

ServerResponse Routes::silences(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  // A silence names jobs and people.
  if (!caller.sees_all()) return unauthorized(*settings.access, true);
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"limit", "cursor"}); !known.ok()) return failed(known.error());
  const auto limit = parameters.count("limit", settings.config.limits_page, settings.config.limits_page);
  if (!limit.ok()) return failed(limit.error());
  const auto cursor = parameters.cursor();
  if (!cursor.ok()) return failed(cursor.error());
  return silences_answer(findings_->silences(now_()), *cursor, *limit);
}

ServerResponse Routes::add_silence(const ServerRequest& request, const Caller& caller) {
  const auto silence = findings::silence_from_told(request.body, current()->access->is_open() ? "" : caller.name, now_());
  if (!silence.ok()) return failed(silence.error());
  if (const base::Status added = findings_->add_silence(*silence, now_()); !added.ok()) return failed(added.error());
  return json(base::json::dump(findings::silence_json(*silence), 0) + "\n", 201);
}

ServerResponse Routes::end_silence(const ServerRequest& request) {
  const auto [id, part] = split_path(request.path, kSilences);
  if (request.method == "DELETE" && !part.empty()) return failed(404, "no such path");
  if (const base::Status removed = findings_->remove_silence(id, now_()); !removed.ok()) {
    return removed.error().code == base::ErrorCode::kNotFound ? failed(removed.error()) : not_kept(removed.error());
  }
  return json(base::json::dump(Object{{"id", id}}, 0) + "\n");
}

void Routes::mention_findings(std::span<analysis::JobAnswer> jobs, const Caller& caller) const {
  if (findings_ == nullptr || jobs.empty()) return;
  std::map<std::string, analysis::JobAnswer*> wanted;
  for (analysis::JobAnswer& job : jobs) wanted[job.id] = &job;
  for (analysis::FindingMention& mention :
       findings_->open_mentions([&](const Record& record) { return wanted.contains(record.job) && caller.sees(record.holder); })) {
    analysis::JobAnswer& job = *wanted.at(mention.job);
    ++job.finding_count;
    if (job.findings.size() < analysis::kFindingsMentionedMax) job.findings.push_back(std::move(mention));
  }
}

void Routes::mention_findings(analysis::Report& report, const Caller& caller) const {
  if (findings_ == nullptr) return;
  std::vector<analysis::FindingMention> all = findings_->open_mentions([&](const Record& record) { return caller.sees(record.holder); });
  report.finding_count = all.size();
  std::stable_sort(all.begin(), all.end(), [](const analysis::FindingMention& a, const analysis::FindingMention& b) {
    return std::pair(a.cost_usd.value_or(0), a.cost_gpu_hours.value_or(0)) > std::pair(b.cost_usd.value_or(0), b.cost_gpu_hours.value_or(0));
  });
  if (all.size() > kFleetFindings) all.resize(kFleetFindings);
  report.findings = std::move(all);
}

void Routes::count_findings(SelfMetricsInputs& inputs) const {
  if (findings_ == nullptr) return;
  if (looking_) inputs.looking = looking_();
  if (auto counts = findings_->counts(); counts.ok()) inputs.finding_counts = std::move(counts).value();
  inputs.silences = findings_->silences(inputs.now).size();
}

}  // namespace flopsight::app
