#include "base/zone.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::base {
namespace {

constexpr std::int64_t k2026Jan1 = 1'767'225'600;  // 2026-01-01T00:00:00Z
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kHour = 3'600;

Zone zone(std::string_view name) {
  Result<Zone> found = Zone::find(name);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? *found : Zone::utc();
}

TEST(Zone, berlin_is_one_hour_ahead_in_winter_and_two_in_summer) {
  const Zone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.offset_seconds(k2026Jan1), kHour);
  EXPECT_EQ(berlin.offset_seconds(k2026Jan1 + 180 * kDay), 2 * kHour);
  EXPECT_EQ(berlin.unix_seconds(k2026Jan1), k2026Jan1 - kHour);
}

TEST(Zone, zones_of_half_and_quarter_hours) {
  EXPECT_EQ(zone("Asia/Kolkata").offset_seconds(k2026Jan1), 5 * kHour + kHour / 2);
  EXPECT_EQ(zone("Asia/Kathmandu").offset_seconds(k2026Jan1), 5 * kHour + 45 * 60);
}

TEST(Zone, the_repeated_hour_is_the_earlier_one_unless_time_went_on) {
  // 2026-10-25, clocks go from 03:00 back to 02:00 at 01:00Z.
  const std::int64_t change = k2026Jan1 + 297 * kDay + kHour;
  const std::int64_t local = k2026Jan1 + 297 * kDay + 2 * kHour + 1800;  // 02:30, twice
  const Zone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.unix_seconds(local), change - 1800);
  EXPECT_EQ(berlin.unix_seconds(local, change - 600), change + 1800);
  EXPECT_EQ(berlin.unix_seconds(local, change - 1800), change - 1800);
}

TEST(Zone, the_skipped_hour_is_read_with_the_offset_before_the_change) {
  // 2026-03-29, clocks go from 02:00 to 03:00 at 01:00Z.
  const std::int64_t local = k2026Jan1 + 87 * kDay + 2 * kHour + 1800;
  EXPECT_EQ(zone("Europe/Berlin").unix_seconds(local), local - kHour);
}

TEST(Zone, rules_go_on_after_the_last_transition_of_the_file) {
  // 2050-07-01: under the rule of today, summer time.
  EXPECT_EQ(zone("America/New_York").offset_seconds(2'540'246'400), -4 * kHour);
  // The southern hemisphere, whose summer is around the new year.
  EXPECT_EQ(zone("Australia/Sydney").offset_seconds(2'524'608'000), 11 * kHour);
}

TEST(Zone, a_file_that_is_only_a_rule_has_the_changes_of_its_rule) {
  // What a slim file of tzdata is: no transitions, and the rule at the end.
  std::string bytes;
  for (int part = 0; part < 2; ++part) {
    bytes += "TZif2" + std::string(15, '\0') + std::string(16, '\0');
    bytes += std::string("\0\0\0\1\0\0\0\4", 8) + std::string("\0\0\x0E\x10\0\0", 6) + std::string("CET\0", 4);
  }
  bytes += "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
  const Result<Zone> slim = Zone::parse(bytes, "slim");
  ASSERT_TRUE(slim.ok()) << slim.error().message;
  const Zone fat = zone("Europe/Berlin");
  for (std::int64_t t = k2026Jan1; t < k2026Jan1 + 800 * kDay; t += 1'801) {
    ASSERT_EQ(slim->offset_seconds(t), fat.offset_seconds(t)) << t;
  }
}

TEST(Zone, offsets_are_zones) {
  EXPECT_EQ(zone("+02:00").offset_seconds(0), 2 * kHour);
  EXPECT_EQ(zone("-0530").offset_seconds(0), -(5 * kHour + kHour / 2));
  EXPECT_EQ(zone("UTC").offset_seconds(0), 0);
}

TEST(Zone, what_is_no_zone_is_said) {
  for (const char* name : {"", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "+2", "+02:0", "+0260", "+1:000", "Europe"}) {
    const Result<Zone> found = Zone::find(name);
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound) << name;
  }
}

TEST(Zone, an_offset_of_days_is_corrupt) {
  std::string bytes = "TZif1" + std::string(15, '\0') + std::string(16, '\0');
  bytes += std::string("\0\0\0\1\0\0\0\4", 8);
  EXPECT_TRUE(Zone::parse(bytes + std::string("\0\0\x0E\x10\0\0", 6) + std::string("CET\0", 4), "near").ok());
  EXPECT_FALSE(Zone::parse(bytes + std::string("\0\x4F\xFC\0\0\0", 6) + std::string("CET\0", 4), "far").ok());
}

TEST(Zone, a_file_cut_anywhere_is_corrupt_or_a_zone) {
  const Result<std::string> whole = read_file("/usr/share/zoneinfo/Europe/Berlin");
  ASSERT_TRUE(whole.ok());
  int corrupt = 0;
  for (std::size_t size = 0; size < whole->size(); ++size) {
    const Result<Zone> cut = Zone::parse(std::string_view(*whole).substr(0, size), "cut");
    if (!cut.ok()) ++corrupt;
  }
  EXPECT_GT(corrupt, static_cast<int>(whole->size()) - 40);
}

}  // namespace
}  // namespace flopsight::base
