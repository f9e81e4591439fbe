#include <array>

#include "base/text.h"
#include "training_logs/figure_internal.h"
#include "training_logs/line_internal.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kPrefixBytes = 160;  // where dates and ranks stand

bool digit(char c) { return c >= '0' && c <= '9'; }

// `count` digits at `at` as a number, or -1.
int digits_at(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (!digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Digits after `word`, as in "[rank12]" or "[Rank 3]".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t i = at + word.size();
  std::int64_t value = 0;
  const std::size_t first = i;
  while (i < text.size() && digit(text[i]) && i < first + 8) value = value * 10 + (text[i++] - '0');
  if (i == first || i >= text.size() || text[i] != ']') return std::nullopt;
  return value;
}

std::optional<std::int64_t> rank_of(std::string_view text) {
  // srun --label: "12: text"; a time of day has no space after its colon.
  std::size_t i = 0;
  while (i < text.size() && text[i] == ' ' && i < 8) ++i;
  const std::size_t first = i;
  std::int64_t value = 0;
  while (i < text.size() && digit(text[i]) && i < first + 8) value = value * 10 + (text[i++] - '0');
  if (i > first && i + 1 < text.size() && text[i] == ':' && text[i + 1] == ' ') return value;
  // mpirun --tag-output: "[1,12]<stdout>:"
  if (const std::size_t tag = text.find("]<std"); tag != std::string_view::npos) {
    std::size_t at = tag;
    while (at > 0 && digit(text[at - 1]) && tag - at < 8) --at;
    if (at < tag && at > 0 && text[at - 1] == ',') {
      value = 0;
      for (std::size_t k = at; k < tag; ++k) value = value * 10 + (text[k] - '0');
      return value;
    }
  }
  for (const std::string_view word : {"[rank", "[default", "[Rank ", "[rank "}) {
    if (const auto rank = number_after(text, word)) return rank;
  }
  return std::nullopt;
}

// Takes out "ESC [ … letter" and "ESC ] … BEL" and the other bytes that only a terminal understands; ESC is "\u001b" where a container's log
// is kept as JSON.
std::string_view without_escapes(std::string_view raw, std::string& buffer) {
  constexpr std::string_view kJsonEscape = "\\u001b";
  if (raw.find('\x1b') == std::string_view::npos && raw.find(kJsonEscape) == std::string_view::npos) return raw;
  buffer.clear();
  for (std::size_t i = 0; i < raw.size();) {
    const bool is_json = raw.substr(i).starts_with(kJsonEscape);
    if (raw[i] != '\x1b' && !is_json) {
      buffer += raw[i++];
      continue;
    }
    i += is_json ? kJsonEscape.size() : 1;
    if (i < raw.size() && raw[i] == '[') {
      ++i;
      while (i < raw.size() && (static_cast<unsigned char>(raw[i]) < 0x40 || static_cast<unsigned char>(raw[i]) > 0x7e)) ++i;
    } else if (i < raw.size() && raw[i] == ']') {
      while (i < raw.size() && raw[i] != '\x07') ++i;
    }
    if (i < raw.size()) ++i;
  }
  return buffer;
}

}  // namespace

std::optional<std::int64_t> calendar_milliseconds(int year, int month, int day, int hour, int minute, int second,
                                                  int millisecond) {
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (day > kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0)) return std::nullopt;
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const std::int64_t days = y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719'468;
  return ((days * 24 + hour) * 60 + minute) * 60'000 + second * 1000 + millisecond;
}

