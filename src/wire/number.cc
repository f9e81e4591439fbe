// Most values that exporters print are short decimals, and those have an exact shortcut: if the
// digits without the point are an integer m <= 2^53, and k <= 22 of them stand behind the point,
// then m and 10^k are both doubles without error, so the one division m / 10^k is rounded once,
// from the true quotient. That is the definition of the nearest double, hence the same bits as
// std::from_chars. Everything else goes to std::from_chars.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "wire/number_internal.h"

namespace flopsight::wire {
namespace {

constexpr int kShortDigitsMax = 18;  // 10^18 fits a 64-bit integer, so the loop cannot overflow
constexpr std::uint64_t kExactIntegerMax = std::uint64_t{1} << 53;
constexpr std::array<double, kShortDigitsMax + 1> kPowersOfTen = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Unsigned digits with at most one point, when the shortcut is exact; nothing otherwise.
std::optional<double> short_decimal(const char* at, const char* end) {
  if (end - at > kShortDigitsMax + 1) return std::nullopt;
  std::uint64_t digits = 0;
  const char* point = nullptr;
  const char* const begin = at;
  for (; at != end; ++at) {
    if (is_digit(*at)) {
      digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    } else if (*at == '.' && point == nullptr) {
      point = at;
    } else {
      return std::nullopt;
    }
  }
  const std::ptrdiff_t count = (end - begin) - (point != nullptr ? 1 : 0);
  if (count == 0 || count > kShortDigitsMax || digits > kExactIntegerMax) return std::nullopt;
  const double whole = static_cast<double>(digits);
  if (point == nullptr) return whole;
  return whole / kPowersOfTen[static_cast<std::size_t>(end - point - 1)];
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] >= 'A' && text[i] <= 'Z';
    if ((upper ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != lower[i]) return false;
  }
  return true;
}

// Of a valid decimal that no double can hold: is it too small, rather than too large? Looks at the
// decimal place of the first digit that is not zero, plus the exponent.
bool is_too_small(std::string_view text) {
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, exponent_at);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_of("123456789");
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (exponent_at == std::string_view::npos) return place <= 0;
  std::string_view exponent = text.substr(exponent_at + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t shift = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift);
  if (read.ec == std::errc::result_out_of_range) return exponent.starts_with('-');
  // No text is long enough for its digits to outweigh an exponent beyond 2^62, and the sum stays in
  // range.
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  if (shift > kFar || shift < -kFar) return shift < 0;
  return place + shift <= 0;
}

}  // namespace

std::optional<double> parse_exporter_number(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end) return std::nullopt;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  if (const auto value = short_decimal(at, end)) return negative ? -*value : *value;
  if (at == end) return std::nullopt;

  const std::string_view unsigned_text(at, static_cast<std::size_t>(end - at));
  double value = 0;
  if (is_digit(*at) || *at == '.') {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      if (!is_too_small(unsigned_text)) return std::nullopt;
      value = 0;
    }
  } else if (equals_ignoring_case(unsigned_text, "nan")) {
    return std::numeric_limits<double>::quiet_NaN();
  } else if (equals_ignoring_case(unsigned_text, "inf") ||
             equals_ignoring_case(unsigned_text, "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else {
    return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<std::int64_t> parse_exporter_integer(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace flopsight::wire
