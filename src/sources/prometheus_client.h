#pragma once
// A Prometheus-compatible server behind four calls. Splits long ranges into requests the server accepts,
// retries what may succeed later, and hands results over piece by piece so that memory is bounded by one
// piece, not by the whole range.
//
// Works against Prometheus 2.42 and VictoriaMetrics 1.79 (both run in the tests) and what speaks their API.
// Errors: of net/http_client.h and wire/prometheus_api.h, with the URL (without credentials) and the query in
// front; kInvalid with "expected a Prometheus HTTP API at ..." where something else answered. Partial answers
// and warnings are no errors: they are in the ApiAnswer.
// Threads: one client, one thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"
#include "units/time.h"
#include "wire/prometheus_api.h"

namespace flopsight::sources {

struct PrometheusOptions {
  std::string url;  // "http://prom:9090", with or without a path prefix or a trailing slash
  net::HttpOptions http;
  // Prometheus refuses more than 11,000 points a series; fewer keep one answer small.
  std::int64_t points_per_request_max = 10'000;
  // Raw samples are fetched as `selector[chunk]` instant queries of this length.
  units::Seconds raw_chunk{3600};
  int parallel_max = 2;  // requests in flight, and answers held, at once for one split range
};

// How far a split query has got; for a progress bar.
struct PrometheusProgress {
  std::size_t done = 0;
  std::size_t total = 0;
};

class PrometheusClient {
 public:
  static base::Result<PrometheusClient> create(PrometheusOptions options);

  base::Result<wire::ApiAnswer> query(std::string_view promql, units::Instant at);
  // An instant query at the window's end over a range that is the window: `promql_of` makes it of "86400000ms". A window that the server finds
  // too long is halved, down to a minute, and `answer` called for each part.
  base::Status query_halved(units::Window window, const std::function<std::string(const std::string& range)>& promql_of,
                            const std::function<void(const wire::ApiAnswer&)>& answer);

  // Every series of a range query at start, start + step, …, < window.end, in pieces ordered by time:
  // `piece` is called once for each sub-range, ascending, and stops the rest by returning an error.
  // A sub-range that the server refuses as too large, or ends for its own time limit, is halved, down to one
  // step, before giving up. VictoriaMetrics repeats values at steps younger than its latency offset of 30 s.
  base::Status query_range(std::string_view promql, units::Window window, units::Seconds step,
                           const std::function<base::Status(const wire::ApiAnswer&)>& piece,
                           const std::function<void(PrometheusProgress)>& progress = {});

  // Raw samples (their own timestamps) of a plain selector with timestamps in [window.start, window.end), in pieces
  // of at most raw_chunk, ascending in time; a point is handed over exactly once. The selector has no range,
  // offset or @. A part refused as too large is halved, down to one second.
  // Where a target vanished, Prometheus leaves its stale marker out; VictoriaMetrics 1.79 gives a NaN.
  base::Status raw(std::string_view selector, units::Window window,
                   const std::function<base::Status(const wire::ApiAnswer&)>& piece,
                   const std::function<void(PrometheusProgress)>& progress = {});

  base::Result<std::vector<std::string>> label_values(std::string_view label, units::Window window);
  base::Result<std::vector<wire::ApiSeries>> series(std::string_view selector, units::Window window);

  // "Prometheus 2.42.0", "VictoriaMetrics", or "unknown": from /api/v1/status/buildinfo, for messages.
  base::Result<std::string> server_name();

 private:
  PrometheusClient(PrometheusOptions options, net::HttpClient http);
  PrometheusOptions options_;
  net::HttpClient http_;
};

}  // namespace flopsight::sources
