#include "detect/regression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/median.h"
#include "detect/test_noise.h"

namespace flopsight::detect {
namespace {

using test::kMinuteMilliseconds;
using test::kNoiseStart;
using test::NoisyJob;

constexpr double kKept = 2.5e-4;  // histories have eleven bits of precision

std::int64_t minute_of(units::Instant time) { return (time.unix_milliseconds - kNoiseStart) / kMinuteMilliseconds; }

// FLOPSIGHT_JOB_DAYS: more of them, for the figures of docs/detection.md.
int job_days(int otherwise) {
  const char* text = std::getenv("FLOPSIGHT_JOB_DAYS");
  return text != nullptr ? std::atoi(text) : otherwise;
}

TEST(Regression, fewer_than_one_false_alarm_in_a_thousand_job_days_of_noise) {
  const int days = job_days(2000);
  int alarms = 0;
  for (int day = 0; day < days; ++day) {
    NoisyJob job(static_cast<std::uint64_t>(day), true);
    RegressionDetector detector;
    for (std::int64_t minute = 0; minute < 1440; ++minute) alarms += detector.add(job.minute(minute)) ? 1 : 0;
  }
  RecordProperty("job_days", days);
  RecordProperty("false_alarms", alarms);
  EXPECT_LT(alarms, days / 1000.0) << alarms << " in " << days;
}

TEST(Regression, a_job_that_became_faster_has_as_few_false_alarms) {
  const int days = job_days(2000);
  int alarms = 0;
  for (int day = 0; day < days; day += 2) {
    const auto seed = static_cast<std::uint64_t>(day) + 8'000'000;
    NoisyJob job(seed, true);
    test::Draws draws(seed);
    const double at = draws.between(60, 1200), before_ratio = draws.between(0.4, 0.9);
    RegressionDetector detector;
    for (std::int64_t minute = 0; minute < 2 * 1440; ++minute) {
      MinutePoint point = job.minute(minute);
      if (point.ofu_ratio && static_cast<double>(minute) < at) point.ofu_ratio = *point.ofu_ratio * before_ratio;
      alarms += detector.add(point) ? 1 : 0;
    }
  }
  RecordProperty("job_days", days);
  RecordProperty("false_alarms", alarms);
  EXPECT_LT(alarms, days / 1000.0) << alarms << " in " << days;
}

struct Delays {
  std::vector<double> minutes;  // of data after the change
  int missed = 0;
  double moment_off_minutes = 0;  // median
  double size_off_ratio = 0;
};
// 400 jobs whose drop comes at some second of some minute after three hours.
Delays delays_of(double size_ratio, double minutes_max, bool may_serve = false) {
  Delays out;
  std::vector<double> moments, sizes;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    NoisyJob job(seed + 1'000'000, may_serve);
    test::Draws draws(seed);
    const double at = draws.between(180, 600);
    RegressionDetector detector;
    double measured = 0;
    bool found = false;
    for (std::int64_t minute = 0; minute < 600 + 240 && !found; ++minute) {
      const MinutePoint point = job.minute(minute, {60 * at, size_ratio});
      // Pauses and gaps are no data of the drop.
      const bool worked = point.ofu_ratio && *point.ofu_ratio > 0.2 * size_ratio * job.level();
      if (static_cast<double>(minute) + 1 > at && worked) measured += std::min(1.0, static_cast<double>(minute) + 1 - at);
      found = detector.add(point) && static_cast<double>(minute) + 1 > at;
    }
    if (found) {
      moments.push_back(std::abs(static_cast<double>(minute_of(detector.open()->first)) - at));
      sizes.push_back(std::abs(detector.open()->size_ratio() / size_ratio - 1));
    }
    if (!found || measured > minutes_max) ++out.missed;
    out.minutes.push_back(found ? measured : 1e9);
  }
  std::sort(out.minutes.begin(), out.minutes.end());
  out.moment_off_minutes = *base::median(moments);
  out.size_off_ratio = *base::median(sizes);
  const auto record = [&](const char* what, double value) { testing::Test::RecordProperty(what, std::to_string(value)); };
  record("median_minutes", out.minutes[200]);
  record("minutes_of_95_percent", out.minutes[380]);
  record("minutes_of_99_percent", out.minutes[396]);
  record("later_than_the_bar", out.missed);
  record("moment_off_median_minutes", out.moment_off_minutes);
  record("size_off_median_ratio", out.size_off_ratio);
  return out;
}

// The few that are later have a checkpoint, a restart or an evaluation in these minutes.
TEST(Regression, a_drop_of_two_and_a_half_times_is_found_within_five_minutes_of_data) {
  const Delays delays = delays_of(1 / 2.5, 5);
  EXPECT_LE(delays.missed, 12);
  EXPECT_LT(delays.minutes[380], 5);
  EXPECT_LT(delays.moment_off_minutes, 1);
  EXPECT_LT(delays.size_off_ratio, 0.03);
}

TEST(Regression, a_drop_of_fifteen_percent_is_found_within_an_hour) {
  const Delays delays = delays_of(0.85, 60);
  EXPECT_LE(delays.missed, 8);
  EXPECT_LT(delays.minutes[380], 60);
  EXPECT_LT(delays.moment_off_minutes, 2);
  EXPECT_LT(delays.size_off_ratio, 0.03);
}

TEST(Regression, sizes_between_are_found_within_forty_minutes) {
  EXPECT_LE(delays_of(1 / 1.5, 40).missed, 2);
  EXPECT_LE(delays_of(0.8, 40).missed, 2);
}

// Levels by hand, without noise.
MinutePoint minute_at(std::int64_t number, std::optional<double> ofu_ratio) {
  MinutePoint out;
  out.start = units::Instant{kNoiseStart + number * kMinuteMilliseconds};
  out.allocated_seconds = 600;
  if (!ofu_ratio) return out;
  out.measured_seconds = 600;
  out.ofu_ratio = out.tensor_ratio = ofu_ratio;
  return out;
}

class Hand {
 public:
  void run(int minutes, std::optional<double> ofu_ratio) {
    for (int i = 0; i < minutes; ++i) calls += detector.add(minute_at(now++, ofu_ratio)) ? 1 : 0;
  }
  RegressionDetector detector;
  std::int64_t now = 0;
  int calls = 0;
};

TEST(Regression, cost_is_what_was_not_delivered_since_the_moment) {
  Hand hand;
  hand.run(120, 0.4);
  hand.run(30, 0.1);
  ASSERT_TRUE(hand.detector.open());
  const Regression& open = *hand.detector.open();
  EXPECT_EQ(minute_of(open.first), 120);
  EXPECT_EQ(minute_of(open.found), 123);
  EXPECT_EQ(minute_of(open.last), 149);
  EXPECT_NEAR(open.size_ratio(), 0.25, kKept);
  EXPECT_NEAR(open.cost.value, 30 * 600.0 / 3600 * 0.75, 3.75 * kKept);
  EXPECT_EQ(open.confidence_ratio, 1);
  EXPECT_EQ(hand.calls, 1);
}

TEST(Regression, it_ends_when_the_level_is_back_and_the_old_baseline_holds_again) {
  Hand hand;
  hand.run(120, 0.4);
  hand.run(40, 0.16);
  EXPECT_TRUE(hand.detector.open());
  hand.run(25, 0.4);
  EXPECT_FALSE(hand.detector.open());
  EXPECT_NEAR(*hand.detector.baseline_ofu_ratio(), 0.4, kKept);
  hand.run(5, 0.16);
  EXPECT_TRUE(hand.detector.open());
}

TEST(Regression, a_second_fall_is_called_as_well_and_measured_by_the_first_level) {
  Hand hand;
  hand.run(120, 0.5);
  hand.run(60, 0.2);
  EXPECT_EQ(hand.calls, 1);
  hand.run(10, 0.06);
  EXPECT_EQ(hand.calls, 2);
  EXPECT_EQ(minute_of(hand.detector.open()->first), 120);
  EXPECT_NEAR(hand.detector.open()->before_ofu_ratio, 0.5, kKept);
  EXPECT_NEAR(hand.detector.open()->after_ofu_ratio, 0.06, kKept);
}

TEST(Regression, unmeasured_minutes_and_pauses_are_no_fall) {
  for (const std::optional<double> level : {std::optional<double>(), std::optional<double>(0.0), std::optional<double>(0.01)}) {
    Hand hand;
    hand.run(120, 0.4);
    hand.run(240, level);
    hand.run(60, 0.4);
    EXPECT_EQ(hand.calls, 0) << level.value_or(-1);
  }
}

TEST(Regression, shared_gpus_conclude_nothing) {
  RegressionDetector detector;
  for (std::int64_t i = 0; i < 400; ++i) {
    MinutePoint point = minute_at(i, i < 200 ? 0.4 : 0.1);
    point.shared = true;
    EXPECT_FALSE(detector.add(point));
  }
}

TEST(Regression, evaluations_that_look_like_a_fall_are_known_after_two_and_one_that_does_not_end_is_called) {
  Hand hand;
  hand.run(120, 0.4);
  for (int i = 0; i < 6; ++i) {
    hand.run(10, 0.16);
    hand.run(80, 0.4);
  }
  EXPECT_EQ(hand.calls, 2);
  hand.run(16, 0.16);
  EXPECT_EQ(hand.calls, 3);
}

TEST(Regression, a_fall_of_a_job_seen_for_less_than_twelve_hours_may_be_an_evaluation_for_twenty_minutes) {
  Hand hand;
  hand.run(120, 0.4);
  hand.run(4, 0.16);
  ASSERT_TRUE(hand.detector.open());
  EXPECT_TRUE(hand.detector.open()->may_be_evaluation);
  hand.run(16, 0.16);
  EXPECT_TRUE(hand.detector.open()->may_be_evaluation);
  hand.run(1, 0.16);
  EXPECT_FALSE(hand.detector.open()->may_be_evaluation);
}

TEST(Regression, a_fall_of_a_job_that_had_none_in_twelve_hours_is_no_evaluation_and_after_one_that_ended_it_may_be) {
  Hand hand;
  hand.run(12 * 60 + 5, 0.4);
  hand.run(4, 0.16);
  ASSERT_TRUE(hand.detector.open());
  EXPECT_FALSE(hand.detector.open()->may_be_evaluation);
  hand.run(60, 0.4);
  EXPECT_FALSE(hand.detector.open());
  hand.run(4, 0.16);
  ASSERT_TRUE(hand.detector.open());
  EXPECT_TRUE(hand.detector.open()->may_be_evaluation);
}

// Half as long again as the longest that test_noise.h assumes, and so deep that they are called.
TEST(Regression, deep_evaluations_are_called_as_what_they_may_be) {
  const int days = job_days(100);
  int called = 0, told_as_more = 0;
  for (int day = 0; day < days; ++day) {
    const auto seed = static_cast<std::uint64_t>(day) + 5'000'000;
    NoisyJob job(seed, false);
    test::Draws draws(seed);
    const double every = draws.between(60, 240), minutes = draws.between(6, 15), left_ratio = draws.between(0.3, 0.5);
    RegressionDetector detector;
    double next = every;
    bool told = false;
    for (std::int64_t number = 0; number < 1440; ++number) {
      MinutePoint point = job.minute(number);
      const auto now = static_cast<double>(number);
      if (now >= next && now < next + minutes && point.ofu_ratio) point.ofu_ratio = *point.ofu_ratio * left_ratio;
      if (now >= next + minutes) next += every;
      called += detector.add(point) ? 1 : 0;
      const bool tells = detector.open() && !detector.open()->may_be_evaluation;
      told_as_more += tells && !told ? 1 : 0;
      told = tells;
    }
  }
  RecordProperty("job_days", days);
  RecordProperty("called", called);
  RecordProperty("told_as_more_than_a_possible_evaluation", told_as_more);
  EXPECT_GT(called, days);
  EXPECT_LE(told_as_more, days / 5);
}

TEST(Regression, a_fall_back_from_a_level_that_was_reached_two_hours_before_is_called) {
  Hand hand;
  hand.run(9 * 60, 0.2);
  hand.run(2 * 60, 0.5);
  EXPECT_EQ(hand.calls, 0);
  EXPECT_NEAR(*hand.detector.baseline_ofu_ratio(), 0.5, kKept);
  hand.run(5, 0.2);
  ASSERT_TRUE(hand.detector.open());
  EXPECT_EQ(minute_of(hand.detector.open()->first), 11 * 60);
  EXPECT_NEAR(hand.detector.open()->before_ofu_ratio, 0.5, kKept);
  EXPECT_NEAR(hand.detector.open()->size_ratio(), 0.4, kKept);
  EXPECT_EQ(hand.detector.open()->confidence_ratio, 1);
}

TEST(Regression, fifteen_percent_back_from_a_level_reached_two_hours_before_are_called_within_an_hour) {
  Hand hand;
  hand.run(9 * 60, 0.34);
  hand.run(2 * 60 + 10, 0.4);
  EXPECT_EQ(hand.calls, 0);
  hand.run(60, 0.34);
  ASSERT_TRUE(hand.detector.open());
  EXPECT_NEAR(static_cast<double>(minute_of(hand.detector.open()->first)), 11 * 60 + 10, 5);
  EXPECT_NEAR(hand.detector.open()->size_ratio(), 0.85, 0.01);
}

TEST(Regression, a_level_that_does_not_last_for_an_hour_is_none_to_fall_from) {
  Hand hand;
  for (int i = 0; i < 6; ++i) {
    hand.run(4 * 60, 0.3);
    hand.run(45, 0.5);
  }
  hand.run(4 * 60, 0.3);
  EXPECT_EQ(hand.calls, 0);
}

TEST(Regression, a_rise_is_no_fall_and_neither_is_what_follows_it) {
  Hand hand;
  for (const double level : {0.1, 0.2, 0.3, 0.5}) hand.run(5 * 60, level);
  EXPECT_EQ(hand.calls, 0);
}

// As the detector's bars, from a level that is two hours old.
TEST(Regression, drops_soon_after_a_rise_are_found_within_the_same_bars) {
  for (const auto& [size_ratio, minutes_max] : {std::pair(1 / 2.5, 5.0), std::pair(0.85, 60.0)}) {
    int late = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      NoisyJob job(seed + 2'000'000, false);
      RegressionDetector detector;
      double measured = 0;
      bool found = false;
      for (std::int64_t minute = 0; minute < 11 * 60 + 240 && !found; ++minute) {
        const bool high = minute >= 9 * 60 && minute < 11 * 60, dropped = minute >= 11 * 60;
        MinutePoint point = job.minute(minute);
        if (point.ofu_ratio && !high) point.ofu_ratio = *point.ofu_ratio * size_ratio;
        if (dropped && point.ofu_ratio && *point.ofu_ratio > 0.2 * size_ratio * job.level()) measured += 1;
        found = detector.add(point) && dropped;
      }
      late += !found || measured > minutes_max ? 1 : 0;
    }
    RecordProperty(size_ratio > 0.5 ? "late_of_15_percent" : "late_of_2_5_times", late);
    EXPECT_LE(late, 12) << size_ratio;
  }
}

