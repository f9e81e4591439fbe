#include "serve/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"

namespace flopsight::app {

base::Error wrong_parameter(std::string_view name, std::string_view found, std::string_view expected) {
  return {base::ErrorCode::kInvalid,
          std::string(name) + ": found \"" + base::printable(found, 60) + "\", expected " + std::string(expected)};
}

base::Status Parameters::only(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : request_.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string_view one : known) all += (all.empty() ? "" : ", ") + std::string(one);
    return wrong_parameter("parameter", name, known.size() == 1 ? all : "one of " + all);
  }
  return {};
}

base::Result<units::Window> Parameters::window() const {
  units::Window window;
  window.end = now_;
  // One of them would have no effect, and nobody be told which.
  for (const std::string_view other : {"start", "end"}) {
    if (const auto since = request_.query_value("since"); since && request_.query_value(other)) {
      return wrong_parameter("since", *since, "start and end, or since, and not since with " + std::string(other));
    }
  }
  if (const auto text = request_.query_value("end")) {
    const auto end = units::parse_instant(*text);
    if (!end) return wrong_parameter("end", *text, "RFC 3339 with an offset, or Unix seconds");
    window.end = *end;
  }
  window.start = window.end - units::Seconds(24 * 3600);
  if (const auto text = request_.query_value("since")) {
    const auto length = units::parse_duration(*text);
    if (!length) return wrong_parameter("since", *text, "a duration such as 24h");
    window.start = window.end - *length;
  }
  if (const auto text = request_.query_value("start")) {
    const auto start = units::parse_instant(*text);
    if (!start) return wrong_parameter("start", *text, "RFC 3339 with an offset, or Unix seconds");
    window.start = *start;
  }
  constexpr std::int64_t kLatest = 253'402'300'799'000;  // the year 9999
  if (window.start.unix_milliseconds < 0 || window.end.unix_milliseconds > kLatest) {
    return base::Error{base::ErrorCode::kInvalid, "start and end: expected times from 1970 to 9999"};
  }
  if (window.end <= window.start) return base::Error{base::ErrorCode::kInvalid, "end is not after start"};
  if (window.length().value > config_.limits_query_window.value) {
    return base::Error{base::ErrorCode::kLimit, "the window is longer than limits.query-window"};
  }
  return window;
}

base::Result<std::uint64_t> Parameters::count(std::string_view name, std::uint64_t otherwise, std::uint64_t most) const {
  const auto text = request_.query_value(name);
  if (!text) return otherwise;
  const auto number = base::parse_number(*text);
  if (!number || *number < 1 || *number != std::floor(*number) || *number > static_cast<double>(most)) {
    return wrong_parameter(name, *text, "a whole number from 1 to " + std::to_string(most));
  }
  return static_cast<std::uint64_t>(*number);
}

base::Result<std::uint64_t> Parameters::cursor() const {
  const auto text = request_.query_value("cursor");
  if (!text) return std::uint64_t{0};
  const auto number = base::parse_number(*text);
  if (!number || *number < 0 || *number != std::floor(*number) || *number > 1e9) {
    return wrong_parameter("cursor", *text, "what next_cursor said");
  }
  return static_cast<std::uint64_t>(*number);
}

base::Result<units::Seconds> Parameters::step(store::Reader& store, units::Window& window, double steps_wanted) const {
  const double slot = config_.rollup_slot.value;
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Seconds longest, store.longest_slot(window));
  double step = slot;
  if (const auto text = request_.query_value("step")) {
    const auto given = units::parse_duration(*text);
    if (!given || given->value < slot || std::fmod(given->value, slot) != 0) {
      return wrong_parameter("step", *text, "a multiple of " + std::to_string(static_cast<int>(slot)) + "s");
    }
    step = given->value;
  } else {
    for (const double larger : {300.0, 600.0, 3600.0, 6 * 3600.0, 86'400.0}) {
      if (window.length().value / step > steps_wanted && std::fmod(larger, slot) == 0) step = larger;
    }
  }
  // Of what is kept in hours there is no shorter step; the answer says which it has.
  if (longest.value > slot) step = std::ceil(step / longest.value) * longest.value;
  if (window.length().value / step > static_cast<double>(config_.limits_query_steps)) {
    return base::Error{base::ErrorCode::kLimit, "more than " + std::to_string(config_.limits_query_steps) +
                                                    " steps (limits.query-steps); give a larger step"};
  }
  window = store.answered(window, units::Seconds(step));
  return units::Seconds(step);
}

}  // namespace flopsight::app
