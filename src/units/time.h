#pragma once
// Points in time and half-open windows [start, end). An Instant is milliseconds since the Unix epoch in
// UTC, the resolution of Prometheus; it has no time zone and reads no clock.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "units/units.h"

namespace flopsight::units {

struct Instant {
  std::int64_t unix_milliseconds = 0;

  constexpr auto operator<=>(const Instant&) const = default;
};

constexpr Seconds operator-(Instant a, Instant b) {
  return Seconds(static_cast<double>(a.unix_milliseconds - b.unix_milliseconds) / 1000.0);
}
constexpr Instant operator+(Instant t, Seconds d) {
  const double milliseconds = d.value * 1000.0;
  return Instant{t.unix_milliseconds +
                 static_cast<std::int64_t>(milliseconds + (milliseconds < 0 ? -0.5 : 0.5))};
}
constexpr Instant operator-(Instant t, Seconds d) { return t + Seconds(-d.value); }

// [start, end): start is inside, end is not.
struct Window {
  Instant start;
  Instant end;

  constexpr Seconds length() const { return end - start; }
  constexpr bool contains(Instant t) const { return t >= start && t < end; }
};

// "2026-11-29T16:03:12Z", with milliseconds only where they are not zero.
std::string to_rfc3339(Instant t);

// RFC 3339 with "Z" or a numeric offset ("2026-11-29T17:03:12+01:00"), seconds optional fraction; or
// Unix seconds, with a fraction ("1790000000.5"). Nothing else: a time without an offset is ambiguous.
std::optional<Instant> parse_instant(std::string_view text);

// "90s", "15m", "24h", "7d", "2w", sums of them ("1h30m"), "500ms". Positive only.
std::optional<Seconds> parse_duration(std::string_view text);

}  // namespace flopsight::units
