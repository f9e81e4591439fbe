#include "sources/promql_parts.h"

#include <cmath>
#include <cstdio>

namespace flopsight::sources {

std::string promql_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string held(std::string_view aggregation, std::string_view names, const Reading& reading) {
  return std::string(aggregation) + "(last_over_time({__name__=~\"" + std::string(names) + "\"" +
         (reading.match.empty() ? "" : "," + reading.match) + "}[" +
         std::to_string(std::llround(reading.hold.value * 1000)) + "ms]))";
}

std::string held_in_range(std::string_view aggregation, const MetricNames& names, const Reading& reading) {
  const catalog::MetricInfo& info = catalog::info(names.metric);
  return "((" + held(aggregation, names.names, reading) + " >= " + promql_number(info.value_min / names.scale) +
         ") <= " + promql_number(info.value_max / names.scale) + ")";
}

std::string activity_times_clock(std::string_view activity, std::string_view clock, std::string_view gpu_label) {
  return std::string(activity) + " * on(" + std::string(gpu_label) + ") group_left() " + std::string(clock);
}

}  // namespace flopsight::sources
