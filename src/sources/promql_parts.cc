#include "sources/promql_parts.h"

#include <cmath>
#include <cstdio>

namespace flopsight::sources {

std::string promql_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string promql_quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

namespace {

std::string newest(std::string_view names, const Reading& reading) {
  return "last_over_time({__name__=~\"" + std::string(names) + "\"" + (reading.match.empty() ? "" : "," + reading.match) + "}[" +
         std::to_string(std::llround(reading.hold.value * 1000)) + "ms])";
}

}  // namespace

std::string held(std::string_view aggregation, std::string_view names, const Reading& reading) {
  return std::string(aggregation) + "(" + newest(names, reading) + ")";
}

std::string held_in_range(std::string_view aggregation, const MetricNames& names, const Reading& reading) {
  const catalog::MetricInfo& info = catalog::info(names.metric);
  return std::string(aggregation) + "((" + newest(names.names, reading) + " >= " + promql_number(info.value_min / names.scale) +
         ") <= " + promql_number(info.value_max / names.scale) + ")";
}

std::string activity_times_clock(std::string_view activity, std::string_view clock, std::string_view gpu_label) {
  return std::string(activity) + " * on(" + std::string(gpu_label) + ") group_left() " + std::string(clock);
}

}  // namespace flopsight::sources
