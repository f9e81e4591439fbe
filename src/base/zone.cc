#include "base/zone.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::base {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::size_t kTransitionsMax = 10'000;  // the longest file of tzdata has under 300
constexpr std::int64_t kLastYear = 2100;         // rules are written out to here

// Days since 1970-01-01 of a date of the Gregorian calendar.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719'468;
}

bool leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

std::int64_t year_of(std::int64_t unix_seconds) {
  std::int64_t year = 1970 + unix_seconds / 31'556'952;
  while (days_of(year, 1, 1) * kDay > unix_seconds) --year;
  while (days_of(year + 1, 1, 1) * kDay <= unix_seconds) ++year;
  return year;
}

// The big-endian whole number of `size` bytes; the caller has checked that they are there.
std::int64_t big_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = (static_cast<unsigned char>(bytes[at]) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return static_cast<std::int64_t>(value);
}

// The end of a file of tzdata: how it goes on for ever, as POSIX writes it, "CET-1CEST,M3.5.0,M10.5.0/3".
class Footer {
 public:
  struct Date {
    char kind = 'M';  // 'M': week day of a month; 'J': day of a year without 29 February; 'D': day from 0
    std::int64_t month = 1, week = 1, day = 0;
    std::int64_t seconds = 2 * 3600;
  };

  bool parse(std::string_view text) {
    rest_ = text;
    if (!name() || !time(standard)) return false;
    standard = -standard;
    if (rest_.empty()) return true;
    if (!name()) return false;
    summer = standard + 3600;
    if (!rest_.empty() && rest_.front() != ',') {
      if (!time(summer)) return false;
      summer = -summer;
    }
    changes = date(begin) && date(end) && rest_.empty();
    return changes;
  }

  std::int64_t standard = 0, summer = 0;
  bool changes = false;
  Date begin, end;

 private:
  bool name() {
    const bool quoted = !rest_.empty() && rest_.front() == '<';
    const std::size_t size = quoted ? rest_.find('>') : rest_.find_first_of("+-0123456789,");
    if (size == std::string_view::npos && quoted) return false;
    const std::size_t end_at = quoted ? size + 1 : std::min(size, rest_.size());
    rest_.remove_prefix(end_at);
    return end_at >= 3;
  }
  bool digits(std::int64_t& value) {
    const auto [to, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0 || value > 400) return false;
    rest_.remove_prefix(static_cast<std::size_t>(to - rest_.data()));
    return true;
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool time(std::int64_t& seconds) {
    const bool minus = take('-');
    if (!minus) (void)take('+');
    std::int64_t hours = 0, minutes = 0, rest = 0;
    if (!digits(hours) || hours > 167) return false;
    if (take(':') && (!digits(minutes) || minutes > 59)) return false;
    if (take(':') && (!digits(rest) || rest > 59)) return false;
    seconds = (hours * 60 + minutes) * 60 + rest;
    if (minus) seconds = -seconds;
    return true;
  }
  bool date(Date& out) {
    if (!take(',')) return false;
    if (take('M')) {
      if (!digits(out.month) || !take('.') || !digits(out.week) || !take('.') || !digits(out.day)) return false;
      if (out.month < 1 || out.month > 12 || out.week < 1 || out.week > 5 || out.day > 6) return false;
    } else {
      out.kind = take('J') ? 'J' : 'D';
      if (!digits(out.day) || out.day > 365 || (out.kind == 'J' && out.day < 1)) return false;
    }
    return !take('/') || time(out.seconds);
  }

  std::string_view rest_;
};

// Seconds since 1970, on the wall's clock, at which the change of that year happens.
std::int64_t wall_seconds(const Footer::Date& date, std::int64_t year) {
  std::int64_t day = days_of(year, 1, 1) + date.day;
  if (date.kind == 'J') day += leap(year) && date.day >= 60 ? 0 : -1;
  if (date.kind == 'M') {
    const std::int64_t first = days_of(year, date.month, 1);
    const std::int64_t next = date.month == 12 ? days_of(year + 1, 1, 1) : days_of(year, date.month + 1, 1);
    const std::int64_t week_day = (first % 7 + 11) % 7;  // 0 is Sunday; 1970-01-01 was a Thursday
    day = first + (date.day - week_day + 7) % 7 + (date.week - 1) * 7;
    while (day >= next) day -= 7;
  }
  return day * kDay + date.seconds;
}

}  // namespace

struct Zone::Data {
  std::string name;
  std::int64_t first_offset = 0;  // before the first transition
  struct Transition {
    std::int64_t at = 0;
    std::int64_t offset = 0;
  };
  std::vector<Transition> transitions;

  void add_rule(const Footer& rule) {
    const std::int64_t last = transitions.empty() ? INT64_MIN : transitions.back().at;
    const std::int64_t from = transitions.empty() ? 1970 : std::max<std::int64_t>(1970, year_of(last));
    if (!rule.changes) {
      if (transitions.empty()) first_offset = rule.standard;
      return;
    }
    std::vector<Transition> more;
    for (std::int64_t year = from; year <= kLastYear; ++year) {
      more.push_back({wall_seconds(rule.begin, year) - rule.standard, rule.summer});
      more.push_back({wall_seconds(rule.end, year) - rule.summer, rule.standard});
    }
    std::sort(more.begin(), more.end(), [](const Transition& a, const Transition& b) { return a.at < b.at; });
    for (const Transition& transition : more) {
      if (transition.at > last) transitions.push_back(transition);
    }
  }
};

Zone Zone::fixed(std::int64_t offset_seconds, std::string name) {
  auto data = std::make_shared<Data>();
  data->name = std::move(name);
  data->first_offset = offset_seconds;
  return Zone(std::move(data));
}

