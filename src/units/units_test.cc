#include "units/units.h"

#include <gtest/gtest.h>

#include "units/time.h"

namespace flopsight::units {
namespace {

template <typename A, typename B>
concept Addable = requires(A a, B b) { a + b; };

static_assert(Addable<Watts, Watts>);
static_assert(!Addable<Watts, Joules>);
static_assert(!Addable<Hertz, Seconds>);

TEST(Units, watts_times_seconds_are_joules) {
  EXPECT_DOUBLE_EQ((Watts(700) * Seconds(2)).value, 1400);
}

TEST(Units, megahertz_are_stored_in_hertz) { EXPECT_DOUBLE_EQ(megahertz(1830).value, 1.83e9); }

TEST(Time, an_instant_prints_as_rfc3339_in_utc) {
  EXPECT_EQ(to_rfc3339(Instant{0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(to_rfc3339(Instant{1'790'000'000'500}), "2026-09-21T14:13:20.500Z");
  EXPECT_EQ(to_rfc3339(Instant{-1}), "1969-12-31T23:59:59.999Z");
}

TEST(Time, rfc3339_with_offset_or_z_and_unix_seconds_are_read) {
  EXPECT_EQ(parse_instant("1970-01-01T00:00:00Z"), Instant{0});
  EXPECT_EQ(parse_instant("1970-01-01T01:00:00+01:00"), Instant{0});
  EXPECT_EQ(parse_instant("2026-09-21T14:13:20.5Z"), Instant{1'790'000'000'500});
  EXPECT_EQ(parse_instant("1790000000.5"), Instant{1'790'000'000'500});
  EXPECT_EQ(parse_instant("2024-02-29T00:00:00Z"), Instant{1'709'164'800'000});
}

TEST(Time, times_that_are_ambiguous_or_impossible_are_refused) {
  for (const char* bad : {"", "2026-11-29T16:03:12", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                          "2026-01-01", "yesterday", "1970-01-01T25:00:00Z", "12x", "1e999"}) {
    EXPECT_EQ(parse_instant(bad), std::nullopt) << bad;
  }
}

TEST(Time, years_are_those_that_can_be_written_again) {
  for (const char* good : {"9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z", "253402300799", "-62167219200", "9999-12-31T22:59:59-01:00"}) {
    const auto instant = parse_instant(good);
    ASSERT_TRUE(instant) << good;
    EXPECT_EQ(parse_instant(to_rfc3339(*instant)), instant) << good;
  }
  for (const char* bad : {"9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01", "253402300800", "-62167219201"}) {
    EXPECT_EQ(parse_instant(bad), std::nullopt) << bad;
  }
}

TEST(Time, durations_are_sums_of_number_and_unit) {
  EXPECT_EQ(parse_duration("90s"), Seconds(90));
  EXPECT_EQ(parse_duration("1h30m"), Seconds(5400));
  EXPECT_EQ(parse_duration("500ms"), Seconds(0.5));
  EXPECT_EQ(parse_duration("7d"), Seconds(604800));
  EXPECT_EQ(parse_duration("2w"), Seconds(1209600));
  EXPECT_EQ(parse_duration("0.5h"), Seconds(1800));
  for (const char* bad : {"", "10", "s", "-5m", "0s", "1y2", "5 m", "h1"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace flopsight::units
