#pragma once
// Numbers as exporters print them. Not for configuration or JSON: NaN and infinities are values
// here.

#include <cstdint>
#include <optional>
#include <string_view>

namespace flopsight::wire {

// The whole text as a double, rounded to nearest as std::from_chars does. Accepted: an optional
// sign, a decimal with or without an exponent, and nan, inf, infinity in any case. A value too
// small for a double is zero with its sign; one too large is nothing, and so are hexadecimal,
// blanks and digit separators.
std::optional<double> parse_exporter_number(std::string_view text);

// The whole text as an integer with an optional sign, within 64 bits.
std::optional<std::int64_t> parse_exporter_integer(std::string_view text);

}  // namespace flopsight::wire
