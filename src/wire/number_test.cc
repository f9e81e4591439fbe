#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "wire/number_internal.h"

namespace flopsight::wire {
namespace {

// The number by the standard library alone, as bits.
std::uint64_t reference_bits(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc() && end == text.data() + text.size()) << text;
  return std::bit_cast<std::uint64_t>(value);
}

void expect_same_bits(const std::string& text) {
  const std::optional<double> value = parse_exporter_number(text);
  ASSERT_TRUE(value.has_value()) << text;
  ASSERT_EQ(std::bit_cast<std::uint64_t>(*value), reference_bits(text)) << text;
}

std::string random_decimal(std::mt19937_64& random) {
  const std::size_t digits = 1 + random() % 22;
  std::string text = random() % 2 == 0 ? "-" : "";
  const std::size_t point = random() % (2 * digits + 1);
  for (std::size_t i = 0; i < digits; ++i) {
    if (i == point) text += '.';
    text += static_cast<char>('0' + random() % 10);
  }
  return text;
}

TEST(Number, decimals_of_any_length_have_the_bits_of_the_standard_library) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1'000'000; ++i) expect_same_bits(random_decimal(random));
}

TEST(Number, doubles_printed_in_every_common_way_come_back_with_their_bits) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 300'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    char text[400];
    for (const char* format : {"%.17g", "%g", "%.6f", "%e"}) {
      std::snprintf(text, sizeof text, format,
                    i % 2 == 0 ? value : std::ldexp(value, -std::ilogb(value)));
      expect_same_bits(text);
    }
  }
}

TEST(Number, the_shortcut_is_exact_at_and_past_two_to_the_53) {
  for (const char* text :
       {"9007199254740992", "9007199254740993", "9007199254740994", "900719925474099.2",
        "900719925474099.3", "0.000000000000000001", "000000000000000001", "0000000000000000001",
        "999999999999999999", "9999999999999999999", "-0", "-0.0", "9223372036854775794"}) {
    expect_same_bits(text);
  }
}

TEST(Number, a_leading_plus_is_accepted) { EXPECT_EQ(parse_exporter_number("+1.5"), 1.5); }

TEST(Number, what_is_too_small_is_zero_and_what_is_too_large_is_nothing) {
  const auto zeros = [](std::size_t count) { return std::string(count, '0'); };
  for (const std::string& text : std::vector<std::string>{
           "1e-400", "0.1e-99999999999999999999", "0." + zeros(400) + "1",
           "123456e-9223372036854775808", "1e-9999999999", zeros(5) + "1e-330"}) {
    EXPECT_EQ(parse_exporter_number(text), 0.0) << text;
    EXPECT_TRUE(std::signbit(*parse_exporter_number("-" + text)));
  }
  for (const std::string& text :
       std::vector<std::string>{std::string("1e400"), std::string("1e99999999999999999999"),
                                "1" + zeros(400), std::string("0.001e+9223372036854775807"),
                                std::string("1e+9999999999"), "1" + zeros(400) + ".5"}) {
    EXPECT_EQ(parse_exporter_number(text), std::nullopt) << text;
    EXPECT_EQ(parse_exporter_number("-" + text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_exporter_number("0e99999999999999999999"), 0.0);
}

TEST(Number, integers_are_whole_and_within_64_bits) {
  EXPECT_EQ(parse_exporter_integer("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_exporter_integer("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_exporter_integer("+7"), 7);
  for (const char* text : {"", "+", "-", "+-7", "1.0", "1e3", "9223372036854775808", "0x1", " 1"}) {
    EXPECT_EQ(parse_exporter_integer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace flopsight::wire
