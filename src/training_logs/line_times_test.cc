// Times in other forms than a date that begins with its year.
#include <gtest/gtest.h>

#include <string>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

std::string iteration(const std::string& time) {
  return time + "iteration: 1 / 1000 | consumed_tokens: 1M | elapsed_time_per_iteration_ms: 1.5K | tokens_per_sec_per_gpu: 5.66K | model_tflops_per_gpu: 300 |\n";
}

Options utc() {
  Options options;
  options.zone = *base::Zone::find("UTC");
  return options;
}

TEST(LineTimes, nanotron_prints_the_month_first) {
  const Reported got = read_log(iteration("10/05/2026 10:00:01 [INFO|DP=0|PP=0|TP=0]: "), utc());
  ASSERT_EQ(got.format, "nanotron");
  EXPECT_EQ(units::to_rfc3339(*got.steps.at(0).time), "2026-10-05T10:00:01Z");
  EXPECT_EQ(read_log(iteration("10/05/2026 10:00:01 [INFO|DP=0]: ")).times_without_zone, 1U);
}

TEST(LineTimes, elsewhere_the_order_must_be_told_by_the_day) {
  const auto line = [](const std::string& time) { return time + " - INFO - step: 1  loss: 5.1  tps: 7,000  mfu: 30.00%\n"; };
  EXPECT_EQ(units::to_rfc3339(*read_log(line("10/22/2026 10:00:01"), utc()).steps.at(0).time), "2026-10-22T10:00:01Z");
  for (const char* time : {"10/05/2026 10:00:01", "22/10/2026 10:00:01", "I0822 10:00:01.123456 1234", "Oct 22 10:00:01", "10:00:01"}) {
    const Reported got = read_log(line(time), utc());
    EXPECT_FALSE(got.steps.at(0).time) << time;
    ASSERT_EQ(got.notes.size(), 1U) << time;
    EXPECT_EQ(got.notes[0].find("times of 1 lines are in a form that is not read"), 0U) << got.notes[0];
  }
}

TEST(LineTimes, the_clock_of_a_progress_bar_is_none) {
  for (const std::string& note : read_log("Train:  10%|█| 1/10 [01:00:01<09:00:00,  1.00it/s]\n", utc()).notes) {
    EXPECT_EQ(note.find("times of"), std::string::npos) << note;
  }
}

}  // namespace
}  // namespace flopsight::training_logs
