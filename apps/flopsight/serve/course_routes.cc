// The routes of course_answers.h: what was asked, the answer, its form.

#include <array>

#include "base/text.h"
#include "serve/course_answers.h"
#include "serve/parameters.h"
#include "serve/route_answers.h"
#include "serve/routes.h"
#include "views/course_json.h"

namespace flopsight::app {

using net::ServerRequest;
using net::ServerResponse;

namespace {

constexpr std::size_t kSearchBytesMax = 200;
constexpr std::size_t kSearchRowsMax = 100;
// As many steps as a page has room for; a day of a fleet is then ten minutes each.
constexpr double kFleetStepsWanted = 200;
constexpr double kGpuStepsWanted = 100;

// The columns that were asked for by name, all without a name. kInvalid for one that there is not.
base::Result<views::CourseColumns> columns_of(const ServerRequest& request) {
  views::CourseColumns columns;
  const auto text = request.query_value("columns");
  if (!text) return columns;
  for (const std::string_view name : base::split(*text, ',')) {
    if (!views::is_course_column(name)) return wrong_parameter("columns", name, "names of columns, as in " + views::course_column_names());
    columns.emplace_back(name);
  }
  return columns;
}

}  // namespace

ServerResponse Routes::fleet_series(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since", "step"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  const auto step = parameters.step(**store, *window, kFleetStepsWanted);
  if (!step.ok()) return failed(step.error());
  const auto series = answer_fleet_series(**store, *window, *step, caller);
  if (!series.ok()) return failed(series.error());
  samples::QualityLog quality;
  note_unreadable(**store, answers, quality);
  return json(views::fleet_series_json({*window, answers.simulated || (*store)->simulated(), quality.entries()}, *series));
}

ServerResponse Routes::all_gpus(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since"}); !known.ok()) return failed(known.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const AnswerSettings answers = answer_settings(settings);
  samples::QualityLog quality;
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  *window = (*store)->answered(*window);
  const auto rows =
      answer_all_gpus(**store, answers, &jobs_, *window, settings.config.limits_query_cells, caller, quality);
  if (!rows.ok()) return failed(rows.error());
  note_unreadable(**store, answers, quality);
  return json(views::gpu_columns_json({*window, answers.simulated || (*store)->simulated(), quality.entries()}, *rows));
}

ServerResponse Routes::gpu_series(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  const auto known = parameters.only({"start", "end", "since", "step", "job", "host", "uuid", "columns"});
  if (!known.ok()) return failed(known.error());
  const auto text = [&](std::string_view name) { return std::string(request.query_value(name).value_or("")); };
  const CourseOf of{text("job"), text("host"), text("uuid")};
  if ((of.job.empty() ? 0 : 1) + (of.host.empty() ? 0 : 1) + (of.uuid.empty() ? 0 : 1) != 1) {
    return failed(400, "expected exactly one of job, host and uuid");
  }
  const auto columns = columns_of(request);
  if (!columns.ok()) return failed(columns.error());
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  const auto step = parameters.step(**store, *window, kGpuStepsWanted);
  if (!step.ok()) return failed(step.error());
  const auto courses =
      answer_gpu_courses(**store, answers, &jobs_, of, *window, *step, settings.config.limits_query_cells, caller);
  if (!courses.ok()) return failed(courses.error());
  samples::QualityLog quality;
  note_unreadable(**store, answers, quality);
  return json(views::gpu_series_json({*window, answers.simulated || (*store)->simulated(), quality.entries()}, *courses, *step, *columns));
}

ServerResponse Routes::search(const ServerRequest& request, const RouteSettings& settings, const Caller& caller) {
  const Parameters parameters(request, settings.config, now_());
  if (const auto known = parameters.only({"start", "end", "since", "q", "limit"}); !known.ok()) return failed(known.error());
  const std::string text(request.query_value("q").value_or(""));
  if (text.empty() || text.size() > kSearchBytesMax) {
    return failed(400, "q: expected a text of 1 to " + std::to_string(kSearchBytesMax) + " bytes");
  }
  auto window = parameters.window();
  if (!window.ok()) return failed(window.error());
  const auto limit = parameters.count("limit", 8, kSearchRowsMax);
  if (!limit.ok()) return failed(limit.error());
  const AnswerSettings answers = answer_settings(settings);
  auto store = ingest_.reader(now_());
  if (!store.ok()) return failed(store.error());
  *window = (*store)->answered(*window);
  const auto matches = answer_search(**store, answers, &jobs_, text, *window, *limit, caller);
  if (!matches.ok()) return failed(matches.error());
  std::vector<std::array<std::string, 3>> rows;
  for (const Match& match : *matches) rows.push_back({match.kind, match.name, match.detail});
  samples::QualityLog quality;
  note_unreadable(**store, answers, quality);
  return json(views::search_json({*window, answers.simulated || (*store)->simulated(), quality.entries()}, rows));
}

}  // namespace flopsight::app
