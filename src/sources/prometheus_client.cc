// Long ranges are cut into parts, a few of them in flight, handed over in order.
//
// Edges: a part is [begin, end). Prometheus 2.x answers `selector[range]` at time T with the
// samples in [T - range, T], VictoriaMetrics and Prometheus 3 with (T - range, T]. So a part of raw
// samples is asked for as `selector[end - begin]` at end - 1 ms: both then cover [begin, end), one
// of them one millisecond more in front, which is filtered out.
//
// VictoriaMetrics hides what is younger than its -search.latencyOffset and rounds times to whole
// steps, unless told nocache=1; Prometheus ignores that parameter.
#include "sources/prometheus_client.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "net/http_text.h"

namespace flopsight::sources {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using units::Instant;
using Piece = std::function<Status(const wire::ApiAnswer&)>;
using Progress = std::function<void(PrometheusProgress)>;

constexpr std::size_t kQueryTextBytesMax = 200;      // of a query in a message
constexpr std::size_t kReplyTextBytesMax = 100;      // of a stranger's answer in a message
constexpr std::int64_t kRawPartMilliseconds = 1000;  // no raw part is halved below this

// ---- Requests

// "1700000000.25": Unix seconds, or a length of time.
std::string seconds_text(std::int64_t milliseconds) {
  const bool negative = milliseconds < 0;
  const std::int64_t magnitude = negative ? -milliseconds : milliseconds;
  std::string text = (negative ? "-" : "") + std::to_string(magnitude / 1000);
  if (const std::int64_t rest = magnitude % 1000; rest != 0) {
    const std::string digits = std::to_string(rest);
    text += "." + std::string(3 - digits.size(), '0') + digits;
  }
  return text;
}

std::string form(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    if (!text.empty()) text += '&';
    text += net::url_encode(name) + "=" + net::url_encode(value);
  }
  return text;
}

net::HttpRequest request_to(const std::string& url, std::optional<std::string> body) {
  net::HttpRequest request;
  request.url = url;
  request.body = std::move(body);
  request.headers = {{"Accept", "application/json"}};
  request.any_status = true;
  return request;
}

net::HttpRequest instant_query(const std::string& base_url, std::string_view promql, Instant at) {
  return request_to(
      base_url + "/api/v1/query",
      form({{"query", promql}, {"time", seconds_text(at.unix_milliseconds)}, {"nocache", "1"}}));
}

// ---- Answers

bool looks_like_api(std::string_view body) {
  return base::trim(body).starts_with('{') && body.find("\"status\"") != std::string_view::npos;
}

// The body, if it is the API's, be it an answer or an error of it.
base::Result<std::string> api_body(const std::string& base_url, const std::string& url,
                                   base::Result<net::HttpResponse> result) {
  if (!result.ok()) return result.error();
  net::HttpResponse& response = result.value();
  const bool success = response.status >= 200 && response.status < 300;
  if (success && base::trim(std::string_view(response.body).substr(0, 100)).starts_with('{')) {
    return std::move(response.body);
  }
  if (response.status != 413 && looks_like_api(response.body)) return std::move(response.body);

  const std::string text = net::single_line(response.body, kReplyTextBytesMax);
  std::string cause = "HTTP " + response.status_line;
  if (!response.content_type.empty()) {
    cause += " (" + net::single_line(response.content_type, 60) + ")";
  }
  if (!text.empty()) cause += ": " + text;
  ErrorCode code =
      response.status == 413 ? ErrorCode::kLimit : wire::api_error_code("", response.body);
  if (response.status >= 500 || response.status == 408 || response.status == 429) {
    code = code == ErrorCode::kLimit ? code : ErrorCode::kUnavailable;
  } else if (response.status == 401 || response.status == 403) {
    code = ErrorCode::kInvalid;
    cause += "; expected credentials that the server accepts";
  } else if (code != ErrorCode::kLimit) {
    cause += "; expected a Prometheus HTTP API at " + net::url_without_credentials(base_url) +
             "/api/v1/query";
  }
  return net::attempt_error(code, url, cause, response.attempts);
}