Zone Zone::utc() { return fixed(0, "UTC"); }

Result<Zone> Zone::parse(std::string_view tzif, std::string name) {
  const auto corrupt = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt, "time zone '" + printable(name, 60) + "': " + std::string(what)};
  };
  constexpr std::size_t kHead = 44;
  std::size_t at = 0;
  std::size_t width = 4;
  std::array<std::size_t, 6> counts{};  // isut, isstd, leap, time, type, char
  const auto head = [&] {
    if (tzif.size() < at + kHead || tzif.substr(at, 4) != "TZif") return false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::int64_t count = big_endian(tzif, at + 20 + 4 * i, 4);
      if (count < 0 || static_cast<std::size_t>(count) > kTransitionsMax) return false;
      counts[i] = static_cast<std::size_t>(count);
    }
    return true;
  };
  const auto body_bytes = [&] {
    return counts[3] * (width + 1) + counts[4] * 6 + counts[5] + counts[2] * (width + 4) + counts[1] + counts[0];
  };
  if (!head()) return corrupt("no file of tzdata (TZif)");
  const bool second = tzif[4] >= '2';
  if (second) {  // the same again with 64 bits
    at += kHead + body_bytes();
    width = 8;
    if (!head()) return corrupt("its second part is missing");
  }
  at += kHead;
  if (tzif.size() < at + body_bytes() || counts[4] == 0) return corrupt("cut short");
  const std::size_t types = at + counts[3] * (width + 1);
  const auto offset_of = [&](std::size_t type) { return big_endian(tzif, types + 6 * type, 4); };
  auto data = std::make_shared<Data>();
  data->name = name;
  data->first_offset = offset_of(0);
  for (std::size_t i = 0; i < counts[3]; ++i) {
    const auto type = static_cast<unsigned char>(tzif[at + counts[3] * width + i]);
    if (type >= counts[4]) return corrupt("a type that it does not have");
    const std::int64_t when = big_endian(tzif, at + width * i, width);
    if (!data->transitions.empty() && data->transitions.back().at >= when) return corrupt("transitions out of order");
    // From before calendars of tzdata; nothing that is asked here is that old.
    if (when < -100'000'000'000 || when > 100'000'000'000) continue;
    data->transitions.push_back({when, offset_of(type)});
  }
  const auto too_far = [](std::int64_t offset) { return offset < -2 * kDay || offset > 2 * kDay; };
  bool far = too_far(data->first_offset);
  for (const Data::Transition& transition : data->transitions) far |= too_far(transition.offset);
  if (far) return corrupt("an offset of days");
  std::string_view footer = second ? tzif.substr(at + body_bytes()) : std::string_view();
  if (footer.size() >= 2 && footer.front() == '\n') {
    footer = footer.substr(1, footer.find('\n', 1) - 1);
    Footer rule;
    if (!footer.empty() && (!rule.parse(footer) || too_far(rule.standard) || too_far(rule.summer))) return corrupt("a rule that cannot be read: " + printable(footer, 60));
    if (!footer.empty()) data->add_rule(rule);
  }
  return Zone(std::move(data));
}

Result<Zone> Zone::find(std::string_view name, const std::string& folder) {
  const Error unknown{ErrorCode::kNotFound,
                      "no time zone '" + printable(name, 60) + "', expected a name like Europe/Berlin, UTC or +02:00"};
  if (name == "UTC" || name == "Z" || name == "z") return utc();
  if (!name.empty() && (name.front() == '+' || name.front() == '-')) {
    std::string digits;
    for (const char c : name.substr(1)) {
      if (c != ':') digits += c;
    }
    const std::optional<double> number = parse_number(digits);
    const bool shape = number && digits.size() == 4 && digits.find_first_not_of("0123456789") == std::string::npos &&
                       (name.size() == 5 || (name.size() == 6 && name[3] == ':'));
    if (!shape) return unknown;
    const auto value = static_cast<std::int64_t>(*number);
    if (value % 100 > 59 || value / 100 > 15) return unknown;
    const std::int64_t seconds = (value / 100 * 60 + value % 100) * 60;
    return fixed(name.front() == '-' ? -seconds : seconds, std::string(name));
  }
  // A name is no path: it cannot leave the folder.
  const bool clean = !name.empty() && name.size() <= 64 && name.front() != '/' && name.find("..") == std::string_view::npos &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                              c == '_' || c == '-' || c == '+';
                     });
  if (!clean) return unknown;
  Result<std::string> bytes = read_file(folder + "/" + std::string(name), 1 << 20);
  if (!bytes.ok()) return unknown;
  return parse(*bytes, std::string(name));
}

const std::string& Zone::name() const { return data_->name; }

std::int64_t Zone::offset_seconds(std::int64_t unix_seconds) const {
  const auto after = std::upper_bound(data_->transitions.begin(), data_->transitions.end(), unix_seconds,
                                      [](std::int64_t t, const Data::Transition& x) { return t < x.at; });
  return after == data_->transitions.begin() ? data_->first_offset : std::prev(after)->offset;
}

std::int64_t Zone::unix_seconds(std::int64_t local_seconds, std::int64_t not_before_unix_seconds) const {
  const std::int64_t before = offset_seconds(local_seconds - kDay);
  const std::int64_t after = offset_seconds(local_seconds + kDay);
  const std::int64_t first = local_seconds - std::max(before, after);
  const std::int64_t second = local_seconds - std::min(before, after);
  const bool first_holds = local_seconds - offset_seconds(first) == first;
  const bool second_holds = local_seconds - offset_seconds(second) == second;
  if (first_holds && second_holds) return first < not_before_unix_seconds ? second : first;
  if (first_holds) return first;
  if (second_holds) return second;
  return local_seconds - before;
}

}  // namespace flopsight::base
