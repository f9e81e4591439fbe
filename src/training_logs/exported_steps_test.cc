#include "training_logs/exported_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training_logs/merge_steps.h"

namespace flopsight::training_logs {
namespace {

using Added = ExportedSteps::Added;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t kStart = 1'790'000'040'000;  // a whole minute

units::Instant after(double seconds) { return units::Instant{kStart} + units::Seconds(seconds); }

samples::Holder holder(const std::string& job) {
  samples::Holder out;
  out.job = job;
  out.name_space = "ml";
  return out;
}

Step mfu(double ratio, double seconds) {
  Step step;
  step.mfu_ratio = ratio;
  step.time = after(seconds);
  return step;
}

class Exported : public testing::Test {
 protected:
  Added add(const std::string& job, const Step& step) {
    return steps_.add(holder(job), step, *step.time, 7);
  }
  ExportedSteps steps_{ExportedSteps::Options{}};
};

TEST_F(Exported, a_slot_is_one_step_with_the_median_over_series_and_scrapes) {
  for (const double ratio : {0.40, 0.42, 0.41, 0.99}) EXPECT_EQ(add("a", mfu(ratio, 15)), Added::kKept);
  Step tokens;
  tokens.time = after(30);
  tokens.tokens_per_second = 9'000;
  add("a", tokens);
  EXPECT_THAT(steps_.take(after(30)), IsEmpty()) << "the slot goes on";
  add("a", mfu(0.5, 119));
  EXPECT_THAT(steps_.take(after(119)), IsEmpty()) << "late samples are waited for";
  add("a", mfu(0.5, 120));
  const auto taken = steps_.take(after(120));
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].job, "a");
  EXPECT_EQ(taken[0].name_space, "ml");
  ASSERT_THAT(taken[0].steps, SizeIs(1));
  EXPECT_DOUBLE_EQ(*taken[0].steps[0].mfu_ratio, 0.415);
  EXPECT_EQ(taken[0].steps[0].tokens_per_second, 9'000);
  EXPECT_EQ(taken[0].steps[0].time, after(60));
  EXPECT_EQ(taken[0].steps[0].ranks, 4U);
  EXPECT_THAT(steps_.take(after(120)), IsEmpty()) << "once";
}

TEST_F(Exported, jobs_are_apart_and_a_silent_one_is_closed_by_the_clock) {
  add("a", mfu(0.4, 0));
  add("b", mfu(0.2, 0));
  add("b", mfu(0.2, 400));
  EXPECT_THAT(steps_.take(after(600)), SizeIs(1));
  const auto idle = steps_.take(after(1'001));
  ASSERT_THAT(idle, SizeIs(2));
  EXPECT_EQ(idle[0].job, "a");
  EXPECT_EQ(steps_.job_count(), 0U);
  EXPECT_FALSE(steps_.oldest_segment());
}

TEST_F(Exported, what_comes_for_a_closed_slot_or_from_the_future_is_left_out) {
  add("a", mfu(0.4, 0));
  add("a", mfu(0.4, 130));
  ASSERT_THAT(steps_.take(after(130)), SizeIs(1));
  EXPECT_EQ(add("a", mfu(0.4, 59)), Added::kOutOfTime);
  EXPECT_EQ(add("a", mfu(0.4, 60)), Added::kKept);
  EXPECT_EQ(steps_.add(holder("a"), mfu(0.4, 800), after(199), 7), Added::kOutOfTime);
  EXPECT_EQ(steps_.add(holder("a"), mfu(0.4, 800), after(200), 7), Added::kKept);
}

TEST_F(Exported, an_impossible_mfu_is_kept_and_excluded) {
  add("a", mfu(1.7, 0));
  add("a", mfu(0.4, 200));
  const auto taken = steps_.take(after(200));
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].steps[0].excluded, Exclusion::kAbovePeak);
  EXPECT_EQ(taken[0].steps[0].mfu_ratio, 1.7);
}

TEST(ExportedLimits, hold_and_what_was_taken_makes_room) {
  ExportedSteps::Options options;
  options.jobs_max = 2;
  options.values_max = 3;
  ExportedSteps steps(options);
  EXPECT_EQ(steps.add(holder("a"), mfu(0.4, 0), after(0), 3), Added::kKept);
  EXPECT_EQ(steps.add(holder("b"), mfu(0.4, 0), after(0), 2), Added::kKept);
  EXPECT_EQ(steps.add(holder("c"), mfu(0.4, 0), after(0), 1), Added::kLimit) << "jobs";
  EXPECT_EQ(steps.add(holder("a"), mfu(0.4, 130), after(130), 4), Added::kKept);
  EXPECT_EQ(steps.add(holder("a"), mfu(0.4, 130), after(130), 4), Added::kLimit) << "values";
  EXPECT_EQ(steps.oldest_segment(), 2U);
  EXPECT_THAT(steps.take(after(130)), SizeIs(1));
  EXPECT_EQ(steps.add(holder("a"), mfu(0.4, 130), after(130), 4), Added::kKept);
}

TEST(MergeTellers, what_several_tell_of_one_step_is_one) {
  const auto step = [](std::int64_t number, double ratio, std::optional<Exclusion> excluded = {}) {
    Step out;
    out.step = number;
    out.mfu_ratio = ratio;
    out.excluded = excluded;
    return out;
  };
  const auto merged = merge_tellers({{step(1, 0.1, Exclusion::kWarmUp), step(2, 0.4)}, {step(1, 0.5), step(2, 0.5), step(3, 0.6)}});
  std::vector<double> ratios;
  for (const Step& one : merged) ratios.push_back(*one.mfu_ratio);
  EXPECT_THAT(ratios, ElementsAre(0.5, 0.1, 0.45, 0.6));
  EXPECT_EQ(merged[1].excluded, Exclusion::kWarmUp);
  EXPECT_THAT(merge_tellers({{}, {}}), IsEmpty());
}

}  // namespace
}  // namespace flopsight::training_logs