std::optional<PrintedTime> read_date(std::string_view text, std::size_t& size) {
  if (text.size() < 19 || (text[4] != '-' && text[4] != '/') || text[7] != text[4]) return std::nullopt;
  if ((text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') return std::nullopt;
  std::size_t at = 19;
  int millisecond = 0;
  if (at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && digit(text[at + 1])) {
    ++at;
    for (int scale = 100; at < text.size() && digit(text[at]); ++at, scale /= 10) millisecond += scale * (text[at] - '0');
  }
  const auto milliseconds = calendar_milliseconds(digits_at(text, 0, 4), digits_at(text, 5, 2), digits_at(text, 8, 2),
                                                  digits_at(text, 11, 2), digits_at(text, 14, 2), digits_at(text, 17, 2),
                                                  millisecond);
  if (!milliseconds) return std::nullopt;
  PrintedTime time{*milliseconds, std::nullopt};
  if (at < text.size() && text[at] == 'Z') {
    time.offset_seconds = 0;
    ++at;
  } else if (at + 4 < text.size() && (text[at] == '+' || text[at] == '-')) {
    const bool colon = text[at + 3] == ':';
    const int hours = digits_at(text, at + 1, 2);
    const int minutes = digits_at(text, at + (colon ? 4 : 3), 2);
    if (hours >= 0 && hours <= 15 && minutes >= 0 && minutes < 60) {
      const std::int64_t offset = (hours * 60 + minutes) * 60;
      time.offset_seconds = text[at] == '-' ? -offset : offset;
      at += colon ? 6 : 5;
    }
  }
  size = at;
  return time;
}

namespace {

// "HH:MM:SS" with fractions behind it at this place, in milliseconds; the date before it is the caller's.
std::optional<std::int64_t> clock_milliseconds(std::string_view text, std::size_t at) {
  if (at + 8 > text.size() || text[at + 2] != ':' || text[at + 5] != ':') return std::nullopt;
  const int hour = digits_at(text, at, 2), minute = digits_at(text, at + 3, 2), second = digits_at(text, at + 6, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return std::nullopt;
  std::int64_t milliseconds = ((hour * 60 + minute) * 60 + second) * std::int64_t{1000};
  if (at + 9 < text.size() && (text[at + 8] == '.' || text[at + 8] == ',')) {
    int scale = 100;
    for (std::size_t i = at + 9; i < text.size() && digit(text[i]); ++i, scale /= 10) milliseconds += scale * (text[i] - '0');
  }
  return milliseconds;
}

// Times of lines that have no date that begins with its year.
void read_other_times(std::string_view prefix, Line& line) {
  constexpr std::size_t kClockBytes = 48;  // further in, a time of day is one that is told and not the line's
  prefix = prefix.substr(0, kClockBytes);
  for (std::size_t colon = prefix.find(':'); colon != std::string_view::npos; colon = prefix.find(':', colon + 1)) {
    if (colon < 2) continue;
    const std::size_t clock = colon - 2;
    const auto milliseconds = clock_milliseconds(prefix, clock);
    // "[00:10:00<00:20:00" is of a progress bar.
    if (!milliseconds || (clock > 0 && (digit(prefix[clock - 1]) || prefix[clock - 1] == '<')) || prefix.substr(clock + 8).starts_with('<')) continue;
    line.has_other_time = true;
    if (clock < 11 || (prefix[clock - 1] != ' ' && prefix[clock - 1] != 'T') || prefix[clock - 9] != '/' || prefix[clock - 6] != '/') return;
    const int month = digits_at(prefix, clock - 11, 2), day = digits_at(prefix, clock - 8, 2), year = digits_at(prefix, clock - 5, 4);
    const auto date = calendar_milliseconds(year, month, day, 0, 0, 0, 0);
    if (!date) return;
    line.month_first = PrintedTime{*date + *milliseconds, std::nullopt};
    line.is_month_first = day > 12;
    return;
  }
}

}  // namespace

Line clean_line(std::string_view raw, std::string& buffer) {
  Line line;
  line.text = without_escapes(raw, buffer);
  const std::string_view prefix = line.text.substr(0, kPrefixBytes);
  for (std::size_t i = 4; i + 15 <= prefix.size(); ++i) {
    if (prefix[i] != '-' && prefix[i] != '/') continue;
    std::size_t size = 0;
    const std::optional<PrintedTime> time = read_date(line.text.substr(i - 4), size);
    if (!time) continue;
    // A launcher's own time stamp with an offset says more than the program's without.
    if (!line.time || (!line.time->offset_seconds && time->offset_seconds)) line.time = time;
    i += size > 4 ? size - 4 : 0;
  }
  line.rank = rank_of(prefix);
  if (!line.time) read_other_times(prefix, line);
  return line;
}

std::string_view without_last_word(std::string_view text) {
  const std::size_t blank = text.find_last_of(" \t");
  return blank == std::string_view::npos ? std::string_view() : text.substr(0, blank);
}

std::string_view without_broken_figure(std::string_view text) {
  constexpr std::string_view kOfNumbers = "0123456789.,eE+-";
  const auto number_from = [&](std::size_t end) {
    std::size_t from = end;
    while (from > 0 && kOfNumbers.find(text[from - 1]) != std::string_view::npos) --from;
    const std::string_view run = text.substr(from, end - from);
    return run.find_first_of("0123456789") == std::string_view::npos ? end : from;
  };
  const std::size_t from = number_from(text.size());
  if (from < text.size()) return text.substr(0, from);
  // "12.5 m": of milliseconds, or of minutes.
  std::size_t unit = text.size();
  while (unit > 0 && ((text[unit - 1] >= 'a' && text[unit - 1] <= 'z') || (text[unit - 1] >= 'A' && text[unit - 1] <= 'Z') || text[unit - 1] == '/')) --unit;
  const std::size_t behind = unit > 0 && text[unit - 1] == ' ' ? unit - 1 : unit;
  if (unit == text.size() || parse_unit(text.substr(unit))) return text;
  return text.substr(0, number_from(behind) < behind ? number_from(behind) : text.size());
}

std::optional<units::Instant> instant_of(const PrintedTime& time, const std::optional<base::Zone>& zone,
                                         const std::optional<units::Instant>& last) {
  if (time.offset_seconds) return units::Instant{time.local_milliseconds - *time.offset_seconds * 1000};
  if (!zone) return std::nullopt;
  const std::int64_t seconds = time.local_milliseconds / 1000;
  const std::int64_t not_before = last ? last->unix_milliseconds / 1000 : INT64_MIN;
  return units::Instant{zone->unix_seconds(seconds, not_before) * 1000 + time.local_milliseconds % 1000};
}

}  // namespace flopsight::training_logs
