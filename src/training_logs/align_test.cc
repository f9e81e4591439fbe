#include "training_logs/align.h"

#include <gtest/gtest.h>

#include <vector>

namespace flopsight::training_logs {
namespace {

constexpr std::int64_t kStart = 1'790'000'000'000;
constexpr std::int64_t kMinute = 60'000;

// Work for 40 minutes, a pause that grows, and again: no period that fits two offsets.
bool works(std::int64_t minute) {
  std::int64_t at = 0;
  for (std::int64_t i = 0; at <= minute; ++i) {
    if (minute < at + 40) return true;
    at += 40 + 5 + 3 * i * i;
  }
  return false;
}

std::vector<LoggedStep> log_of(std::int64_t minutes, std::int64_t zone_minutes) {
  std::vector<LoggedStep> steps;
  for (std::int64_t minute = 0; minute < minutes; ++minute) {
    if (!works(minute)) continue;
    for (int i = 1; i <= 6; ++i) {
      steps.push_back({{kStart + (minute + zone_minutes) * kMinute + i * 10'000}, 10, 400e12});
    }
  }
  return steps;
}

std::vector<ActivitySample> activity_of(std::int64_t minutes) {
  std::vector<ActivitySample> samples;
  for (std::int64_t minute = -60; minute < minutes + 60; ++minute) {
    const bool busy = minute >= 0 && minute < minutes && works(minute);
    samples.push_back({{kStart + minute * kMinute}, busy ? 0.40 + 0.01 * static_cast<double>(minute % 3) : 0.0});
  }
  return samples;
}

TEST(Align, the_zone_of_a_log_is_found_by_its_pauses) {
  for (const std::int64_t zone : {-480, 0, 60, 120, 330}) {
    for (const bool whole : {true, false}) {
      const auto got = align(log_of(600, zone), activity_of(600), whole);
      ASSERT_TRUE(got) << zone;
      EXPECT_EQ(got->offset_seconds, -zone * 60) << zone;
      EXPECT_TRUE(got->sure) << zone << " " << got->why;
      EXPECT_GT(got->correlation_ratio, 0.9);
    }
  }
}

TEST(Align, even_work_cannot_be_aligned_and_it_says_so) {
  std::vector<LoggedStep> steps;
  std::vector<ActivitySample> samples;
  for (std::int64_t minute = 0; minute < 3000; ++minute) {
    if (minute > 1400 && minute < 1600) steps.push_back({{kStart + (minute + 1) * kMinute}, 60, 400e12});
    samples.push_back({{kStart + minute * kMinute}, 0.40 + 0.001 * static_cast<double>((minute * 7919) % 13)});
  }
  const auto got = align(steps, samples, false);
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->sure);
  EXPECT_FALSE(got->why.empty());
}

TEST(Align, nothing_to_compare_is_nothing) {
  EXPECT_FALSE(align({}, activity_of(60), true));
  EXPECT_FALSE(align(log_of(60, 0), {}, true));
  // Days apart: no zone brings them together.
  EXPECT_FALSE(align(log_of(60, 5 * 24 * 60), activity_of(60), true));
}

TEST(Align, a_few_minutes_are_too_few) {
  const auto got = align(log_of(10, 60), activity_of(10), false);
  EXPECT_FALSE(got && got->sure);
}

}  // namespace
}  // namespace flopsight::training_logs
