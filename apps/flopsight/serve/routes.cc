#include "serve/routes.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>

#include "base/json_keys.h"
#include "base/text.h"
#include "serve/job_answers.h"
#include "serve/mfu_answers.h"
#include "serve/openapi.h"
#include "serve/page.h"
#include "serve/parameters.h"
#include "serve/paths.h"
#include "serve/tile_overheads.h"
#include "serve/route_answers.h"
#include "views/report_views.h"
#include "views/service_json.h"
#include "wire/remote_write.h"

namespace flopsight::app {
namespace {

using net::ServerRequest;
using net::ServerResponse;

// A stranger's page, open in somebody's browser, can send a POST to this service, but not hide whose it is.
bool is_of_another_site(const ServerRequest& request) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return false;
  const std::size_t scheme = origin.find("://");
  return scheme == std::string_view::npos || origin.substr(scheme + 3) != request.header("host");
}

// What is no remote write that this service can read.
std::optional<ServerResponse> unwritable(const ServerRequest& request) {
  if (!wire::remote_write_version(request.header("content-type"))) {
    return failed(415, "expected application/x-protobuf, with proto=prometheus.WriteRequest or "
                       "proto=io.prometheus.write.v2.Request where it says one");
  }
  const std::string_view encoding = request.header("content-encoding");
  if (!encoding.empty() && encoding != "snappy") return failed(415, "expected the content encoding snappy");
  return std::nullopt;
}

// One of two values of a parameter, or of a key of a body, would be taken, and nobody told which.
base::Status once_each(const ServerRequest& request) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : request.query) {
    if (!seen.insert(name).second) return base::Error{base::ErrorCode::kInvalid, base::printable(name, 60) + ": given twice, expected once"};
  }
  if (const auto key = base::json::repeated_key(request.body)) {
    return base::Error{base::ErrorCode::kInvalid, base::printable(*key, 60) + ": given twice in one object, expected once"};
  }
  return {};
}

JobFilter job_filter(const ServerRequest& request) {
  const auto text = [&](std::string_view name) {
    const auto value = request.query_value(name);
    return value && !value->empty() ? std::optional<std::string>(*value) : std::nullopt;
  };
  return {text("user"), text("team"), text("namespace"), text("model"), text("q")};
}

// One page of rows; the cursor of the next.
template <typename T>
std::optional<std::string> cut_page(std::vector<T>& rows, std::uint64_t cursor, std::uint64_t limit) {
  const std::size_t total = rows.size();
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(total, cursor)));
  if (rows.size() > limit) rows.resize(limit);
  if (cursor + rows.size() >= total) return std::nullopt;
  return std::to_string(cursor + rows.size());
}

}  // namespace

Routes::Routes(Ingest& ingest, JobService& jobs, RouteSettings settings, std::function<units::Instant()> now,
               std::function<std::string()> targets, std::function<net::ServerCounters()> server_counters)
    : ingest_(ingest),
      jobs_(jobs),
      now_(std::move(now)),
      targets_(std::move(targets)),
      server_counters_(std::move(server_counters)),
      settings_(std::make_shared<const RouteSettings>(std::move(settings))) {}

std::shared_ptr<const RouteSettings> Routes::current() const {
  const std::scoped_lock lock(mutex_);
  return settings_;
}

void Routes::replace(RouteSettings settings) {
  const std::scoped_lock lock(mutex_);
  settings_ = std::make_shared<const RouteSettings>(std::move(settings));
}

std::optional<ServerResponse> Routes::head(const ServerRequest& head) const {
  const FoundPath found = find_path(head.method, head.path);
  if (found.allowed.empty()) return failed(404, "no such path; /api/v1/openapi.json has all");
  const PathRule* rule = found.rule;
  if (rule == nullptr) {
    ServerResponse response = failed(405, "expected " + found.allowed);
    response.headers.emplace_back("Allow", found.allowed);
    return response;
  }
  const auto settings = current();
  if (rule->role && settings->access->surely_refused(head)) {
    const std::scoped_lock lock(mutex_);
    ++counters_.unauthorized;
    return unauthorized(*settings->access, false);
  }
  if (rule->role && settings->access->is_open() && parse_listen(settings->config.listen)->is_loopback &&
      is_strange_host(head.header("host"), settings->config.allowed_hosts)) {
    return failed(421, "asked for as " + base::printable(head.header("host"), 80) + ": a service on loopback that has no users answers to addresses and localhost; "
                       "allowed-hosts names others");
  }
  // Before a body is read that nobody can use; who may not write at all is told that instead.
  if (rule->path == "/api/v1/write" && settings->access->surely_may(head, *rule->role)) return unwritable(head);
  return std::nullopt;
}

