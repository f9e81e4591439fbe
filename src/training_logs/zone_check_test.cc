#include "training_logs/zone_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace flopsight::training_logs {
namespace {

constexpr std::int64_t kStart = 1'790'000'040'000;  // a whole minute
constexpr std::int64_t kMinute = 60'000;

units::Instant minute(std::int64_t number) { return {kStart + number * kMinute}; }

// A job of so many minutes, of which `pause` of every hour is a checkpoint. It prints every 20 seconds, in a zone that is read wrongly by
// `wrong_minutes`.
struct Training {
  std::int64_t minutes = 0;
  std::int64_t pause = 0;

  bool works(std::int64_t at) const { return at >= 0 && at < minutes && at % 60 >= pause; }
  std::vector<Step> log(std::int64_t wrong_minutes, std::int64_t first = 0) const {
    std::vector<Step> steps;
    for (std::int64_t at = first; at < minutes; ++at) {
      for (int i = 1; i <= 3 && works(at); ++i) {
        Step step;
        step.step = at * 3 + i;
        step.time = units::Instant{minute(at + wrong_minutes).unix_milliseconds + i * 20'000};
        step.is_zone_assumed = true;
        step.step_seconds = 2;  // it prints every tenth
        step.flops_per_second_per_gpu = 400e12;
        steps.push_back(step);
      }
    }
    return steps;
  }
  std::vector<ActivitySample> activity() const {
    std::vector<ActivitySample> samples;
    for (std::int64_t at = 0; at < minutes; ++at) samples.push_back({minute(at), works(at) ? 0.4 + 0.01 * static_cast<double>(at % 3) : 0.01});
    return samples;
  }
  units::Window life() const { return {minute(0), minute(minutes)}; }
};

TEST(ZoneCheck, a_zone_that_is_wrong_by_hours_is_said_with_the_offset_that_fits) {
  for (const std::int64_t length : {90, 600, 1'500}) {
    for (const std::int64_t wrong : {-480, -60, 60, 120, 330}) {
      const Training run{length, 7};
      const auto check = check_zone(run.log(wrong), run.activity(), run.life());
      ASSERT_TRUE(check);
      EXPECT_TRUE(check->is_doubtful) << length << " minutes, wrong by " << wrong;
      EXPECT_EQ(check->offset_seconds, -wrong * 60) << length;
      EXPECT_GT(check->correlation_ratio, 0.9);
      EXPECT_GE(check->minutes_outside, 30U);
    }
  }
}

TEST(ZoneCheck, even_work_tells_by_its_begin_and_end) {
  const Training run{1'200, 0};
  const auto check = check_zone(run.log(60), run.activity(), run.life());
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->is_doubtful);
  EXPECT_EQ(check->offset_seconds, -3'600);
}

TEST(ZoneCheck, a_zone_that_is_right_is_not_doubted) {
  for (const std::int64_t length : {15, 90, 600, 3'000}) {
    for (const std::int64_t pause : {0, 7, 40}) {
      const Training run{length, pause};
      const auto check = check_zone(run.log(0), run.activity(), run.life());
      EXPECT_FALSE(check && check->is_doubtful) << length << " " << pause;
    }
  }
}

TEST(ZoneCheck, a_log_of_the_end_of_a_job_is_not_doubted) {
  // It was followed late, or the job printed nothing while it loaded.
  for (const std::int64_t first : {60, 300, 540}) {
    const Training run{600, 5};
    const auto check = check_zone(run.log(0, first), run.activity(), run.life());
    EXPECT_FALSE(check && check->is_doubtful) << first;
  }
}

TEST(ZoneCheck, dates_with_an_offset_and_few_steps_are_no_question) {
  const Training run{600, 7};
  std::vector<Step> steps = run.log(60);
  for (Step& step : steps) step.is_zone_assumed = false;
  EXPECT_FALSE(check_zone(steps, run.activity(), run.life()));
  steps = run.log(60);
  steps.resize(19);
  const auto check = check_zone(steps, run.activity(), run.life());
  EXPECT_FALSE(check && check->is_doubtful);
}

}  // namespace
}  // namespace flopsight::training_logs