TEST(Regression, too_little_past_concludes_nothing) {
  Hand hand;
  hand.run(15, 0.4);
  hand.run(120, 0.1);
  EXPECT_EQ(hand.calls, 0);
}

TEST(Regression, a_daily_load_is_compared_with_the_day_before) {
  RegressionOptions options;
  options.daily_load = true;
  RegressionDetector detector(options);
  int calls = 0;
  const auto level = [](std::int64_t minute) { return 0.3 + 0.15 * std::sin(static_cast<double>(minute) / 1440 * 6.283185307179586); };
  std::int64_t now = 0;
  for (; now < 4 * 1440; ++now) calls += detector.add(minute_at(now, level(now))) ? 1 : 0;
  EXPECT_EQ(calls, 0);
  for (; now < 4 * 1440 + 60; ++now) calls += detector.add(minute_at(now, 0.35 * level(now))) ? 1 : 0;
  EXPECT_EQ(calls, 1);
}

TEST(Regression, a_daily_load_that_rose_for_good_is_no_fall_the_day_after) {
  RegressionOptions options;
  options.daily_load = true;
  RegressionDetector detector(options);
  int calls = 0;
  const auto level = [](std::int64_t minute) { return 0.3 + 0.15 * std::sin(static_cast<double>(minute) / 1440 * 6.283185307179586); };
  for (std::int64_t now = 0; now < 7 * 1440; ++now) calls += detector.add(minute_at(now, (now < 3 * 1440 + 300 ? 1.0 : 1.4) * level(now))) ? 1 : 0;
  EXPECT_EQ(calls, 0);
}

TEST(Regression, a_minute_that_comes_twice_or_late_is_ignored) {
  Hand hand;
  hand.run(120, 0.4);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(hand.detector.add(minute_at(119, 0.1)));
  EXPECT_FALSE(hand.detector.open());
  EXPECT_EQ(hand.detector.history().size(), kHistoryMinutes);
}

}  // namespace
}  // namespace flopsight::detect