ServerResponse Routes::handle(const ServerRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const auto settings = current();
  ServerResponse response = dispatch(request, *settings);
  if (request.path.starts_with("/api/v1/") && request.path != "/api/v1/write") {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::scoped_lock lock(mutex_);
    ++counters_.queries;
    counters_.seconds += seconds;
    counters_.seconds_max = std::max(counters_.seconds_max, seconds);
    counters_.over_limit += response.status == 422 || response.status == 413 ? 1 : 0;
    counters_.unauthorized += response.status == 401 || response.status == 403 ? 1 : 0;
  }
  return response;
}

ServerResponse Routes::dispatch(const ServerRequest& request, const RouteSettings& settings) {
  const PathRule* rule = find_path(request.method, request.path).rule;
  if (rule == nullptr) return failed(404, "no such path");
  if (!rule->role) {
    if (request.path == "/api/v1/openapi.json") return json(std::string(openapi_document()));
    ServerResponse response;
    if (request.path == "/healthz") {
      response.body = "ok\n";
    } else if (request.path == "/readyz") {
      const IngestHealth health = ingest_.health();
      response.status = ready_ && health.accepting ? 200 : 503;
      response.body = !ready_ ? "starting\n" : health.accepting ? "ready\n" : base::printable(health.why_not, 300) + "\n";
    } else {
      response = page_answer(request);
    }
    return response;
  }
  if (!ready_) {
    ServerResponse response = failed(503, "starting or stopping");
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  const auto caller = settings.access->caller(request);
  if (!caller) return unauthorized(*settings.access, false);
  if (!caller->may(*rule->role)) return unauthorized(*settings.access, true);
  const bool is_change = request.method == "POST" || request.method == "DELETE";
  if (is_change && is_of_another_site(request)) return failed(403, "sent by the page of another site");
  if (request.path == "/api/v1/write") return write(request);
  if (const base::Status once = once_each(request); request.path != "/metrics" && !once.ok()) return failed(once.error());
  if (request.path.starts_with("/api/v1/findings") || request.path.starts_with("/api/v1/silences")) {
    if (findings_ == nullptr) return failed(404, "findings are not kept here");
    if (is_change) return change(request, *caller);
  }
  if (request.method == "POST") {
    return request.path == "/api/v1/jobs" ? tell_jobs(request) : request.path.ends_with("/model") ? tell_model(request, *caller) : tell_mfu(request, *caller);
  }
  return query(request, settings, *caller);
}

ServerResponse Routes::write(const ServerRequest& request) {
  if (auto refused = unwritable(request)) return std::move(*refused);
  const WriteAnswer answer = ingest_.remote_write(*wire::remote_write_version(request.header("content-type")), request.body, now_());
  ServerResponse response;
  if (answer.status >= 400) response = failed(answer.status, answer.text);
  response.status = answer.status;
  // What remote write 2.0 wants to know of what was written; histograms and exemplars are not kept.
  response.headers.emplace_back("X-Prometheus-Remote-Write-Samples-Written", std::to_string(answer.samples));
  response.headers.emplace_back("X-Prometheus-Remote-Write-Histograms-Written", "0");
  response.headers.emplace_back("X-Prometheus-Remote-Write-Exemplars-Written", "0");
  if (answer.status == 503) response.headers.emplace_back("Retry-After", std::to_string(answer.retry_after_seconds));
  return response;
}

AnswerSettings Routes::answer_settings(const RouteSettings& settings) {
  AnswerSettings answers = *settings.answers;
  answers.holders = &holders_;
  answers.simulated = ingest_.health().simulated;
  answers.log_unreadable = ingest_.log_unreadable();
  return answers;
}

ServerResponse Routes::query(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  if (request.path == "/metrics") {
    SelfMetricsInputs inputs;
    inputs.now = now_();
    inputs.slot = settings.config.rollup_slot;
    inputs.per_gpu = settings.config.metrics_per_gpu;
    inputs.server = server_counters_();
    if (telling_) inputs.telling = telling_();
    if (auditing_) inputs.auditing = auditing_();
    count_findings(inputs);
    if (receivers_) inputs.receivers = receivers_();
    if (const auto models = jobs_.book().models_total(); models.ok()) inputs.models_told = *models;
    if (const auto counts = jobs_.book().counts(); counts.ok()) std::tie(inputs.jobs_told, inputs.steps_reported) = *counts;
    {
      const std::scoped_lock lock(mutex_);
      inputs.queries = counters_;
    }
    ServerResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = self_metrics(ingest_, inputs, caller);
    return response;
  }
  if (request.path == "/api/v1/targets") return json(targets_());
  if (request.path == "/api/v1/fleet") return fleet(request, settings, caller);
  if (request.path == "/api/v1/mfu") return mfu(request, settings, caller);
  if (request.path == "/api/v1/waste") return waste(request, settings, caller);
  if (request.path == "/api/v1/jobs") return jobs(request, settings, caller);
  if (request.path == "/api/v1/fleet/series") return fleet_series(request, settings, caller);
  if (request.path == "/api/v1/gpus") return all_gpus(request, settings, caller);
  if (request.path == "/api/v1/gpus/series") return gpu_series(request, settings, caller);
  if (request.path == "/api/v1/search") return search(request, settings, caller);
  if (request.path == "/api/v1/findings") return findings(request, settings, caller);
  if (request.path == "/api/v1/silences") return silences(request, settings, caller);
  if (request.path.starts_with("/api/v1/findings/")) return finding(request, caller);
  return job(request, settings, caller);
}

ServerResponse Routes::fleet(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since", "by", "top", "gpus"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const auto by = analysis::parse_group_by(request.query_value("by").value_or("job"));
  if (!by) return failed(wrong_parameter("by", *request.query_value("by"), "job, user, team, namespace, host, gpu, model or family"));
  const auto top = parameters.count("top", settings.config.limits_page, 1'000'000);
  if (!top.ok()) return failed(top.error());
  const std::string_view gpus = request.query_value("gpus").value_or("false");
  if (gpus != "true" && gpus != "false") return failed(wrong_parameter("gpus", gpus, "true or false"));
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  *window = (*store)->answered(*window);
  auto report = answer_fleet(**store, answers, *window, *by, *top, gpus == "true", caller, &jobs_);
  if (!report.ok()) return failed(report.error());
  // By host and by GPU they are there anyhow; of a large fleet they are tens of megabytes.
  if (gpus != "true") report->gpus.clear();
  if (const base::Status status = add_tile_overheads(jobs_.book(), *report); !status.ok()) return failed(status.error());
  mention_findings(*report, caller);
  return json(views::report_json(*report));
}

ServerResponse Routes::jobs(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since", "limit", "cursor", "user", "team", "namespace", "model", "q"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const JobFilter filter = job_filter(request);
  const auto limit = parameters.count("limit", std::min<std::uint64_t>(100, settings.config.limits_page), settings.config.limits_page);
  if (!limit.ok()) return failed(limit.error());
  const auto cursor = parameters.cursor();
  if (!cursor.ok()) return failed(cursor.error());
  const AnswerSettings answers = answer_settings(settings);
  samples::QualityLog quality;
  bool is_simulated = answers.simulated;
  base::Result<JobPage> page = [&]() -> base::Result<JobPage> {
    FLOPSIGHT_ASSIGN_OR_RETURN(Ingest::ReaderHandle store, ingest_.reader(now_()));
    *window = store->answered(*window);
    auto answer = answer_known_jobs(*store, &jobs_, answers, *window, caller, filter, {*cursor, *limit}, quality);
    is_simulated = is_simulated || store->simulated();
    return answer;
  }();
  if (!page.ok()) return failed(page.error());
  const auto overheads = tile_overheads(jobs_.book());
  if (!overheads.ok()) return failed(overheads.error());
  for (analysis::JobAnswer& job : page->jobs) add_tile_overhead(*overheads, {job.holder.job, job.holder.name_space}, job.summary);
  mention_findings(page->jobs, caller);
  const std::uint64_t shown = *cursor + page->jobs.size();
  const auto next = shown < page->jobs_total ? std::optional(std::to_string(shown)) : std::nullopt;
  return json(views::jobs_json({*window, is_simulated, quality.entries()}, page->jobs, next));
}

ServerResponse Routes::mfu(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  *window = (*store)->answered(*window);
  const auto answer = answer_mfu(**store, jobs_, answers, *window, caller);
  if (!answer.ok()) return failed(answer.error());
  samples::QualityLog quality;
  note_unreadable(**store, answers, quality);
  return json(views::mfu_json({*window, answers.simulated || (*store)->simulated(), quality.entries()}, answer->comparison,
                              answer->jobs_without_mfu, answer->jobs_without_ofu));
}

// /api/v1/jobs/ID, /ID/series, /ID/gpus, /ID/phases, /ID/advice
ServerResponse Routes::job(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  constexpr std::string_view kPrefix = "/api/v1/jobs/";
  const std::string_view rest = std::string_view(request.path).substr(kPrefix.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string id(rest.substr(0, slash));
  const std::string_view part = rest.substr(slash);
  if (!part.empty() && part != "/series" && part != "/gpus" && part != "/phases" && part != "/advice") return failed(404, "no such path");
  const Parameters parameters(request, settings.config, now_());
  const auto known = part == "/series" ? parameters.only({"start", "end", "since", "step"})
                     : part == "/gpus" ? parameters.only({"start", "end", "since", "limit", "cursor"})
                                       : parameters.only({"start", "end", "since"});
  if (!known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const AnswerSettings answers = answer_settings(settings);
  samples::QualityLog quality;
  views::AnswerHead head{*window, answers.simulated, {}};
  if (part == "/series") {
    auto store = ingest_.reader(now_());
    if (!store.ok()) return failed(store.error());
    const auto step = parameters.step(**store, *window);
    if (!step.ok()) return failed(step.error());
    head.window = *window;
    const auto found = find_known_job(**store, &jobs_, answers, id, *window, caller);
    if (!found.ok()) return failed(found.error());
    const auto series = answer_series(**store, &jobs_, *found, *window, *step);
    head.simulated = head.simulated || (*store)->simulated();
    note_unreadable(**store, answers, quality);
    head.quality = quality.entries();
    return series.ok() ? json(views::series_json(head, found->id, *series)) : failed(series.error());
  }
  if (part == "/phases") return phases(id, *window, settings, caller);
  if (part == "/advice") return advice(id, *window, settings, caller);
  if (part == "/gpus") {
    const auto limit = parameters.count("limit", settings.config.limits_page, settings.config.limits_page);
    if (!limit.ok()) return failed(limit.error());
    const auto cursor = parameters.cursor();
    if (!cursor.ok()) return failed(cursor.error());
    auto store = ingest_.reader(now_());
    if (!store.ok()) return failed(store.error());
    head.window = *window = (*store)->answered(*window);
    const auto found = find_known_job(**store, &jobs_, answers, id, *window, caller);
    if (!found.ok()) return failed(found.error());
    auto rows = answer_job_gpus(**store, answers, *found, *window, quality);
    if (!rows.ok()) return failed(rows.error());
    const auto next = cut_page(*rows, *cursor, *limit);
    note_unreadable(**store, answers, quality);
    head.simulated = head.simulated || (*store)->simulated();
    head.quality = quality.entries();
    return json(views::gpus_json(head, found->id, *rows, next));
  }
  return whole_job(id, *window, answers, caller);
}

ServerResponse Routes::whole_job(const std::string& id, units::Window window, const AnswerSettings& answers, const Caller& caller) {
  samples::QualityLog quality;
  views::AnswerHead head{window, answers.simulated, {}};
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  head.window = window = (*store)->answered(window);
  auto row = answer_known_job(**store, &jobs_, answers, id, window, caller, quality);
  if (!row.ok()) return failed(row.error());
  if (const base::Status audited = audits_.audit_answer(**store, jobs_, answers, id, caller, now_(), *row); !audited.ok()) return failed(audited.error());
  note_discrepancy(*row, quality);
  const auto overheads = tile_overheads(jobs_.book());
  if (!overheads.ok()) return failed(overheads.error());
  add_tile_overhead(*overheads, {row->holder.job, row->holder.name_space}, row->summary);
  const auto recomputed = recompute_overhead(jobs_, answers, *row);
  if (!recomputed.ok()) return failed(recomputed.error());
  analysis::set_below_ofu(row->waterfall, row->summary.tile_overhead_ratio, *recomputed);
  mention_findings({&*row, 1}, caller);
  head.simulated = head.simulated || (*store)->simulated();
  head.quality = quality.entries();
  return json(views::job_json(head, *row));
}

}  // namespace flopsight::app
