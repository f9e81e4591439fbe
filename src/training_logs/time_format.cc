#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "training_logs/patterns_internal.h"

namespace flopsight::training_logs {
namespace {

// A date in a form that the user wrote down as for strptime, as far as logs need it.
class FormattedTime {
 public:
  explicit FormattedTime(std::string_view text) : text_(text) {}

  std::optional<PrintedTime> read(std::string_view format) {
    for (std::size_t f = 0; f < format.size(); ++f) {
      const bool order = format[f] == '%' && f + 1 < format.size();
      if (order ? !part(format[++f]) : !take(format[f])) return std::nullopt;
    }
    const auto milliseconds = calendar_milliseconds(year_, month_, day_, hour_, minute_, second_, millisecond_);
    if (!milliseconds || at_ != text_.size()) return std::nullopt;
    return PrintedTime{*milliseconds, offset_};
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool digits(std::size_t least, std::size_t most, int& value) {
    const std::size_t first = at_;
    value = 0;
    while (at_ < text_.size() && at_ < first + most && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
    }
    return at_ >= first + least;
  }
  bool fraction() {
    const std::size_t first = at_;
    if (!digits(1, 3, millisecond_)) return false;
    for (std::size_t i = at_ - first; i < 3; ++i) millisecond_ *= 10;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return true;
  }
  bool month_name() {
    constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::string_view name = text_.substr(std::min(at_, text_.size()), 3);
    const std::size_t month_at = name.size() == 3 ? kMonths.find(name) : std::string_view::npos;
    if (month_at == std::string_view::npos || month_at % 3 != 0) return false;
    month_ = static_cast<int>(month_at / 3) + 1;
    at_ += 3;
    return true;
  }
  bool zone() {
    offset_ = 0;
    if (take('Z')) return true;
    const bool minus = take('-');
    int hours = 0;
    int minutes = 0;
    if ((!minus && !take('+')) || !digits(2, 2, hours)) return false;
    (void)take(':');
    if (!digits(2, 2, minutes) || hours > 15 || minutes > 59) return false;
    offset_ = (minus ? -1 : 1) * (hours * 60 + minutes) * 60;
    return true;
  }
  bool part(char order) {
    switch (order) {
      case 'Y': return digits(4, 4, year_);
      case 'm': return digits(1, 2, month_);
      case 'd': return digits(1, 2, day_);
      case 'H': return digits(1, 2, hour_);
      case 'M': return digits(1, 2, minute_);
      case 'S': return digits(1, 2, second_);
      case 'f': return fraction();
      case 'b': return month_name();
      case 'z': return zone();
      case '%': return take('%');
      default: return false;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int year_ = 1970, month_ = 1, day_ = 1, hour_ = 0, minute_ = 0, second_ = 0, millisecond_ = 0;
  std::optional<std::int64_t> offset_;
};

}  // namespace

std::optional<PrintedTime> read_time(std::string_view text, std::string_view format) {
  if (format == "unix" || format == "unix_ms") {
    const std::optional<double> number = base::parse_number(text);
    if (!number || !(std::abs(*number) < 1e14)) return std::nullopt;
    const double milliseconds = format == "unix" ? *number * 1000 : *number;
    return PrintedTime{static_cast<std::int64_t>(std::llround(milliseconds)), 0};
  }
  if (format == "rfc3339") {
    std::size_t size = 0;
    const std::optional<PrintedTime> time = read_date(text, size);
    return time && size == text.size() ? time : std::nullopt;
  }
  return FormattedTime(text).read(format);
}

}  // namespace flopsight::training_logs
