#include "report/report_sources.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "report/reported_mfu_query.h"
#include "sources/exposition_source.h"

namespace flopsight::app {

std::string SourceResult::hint() const {
  std::string text;
  for (const samples::QualityEntry& entry : quality.entries()) {
    text += (text.empty() ? "; " : ", ") + std::to_string(entry.count) + " x " + entry.code;
  }
  return text;
}

namespace {

// A window beside all samples: nobody says that there were GPUs then, which could be held or cost anything.
base::Status check_window(const std::vector<samples::GpuTimeline>& timelines, const rollups::IntegrateOptions& options, const std::string& source) {
  if (!options.window) return {};
  std::optional<units::Window> seen;
  bool is_held = false;  // a last sample holds into the window
  for (const samples::GpuTimeline& timeline : timelines) {
    const auto& scrapes = timeline.scrapes;
    if (!timeline.has_times || scrapes.empty()) continue;
    const units::Instant first = scrapes.front().time, last = scrapes.back().time;
    seen = seen ? units::Window{std::min(seen->start, first), std::max(seen->end, last)} : units::Window{first, last};
    const units::Seconds step = scrapes.size() > 1 ? last - scrapes[scrapes.size() - 2].time : options.step_default;
    is_held = is_held || (first < options.window->end && (options.window->start - last).value < options.gap_intervals * step.value);
  }
  if (!seen || is_held) return {};
  return base::Error{base::ErrorCode::kNotFound, source + ": no sample between " + units::to_rfc3339(options.window->start) + " and " + units::to_rfc3339(options.window->end) + ", expected a time from " +
                                                     units::to_rfc3339(seen->start) + " to " + units::to_rfc3339(seen->end) + ", of which it has samples"};
}

}  // namespace

base::Status roll_files(const std::vector<std::string>& paths, const ReportSettings& settings,
                        SourceResult& out) {
  out.name = paths.size() == 1 ? "file " + paths[0] : std::to_string(paths.size()) + " files";
  sources::Collector collector(settings.rules, out.holders, out.quality);
  collector.note_within(settings.fleet.integrate.window);
  keep_reported_mfu(settings, collector);
  std::int64_t ordinal = 0;
  for (const std::string& path : paths) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string bytes, base::read_file(path, sources::kScrapeBytesMax));
    FLOPSIGHT_RETURN_IF_ERROR(
        sources::collect_scrape({path, "", std::move(bytes), ordinal++}, collector, out.quality));
  }
  take_reported_mfu(settings, settings.fleet.integrate.window, collector, out);
  out.owners = std::move(collector.owners());
  std::vector<samples::GpuTimeline> timelines = collector.take();
  FLOPSIGHT_RETURN_IF_ERROR(check_window(timelines, settings.fleet.integrate, out.name));
  out.fleet = rollups::roll_fleet(std::move(timelines), settings.fleet, settings.jobs, out.holders, out.quality);
  return {};
}

base::Status roll_scrapes(const std::vector<std::string>& urls, const ReportSettings& settings,
                          units::Instant now, SourceResult& out) {
  out.name = urls.size() == 1 ? net::url_without_credentials(urls[0])
                              : std::to_string(urls.size()) + " endpoints";
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient http, net::HttpClient::create(settings.http));
  std::vector<net::HttpRequest> requests;
  for (const std::string& url : urls) {
    requests.push_back({});
    requests.back().url = url;
    requests.back().keep_encoding = true;
    requests.back().headers = {
        {"Accept", "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"}};
  }
  sources::Collector collector(settings.rules, out.holders, out.quality);
  keep_reported_mfu(settings, collector);
  std::vector<base::Error> failures;
  http.send_all(requests, [&](std::size_t i, base::Result<net::HttpResponse> response) {
    const std::string place = net::url_without_credentials(urls[i]);
    base::Status status;
    if (!response.ok()) {
      status = response.error();
    } else {
      status = sources::collect_scrape({place, response->content_type, std::move(response->body), 0},
                                       collector, out.quality);
    }
    if (!status.ok()) {
      out.quality.add("endpoint_down", status.error().message);
      failures.push_back(status.error());
    }
  });
  if (failures.size() == urls.size()) return failures.front();
  rollups::FleetOptions options = settings.fleet;
  options.integrate.instant = now;
  take_reported_mfu(settings, std::nullopt, collector, out);
  out.owners = std::move(collector.owners());
  out.fleet = rollups::roll_fleet(collector.take(), options, settings.jobs, out.holders, out.quality);
  return {};
}

}  // namespace flopsight::app
