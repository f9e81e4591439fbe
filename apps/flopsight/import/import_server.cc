#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "import/import_sources.h"
#include "sources/prometheus_client.h"
#include "sources/pushdown.h"

namespace flopsight::app {
namespace {

using base::Status;
using units::Window;

constexpr units::Seconds kStretch{3600};
constexpr std::size_t kGpusAtOnce = 64;

using Answer = std::function<Status(std::span<const wire::ApiSeries>)>;

// One stretch of one server, by either way of reading it.
class Reader {
 public:
  Reader(const ImportContext& context, sources::PrometheusClient& client, net::HttpClient& http, std::string url)
      : context_(context), client_(client), http_(http), url_(std::move(url)) {}

  Status read(const std::string& selector, Window window, const Answer& answer) {
    const auto piece = [&](const wire::ApiAnswer& part) { return answer(part.series); };
    const ImportArguments& a = context_.arguments;
    if (!a.victoria_metrics.empty()) return read_export(selector, window, answer);
    return a.step ? client_.query_range(selector, window, *a.step, piece) : client_.raw(selector, window, piece);
  }

 private:
  Status read_export(const std::string& selector, Window window, const Answer& answer) {
    // Its end is inclusive.
    const auto seconds = [](std::int64_t milliseconds) { return base::json::number_text(static_cast<double>(milliseconds) / 1000); };
    net::HttpRequest request;
    request.url = url_ + "/api/v1/export";
    request.body = "match[]=" + net::url_encode(selector) + "&start=" + seconds(window.start.unix_milliseconds) +
                   "&end=" + seconds(window.end.unix_milliseconds - 1);
    FLOPSIGHT_ASSIGN_OR_RETURN(const net::HttpResponse response, http_.send(request));
    std::vector<wire::ApiSeries> series;
    std::string_view rest = response.body;
    for (std::uint64_t line = 1; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view text = base::trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (text.empty()) continue;
      auto one = wire::parse_export_line(text);
      if (!one.ok()) return one.error().within(net::url_without_credentials(request.url) + " line " + std::to_string(line));
      series.push_back(std::move(one).value());
    }
    return answer(series);
  }

  const ImportContext& context_;
  sources::PrometheusClient& client_;
  net::HttpClient& http_;
  std::string url_;
};

// Selectors that together are all GPUs of the stretch, each of a few; and the series that lack the label.
base::Result<std::vector<std::string>> selectors(sources::PrometheusClient& client, const sources::Plan& plan,
                                                 const std::string& match, Window window) {
  std::vector<std::string> out;
  if (plan.gpu_label.empty()) {
    out.push_back(sources::raw_selector(plan, match, {}));
    return out;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<std::string> gpus, client.label_values(plan.gpu_label, window));
  std::erase(gpus, "");
  for (std::size_t first = 0; first < gpus.size(); first += kGpusAtOnce) {
    const auto begin = gpus.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = gpus.begin() + static_cast<std::ptrdiff_t>(std::min(gpus.size(), first + kGpusAtOnce));
    out.push_back(sources::raw_selector(plan, match, {begin, end}));
  }
  out.push_back(sources::raw_selector(plan, match + (match.empty() ? "" : ",") + plan.gpu_label + "=\"\"", {}));
  return out;
}

}  // namespace

Status import_server(const ImportContext& c, Window window) {
  const ImportArguments& a = c.arguments;
  sources::PrometheusOptions options;
  options.url = a.prometheus.empty() ? a.victoria_metrics : a.prometheus;
  while (options.url.ends_with('/')) options.url.pop_back();
  options.http = c.http;
  FLOPSIGHT_ASSIGN_OR_RETURN(auto client, sources::PrometheusClient::create(options));
  FLOPSIGHT_ASSIGN_OR_RETURN(net::HttpClient http, net::HttpClient::create(c.http));
  FLOPSIGHT_ASSIGN_OR_RETURN(const sources::Plan plan, sources::make_plan(client, a.match, c.rules, window));
  Reader reader(c, client, http, options.url);
  const auto stretches = static_cast<std::size_t>(std::ceil(window.length().value / kStretch.value));
  for (std::size_t i = 0; i < stretches; ++i) {
    const units::Instant start = window.start + kStretch * static_cast<double>(i);
    const Window stretch{start, std::min(start + kStretch, window.end)};
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> parts, selectors(client, plan, a.match, stretch));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      c.bar.show("of " + std::to_string(stretches) + " hours, at " + units::to_rfc3339(start), i * parts.size() + part,
                 stretches * parts.size());
      FLOPSIGHT_RETURN_IF_ERROR(reader.read(parts[part], stretch, [&](std::span<const wire::ApiSeries> series) {
        std::vector<FeedSeries> feed;
        for (const wire::ApiSeries& one : series) feed.push_back({&one.labels, one.points});
        return c.feed.feed(std::move(feed), stretch);
      }));
      FLOPSIGHT_RETURN_IF_ERROR(c.feed.close_some());
    }
  }
  return {};
}

}  // namespace flopsight::app