base::Result<wire::ApiAnswer> query_answer(const std::string& base_url, const std::string& url,
                                           std::string_view promql,
                                           base::Result<net::HttpResponse> response) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string body, api_body(base_url, url, std::move(response)));
  auto answer = wire::parse_api_query(body);
  if (answer.ok()) return answer;
  return answer.error()
      .within(net::single_line(promql, kQueryTextBytesMax))
      .within(net::url_without_credentials(url));
}

// Whether a shorter range may succeed: refused for size, or ended by the server's own time limit.
bool may_succeed_shorter(const Error& error) {
  const std::string text = base::to_lower(error.message);
  return error.code == ErrorCode::kLimit || text.find("query timed out") != std::string::npos ||
         text.find("-search.maxqueryduration") != std::string::npos;
}

// ---- A range in parts

struct Range {
  std::int64_t begin = 0;  // Unix milliseconds, [begin, end)
  std::int64_t end = 0;
  std::int64_t quantum = 1;   // parts are whole multiples of it, except the last
  std::int64_t part_max = 1;  // also a multiple
};

struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::optional<base::Result<wire::ApiAnswer>> answer;
};

// Points in [begin, end) only, and no series without any.
void keep_inside(wire::ApiAnswer& answer, std::int64_t begin, std::int64_t end) {
  for (wire::ApiSeries& series : answer.series) {
    std::erase_if(series.points, [&](const wire::ApiPoint& point) {
      return point.unix_milliseconds < begin || point.unix_milliseconds >= end;
    });
  }
  std::erase_if(answer.series, [](const wire::ApiSeries& series) { return series.points.empty(); });
}

class RangeFetch {
 public:
  // make(begin, end): the request for one part. read(response): its answer.
  using Make = std::function<net::HttpRequest(std::int64_t begin, std::int64_t end)>;
  using Read = std::function<base::Result<wire::ApiAnswer>(base::Result<net::HttpResponse>)>;

  RangeFetch(net::HttpClient& http, const Range& range, int parallel_max, Make make, Read read)
      : http_(http),
        quantum_(range.quantum),
        part_max_(range.part_max),
        parallel_max_(static_cast<std::size_t>(std::max(parallel_max, 1))),
        make_(std::move(make)),
        read_(std::move(read)) {
    for (std::int64_t begin = range.begin; begin < range.end;) {
      const std::int64_t end = range.end - begin > part_max_ ? begin + part_max_ : range.end;
      parts_.push_back(Part{begin, end, {}});
      begin = end;
    }
  }

  Status run(const Piece& piece, const Progress& progress) {
    std::size_t done = 0;
    while (!parts_.empty()) {
      if (!parts_.front().answer) fetch_some();
      Part& front = parts_.front();
      if (!front.answer->ok()) {
        const Error error = front.answer->error();
        if (!may_succeed_shorter(error) || !halve_front()) return error;
        continue;
      }
      wire::ApiAnswer answer = std::move(*front.answer).value();
      keep_inside(answer, front.begin, front.end);
      parts_.pop_front();
      FLOPSIGHT_RETURN_IF_ERROR(piece(answer));
      if (progress) progress({++done, done + parts_.size()});
    }
    return {};
  }

 private:
  // Asks for those of the first parallel_max parts that have no answer yet. Answers beyond the
  // front wait for their turn, so no more than these are ever held.
  void fetch_some() {
    for (std::size_t i = 0; i < std::min(parallel_max_, parts_.size()); ++i) {
      while (!parts_[i].answer && parts_[i].end - parts_[i].begin > part_max_) halve(i);
    }
    std::vector<net::HttpRequest> requests;
    std::vector<Part*> asked;
    for (std::size_t i = 0; i < std::min(parallel_max_, parts_.size()); ++i) {
      if (parts_[i].answer) continue;
      asked.push_back(&parts_[i]);
      requests.push_back(make_(parts_[i].begin, parts_[i].end));
    }
    http_.send_all(requests, [&](std::size_t index, base::Result<net::HttpResponse> response) {
      asked[index]->answer = read_(std::move(response));
    });
  }

