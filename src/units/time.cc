#include "units/time.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace flopsight::units {
namespace {

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Unix seconds.
constexpr std::int64_t kYear0 = -62'167'219'200, kYear10000 = 253'402'300'800;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Instant> parse_unix_seconds(std::string_view text) {
  const auto value = number(text);
  // Beyond the year 9999 it is surely milliseconds given for seconds.
  if (!value || !(*value >= static_cast<double>(kYear0) && *value < static_cast<double>(kYear10000))) return std::nullopt;
  return Instant{static_cast<std::int64_t>(std::llround(*value * 1000.0))};
}

// The offset in minutes of "Z", "+01:00" or "-0800".
std::optional<int> parse_offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 5 && text.size() != 6) return std::nullopt;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  if (text.size() == 6 && text[3] != ':') return std::nullopt;
  const auto hours = digits(text, 1, 2);
  const auto minutes = digits(text, text.size() - 2, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int total = *hours * 60 + *minutes;
  return text[0] == '-' ? -total : total;
}

}  // namespace

std::string to_rfc3339(Instant t) {
  using namespace std::chrono;
  const sys_time<milliseconds> point{milliseconds{t.unix_milliseconds}};
  const auto day = floor<days>(point);
  const year_month_day date{day};
  const hh_mm_ss<milliseconds> clock{point - day};
  char text[64];
  int size = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d",
                           static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                           static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                           static_cast<int>(clock.minutes().count()),
                           static_cast<int>(clock.seconds().count()));
  const int milliseconds_part = static_cast<int>(clock.subseconds().count());
  if (milliseconds_part != 0) {
    size += std::snprintf(text + size, sizeof text - static_cast<std::size_t>(size), ".%03d",
                          milliseconds_part);
  }
  return std::string(text, static_cast<std::size_t>(size)) + "Z";
}

std::optional<Instant> parse_instant(std::string_view text) {
  using namespace std::chrono;
  if (text.size() < 20 || text[4] != '-') return parse_unix_seconds(text);
  const auto y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
  const auto h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
  if (!y || !mo || !d || !h || !mi || !s || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
      (text[10] != 'T' && text[10] != 't' && text[10] != ' ') || *h > 23 || *mi > 59 || *s > 60) {
    return std::nullopt;
  }
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)},
                            day{static_cast<unsigned>(*d)}};
  if (!date.ok()) return std::nullopt;
  std::size_t at = 19;
  int milliseconds_part = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    int scale = 100;
    const std::size_t first = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) {
      milliseconds_part += (text[at] - '0') * scale;
    }
    if (at == first) return std::nullopt;
  }
  const auto offset = parse_offset(text.substr(at));
  if (!offset) return std::nullopt;
  const std::int64_t seconds_since_epoch =
      sys_days{date}.time_since_epoch().count() * std::int64_t{86400} + *h * 3600 + *mi * 60 + *s -
      *offset * std::int64_t{60};
  // An offset may lead out of the years that RFC 3339 can write.
  if (seconds_since_epoch < kYear0 || seconds_since_epoch >= kYear10000) return std::nullopt;
  return Instant{seconds_since_epoch * 1000 + milliseconds_part};
}

std::optional<Seconds> parse_duration(std::string_view text) {
  double total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t unit_at = text.find_first_not_of("0123456789.");
    if (unit_at == 0 || unit_at == std::string_view::npos) return std::nullopt;
    const auto count = number(text.substr(0, unit_at));
    text.remove_prefix(unit_at);
    const std::size_t next = text.find_first_of("0123456789.");
    const std::string_view unit = text.substr(0, next);
    double scale = 0;
    if (unit == "ms") scale = 0.001;
    if (unit == "s") scale = 1;
    if (unit == "m") scale = 60;
    if (unit == "h") scale = 3600;
    if (unit == "d") scale = 86400;
    if (unit == "w") scale = 604800;
    if (!count || scale == 0) return std::nullopt;
    total += *count * scale;
    text.remove_prefix(next == std::string_view::npos ? text.size() : next);
  }
  if (!(total > 0) || total > 1e11) return std::nullopt;
  return Seconds(total);
}

}  // namespace flopsight::units
