#pragma once
// Answers of the Prometheus HTTP API (/api/v1/query, query_range, series, label values), from JSON bytes to
// values, as Prometheus 2.x, VictoriaMetrics, Thanos and Mimir print them. Pure; fetching is in sources/.
//
// Errors: kInvalid/kCorrupt with the byte offset where JSON breaks; an answer with "status":"error" becomes
// an Error with the server's errorType and text (kUnavailable for "timeout", "unavailable" and "internal",
// kLimit for "too many"/limit messages, else kInvalid). kUnsupported for a query whose result is a text.
// Histograms are skipped; a value of null is no point. Unsorted or repeated points are put in order, the last
// of one time stands.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::wire {

struct ApiPoint {
  std::int64_t unix_milliseconds = 0;
  double value = 0;  // "NaN", "+Inf", "-Inf" as such
};

struct ApiSeries {
  std::vector<std::pair<std::string, std::string>> labels;  // __name__ included where present
  std::vector<ApiPoint> points;                             // ascending; one for an instant vector
};

struct ApiAnswer {
  std::vector<ApiSeries> series;        // vector, matrix, or scalar as one series without labels
  std::vector<std::string> warnings;    // "warnings" and "infos", each one line
  bool is_partial = false;              // VictoriaMetrics: "isPartial": true
};

// The code of a server's error, from its errorType ("" where unknown) and text.
base::ErrorCode api_error_code(std::string_view error_type, std::string_view text);

base::Result<ApiAnswer> parse_api_query(std::string_view json);
// The "data" array of strings of /label/…/values and /labels.
base::Result<std::vector<std::string>> parse_api_strings(std::string_view json);
// The "data" array of label objects of /series.
base::Result<std::vector<ApiSeries>> parse_api_series(std::string_view json);
// One line of VictoriaMetrics' /api/v1/export: {"metric": {…}, "values": […], "timestamps": […]}, as many of one as of the
// other; milliseconds; a value of null is no point, "Infinity" is one.
base::Result<ApiSeries> parse_export_line(std::string_view json);

}  // namespace flopsight::wire
