// The first byte picks the reader, the rest is the answer. Whatever arrives, points come out
// ascending and labels as UTF-8 text, or an error of one line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "wire/prometheus_api.h"

namespace {

void check_error(const flopsight::base::Error& error) {
  FLOPSIGHT_CHECK(!error.message.empty());
  FLOPSIGHT_CHECK(error.message.find('\n') == std::string::npos);
}

void check_points(const flopsight::wire::ApiSeries& series) {
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    FLOPSIGHT_CHECK(series.points[i - 1].unix_milliseconds < series.points[i].unix_milliseconds);
  }
}

void check_query(std::string_view json) {
  const auto answer = flopsight::wire::parse_api_query(json);
  if (!answer.ok()) return check_error(answer.error());
  for (const auto& series : answer->series) check_points(series);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 's') {
    const auto strings = flopsight::wire::parse_api_strings(json);
    if (!strings.ok()) check_error(strings.error());
  } else if (data[0] == 'l') {
    const auto series = flopsight::wire::parse_api_series(json);
    if (!series.ok()) check_error(series.error());
  } else if (data[0] == 'e') {
    const auto series = flopsight::wire::parse_export_line(json);
    if (!series.ok()) return check_error(series.error()), 0;
    check_points(*series);
  } else {
    check_query(json);
  }
  return 0;
}