  // What one part was refused for, its later neighbours would be too: from here on, parts are this
  // short.
  bool halve_front() {
    if (parts_.front().end - parts_.front().begin <= quantum_) return false;
    halve(0);
    part_max_ = std::min(part_max_, parts_.front().end - parts_.front().begin);
    return true;
  }

  void halve(std::size_t index) {
    const Part whole = std::move(parts_[index]);
    const std::int64_t quanta = (whole.end - whole.begin + quantum_ - 1) / quantum_;
    const std::int64_t middle = whole.begin + (quanta + 1) / 2 * quantum_;
    parts_[index] = Part{whole.begin, middle, {}};
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                  Part{middle, whole.end, {}});
  }

  net::HttpClient& http_;
  std::int64_t quantum_;
  std::int64_t part_max_;
  std::size_t parallel_max_;
  Make make_;
  Read read_;
  std::deque<Part> parts_;
};

// What /api/v1/status/buildinfo says, or nothing. Prometheus and its kin name a revision;
// VictoriaMetrics 1.79 answers without any field, later ones with a version of Prometheus alone.
std::optional<std::string> named_server(const std::string& body) {
  const auto json = base::json::parse(body);
  const base::json::Value* data = json.ok() ? json->find("data") : nullptr;
  if (data == nullptr) return {};
  const auto text = [&](std::string_view key) -> const std::string* {
    const base::json::Value* value = data->find(key);
    return value == nullptr ? nullptr : value->as_string();
  };
  const std::string* version = text("version");
  if (version == nullptr || text("revision") == nullptr) return {};
  const std::string* application = text("application");
  const std::string name = application == nullptr ? "Prometheus" : *application;
  return net::single_line(name + " " + version->substr(0, version->find('+')), 80);
}

}  // namespace

PrometheusClient::PrometheusClient(PrometheusOptions options, net::HttpClient http)
    : options_(std::move(options)), http_(std::move(http)) {}

base::Result<PrometheusClient> PrometheusClient::create(PrometheusOptions options) {
  const std::string shown = net::single_line(net::url_without_credentials(options.url), 200);
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return Error{ErrorCode::kInvalid,
                 "\"" + shown + "\": expected a URL such as http://prometheus:9090"};
  }
  if (options.url.find_first_of("?#") != std::string::npos) {
    return Error{ErrorCode::kInvalid,
                 shown + ": expected the server's URL alone, without '?' or '#'"};
  }
  if (options.points_per_request_max < 1 || !(options.raw_chunk.value >= 0.001)) {
    return Error{ErrorCode::kInvalid, shown + ": expected parts of at least one point and 1 ms"};
  }
  while (options.url.ends_with('/')) options.url.pop_back();
  auto http = net::HttpClient::create(options.http);
  if (!http.ok()) return http.error().within(shown);
  return PrometheusClient(std::move(options), std::move(http).value());
}

base::Result<wire::ApiAnswer> PrometheusClient::query(std::string_view promql, Instant at) {
  const net::HttpRequest request = instant_query(options_.url, promql, at);
  return query_answer(options_.url, request.url, promql, http_.send(request));
}

