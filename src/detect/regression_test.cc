#include "detect/regression.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "base/median.h"
#include "detect/test_noise.h"

namespace flopsight::detect {
namespace {

using test::kMinuteMilliseconds;
using test::kNoiseStart;
using test::NoisyJob;

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
    for (std::int64_t minute = 0; minute < 1440; ++minute) {
      if (!detector.add(job.minute(minute))) continue;
      ++alarms;
      const Regression& found = *detector.open();
      std::printf("day %d minute %ld %s size %.3f first %ld before %.3f level %.3f\n", day, minute, found.slow_chart ? "slow" : "fast", found.size_ratio(), minute_of(found.first), found.before_ofu_ratio, job.level());
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
      const MinutePoint point = job.minute(minute, {at, size_ratio});
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
  std::printf("drop to %.3f: median %.1f, 95 %% %.1f, 99 %% %.1f, worst %.1f minutes; later than %.0f: %d of 400; moment off %.1f min, size off %.3f\n", size_ratio,
              out.minutes[200], out.minutes[380], out.minutes[396], out.minutes[399], minutes_max, out.missed, out.moment_off_minutes, out.size_off_ratio);
  return out;
}

TEST(Regression, a_drop_of_two_and_a_half_times_is_found_within_five_minutes_of_data) {
  const Delays delays = delays_of(1 / 2.5, 5);
  EXPECT_LE(delays.missed, 4);
}

TEST(Regression, a_drop_of_fifteen_percent_is_found_within_an_hour) {
  const Delays delays = delays_of(0.85, 60);
  EXPECT_LE(delays.missed, 20);
}

TEST(Regression, other_sizes) {
  delays_of(1 / 1.5, 60);
  delays_of(0.15, 5);
  delays_of(0.8, 60);
  delays_of(0.9, 60);
}

}  // namespace
}  // namespace flopsight::detect
