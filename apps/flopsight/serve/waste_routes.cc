// /api/v1/waste, /api/v1/jobs/ID/phases and /advice.

#include "serve/job_advice.h"
#include "serve/job_answers.h"
#include "serve/parameters.h"
#include "serve/phase_answers.h"
#include "serve/route_answers.h"
#include "serve/routes.h"
#include "views/phases_json.h"
#include "views/waste_views.h"

namespace flopsight::app {
namespace {

net::ServerResponse text(std::string body, const char* content_type) {
  net::ServerResponse response;
  response.content_type = content_type;
  // A summary in HTML is data with names from outside in it: no script runs in it.
  response.headers.emplace_back("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = std::move(body);
  return response;
}

}  // namespace

net::ServerResponse Routes::waste(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since", "by", "top", "format", "user"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const std::string_view format = request.query_value("format").value_or("json");
  const bool is_message = format == "message";
  const auto user = request.query_value("user");
  if (user.has_value() != is_message) return failed(wrong_parameter("user", user.value_or(""), "a user together with format=message"));
  const std::string_view by_text = request.query_value("by").value_or(is_message ? "job" : "team");
  const auto by = analysis::parse_waste_by(by_text);
  if (!by || (is_message && *by != analysis::WasteBy::kJob)) {
    return failed(wrong_parameter("by", by_text, is_message ? "job, or none, for a message" : "job, user, team, namespace, model or family"));
  }
  if (format != "json" && format != "markdown" && format != "html" && format != "csv" && !is_message) {
    return failed(wrong_parameter("format", format, "json, markdown, html, csv or message"));
  }
  const auto top = parameters.count("top", is_message ? views::kMessageJobs : settings.config.limits_page, 1'000'000);
  if (!top.ok()) return failed(top.error());
  const AnswerSettings answers = answer_settings(settings);
  samples::QualityLog quality;
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  *window = (*store)->answered(*window);
  auto account = answer_waste(**store, answers, *window, *by, is_message ? std::nullopt : std::optional(*top), caller, &jobs_, quality);
  if (!account.ok()) return failed(account.error());
  std::string unread;  // of which JSON has a place of its own, and a table none
  for (const samples::QualityEntry& entry : quality.entries()) {
    if (entry.code == samples::kNotReadable) unread = "not readable, and missing here: " + entry.where;
  }
  if (format != "json" && !unread.empty()) account->assumptions.push_back(unread);
  if (format == "markdown") return text(views::waste_markdown(*account), "text/markdown; charset=utf-8");
  if (format == "html") return text(views::waste_html(*account), "text/html; charset=utf-8");
  if (format == "csv") return text(views::waste_csv(*account), "text/csv; charset=utf-8");
  if (!is_message) return json(views::waste_json(*account, {*window, account->simulated, quality.entries()}));
  for (views::UserMessage& message : views::waste_messages(*account, *top)) {
    if (message.user != *user) continue;
    if (!unread.empty()) message.text += unread + "\n";
    return text(std::move(message.text), "text/plain; charset=utf-8");
  }
  return failed(not_found(**store, answers, "no job of that user in the window"));
}

net::ServerResponse Routes::phases(const std::string& id, units::Window window, const RouteSettings& settings, const Caller& caller) {
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  // Minutes, or what became of the oldest of them.
  const auto slot = (*store)->longest_slot(window);
  if (!slot.ok()) return failed(slot.error());
  window = (*store)->answered(window, *slot);
  if (window.length().value / slot->value > static_cast<double>(settings.config.limits_query_steps)) {
    return failed(base::Error{base::ErrorCode::kLimit, "more than " + std::to_string(settings.config.limits_query_steps) +
                                                           " slots (limits.query-steps); give a shorter window"});
  }
  const auto found = find_known_job(**store, &jobs_, answers, id, window, caller);
  if (!found.ok()) return failed(found.error());
  const auto answer = answer_phases(**store, &jobs_, *found, window, *slot);
  if (!answer.ok()) return failed(answer.error());
  samples::QualityLog quality;
  note_unreadable(**store, answers, quality);
  return json(views::phases_json({window, answers.simulated || (*store)->simulated(), quality.entries()}, found->id, answer->slot,
                                 answer->phases, answer->goodput, answer->precision_switches));
}

net::ServerResponse Routes::advice(const std::string& id, units::Window window, const RouteSettings& settings, const Caller& caller) {
  const AnswerSettings answers = answer_settings(settings);
  samples::QualityLog quality;
  views::AnswerHead head{window, answers.simulated, {}};
  const base::Result<analysis::JobAnswer> job = [&]() -> base::Result<analysis::JobAnswer> {
    FLOPSIGHT_ASSIGN_OR_RETURN(Ingest::ReaderHandle store, ingest_.reader(now_()));
    head.simulated = head.simulated || store->simulated();
    head.window = store->answered(window);
    return answer_known_job(*store, &jobs_, answers, id, head.window, caller, quality);
  }();
  if (!job.ok()) return failed(job.error());
  const auto advice = advise_job(jobs_, answers, *job);
  if (!advice.ok()) return failed(advice.error());
  head.quality = quality.entries();
  return json(views::job_advice_json(head, *advice));
}

}  // namespace flopsight::app