Status PrometheusClient::query_halved(units::Window window, const std::function<std::string(const std::string&)>& promql_of,
                                      const std::function<void(const wire::ApiAnswer&)>& answer) {
  const std::int64_t length_milliseconds = window.end.unix_milliseconds - window.start.unix_milliseconds;
  const auto whole = query(promql_of(std::to_string(length_milliseconds) + "ms"), window.end - units::Seconds(0.001));
  if (whole.ok()) {
    answer(*whole);
    return {};
  }
  if (whole.error().code != ErrorCode::kLimit || length_milliseconds < 60'000) return whole.error();
  const Instant middle = window.start + window.length() / 2;
  FLOPSIGHT_RETURN_IF_ERROR(query_halved({window.start, middle}, promql_of, answer));
  return query_halved({middle, window.end}, promql_of, answer);
}

Status PrometheusClient::query_range(std::string_view promql, units::Window window,
                                     units::Seconds step, const Piece& piece,
                                     const Progress& progress) {
  const auto step_milliseconds = static_cast<std::int64_t>(std::llround(step.value * 1000.0));
  if (step_milliseconds < 1) {
    return Error{ErrorCode::kInvalid, "a query's step of less than 1 ms"};
  }
  const std::string url = options_.url + "/api/v1/query_range";
  const auto make = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = begin + (end - begin - 1) / step_milliseconds * step_milliseconds;
    return request_to(url, form({{"query", promql},
                                 {"start", seconds_text(begin)},
                                 {"end", seconds_text(last)},
                                 {"step", seconds_text(step_milliseconds)},
                                 {"nocache", "1"}}));
  };
  const auto read = [&](base::Result<net::HttpResponse> response) {
    return query_answer(options_.url, url, promql, std::move(response));
  };
  const Range range{window.start.unix_milliseconds, window.end.unix_milliseconds, step_milliseconds,
                    step_milliseconds * options_.points_per_request_max};
  return RangeFetch(http_, range, options_.parallel_max, make, read).run(piece, progress);
}

Status PrometheusClient::raw(std::string_view selector, units::Window window, const Piece& piece,
                             const Progress& progress) {
  const auto chunk = static_cast<std::int64_t>(std::llround(options_.raw_chunk.value * 1000.0));
  const auto promql = [&](std::int64_t begin, std::int64_t end) {
    return std::string(selector) + "[" + std::to_string(end - begin) + "ms]";
  };
  const auto make = [&](std::int64_t begin, std::int64_t end) {
    return instant_query(options_.url, promql(begin, end), Instant{end - 1});
  };
  const auto read = [&](base::Result<net::HttpResponse> response) {
    return query_answer(options_.url, options_.url + "/api/v1/query", selector,
                        std::move(response));
  };
  const std::int64_t quantum = std::min(chunk, kRawPartMilliseconds);
  const Range range{window.start.unix_milliseconds, window.end.unix_milliseconds, quantum,
                    std::max(chunk / quantum, std::int64_t{1}) * quantum};
  return RangeFetch(http_, range, options_.parallel_max, make, read).run(piece, progress);
}

base::Result<std::vector<std::string>> PrometheusClient::label_values(std::string_view label,
                                                                      units::Window window) {
  const std::string url = options_.url + "/api/v1/label/" + net::url_encode(label) + "/values?" +
                          form({{"start", seconds_text(window.start.unix_milliseconds)},
                                {"end", seconds_text(window.end.unix_milliseconds - 1)}});
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string body,
                             api_body(options_.url, url, http_.send(request_to(url, {}))));
  return wire::parse_api_strings(body).within(net::url_without_credentials(url));
}

base::Result<std::vector<wire::ApiSeries>> PrometheusClient::series(std::string_view selector,
                                                                    units::Window window) {
  const std::string url = options_.url + "/api/v1/series";
  const std::string body = form({{"match[]", selector},
                                 {"start", seconds_text(window.start.unix_milliseconds)},
                                 {"end", seconds_text(window.end.unix_milliseconds - 1)}});
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string answer,
                             api_body(options_.url, url, http_.send(request_to(url, body))));
  return wire::parse_api_series(answer)
      .within(net::single_line(selector, kQueryTextBytesMax))
      .within(net::url_without_credentials(url));
}

base::Result<std::string> PrometheusClient::server_name() {
  const std::string url = options_.url + "/api/v1/status/buildinfo";
  const auto body = api_body(options_.url, url, http_.send(request_to(url, {})));
  if (body.ok()) {
    if (const auto name = named_server(*body)) return *name;
  } else if (body.error().code == ErrorCode::kUnavailable) {
    return body.error();
  }
  const Instant any{1'000};
  if (auto answer = query("vector(1)", any); !answer.ok()) return answer.error();
  // A function of MetricsQL, not of PromQL.
  return std::string(query("now()", any).ok() ? "VictoriaMetrics" : "unknown");
}

}  // namespace flopsight::sources
