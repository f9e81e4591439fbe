// Where a text ends, and what may be cut there.
#include <gtest/gtest.h>

#include <string>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

constexpr std::string_view kWhole = " iteration 1/ 100 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 496.0 |\n";

TEST(TextEnd, a_number_that_touches_the_end_of_a_last_line_without_its_end_may_be_cut) {
  const Reported got = read_log(std::string(kWhole) + " iteration 2/ 100 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 49");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_FALSE(got.steps[1].flops_per_second_per_gpu);
  EXPECT_DOUBLE_EQ(*got.steps[1].step_seconds, 1);
  ASSERT_FALSE(got.notes.empty());
  EXPECT_EQ(got.notes[0], "the last line has no end: what it breaks off in is left out");
}

TEST(TextEnd, so_may_the_number_of_a_step_and_a_unit) {
  EXPECT_FALSE(read_log("throughput per GPU (TFLOP/s/GPU): 496.0 | elapsed time per iteration (ms): 1000.0 | iteration 1").steps.at(0).step);
  const Reported unit = read_log("iter 10: loss 1.0, mfu 40.00%, time 12.50m");
  EXPECT_FALSE(unit.steps.at(0).step_seconds);
  EXPECT_DOUBLE_EQ(*unit.steps.at(0).mfu_ratio, 0.4);
}

TEST(TextEnd, a_unit_that_is_whole_keeps_its_number) {
  EXPECT_DOUBLE_EQ(*read_log("step: 1  loss: 5.1  tps: 7,000  mfu: 30.00%").steps.at(0).mfu_ratio, 0.3);
  EXPECT_DOUBLE_EQ(*read_log("step: 1  loss: 5.1  tps: 7,000 ").steps.at(0).tokens_per_second_per_gpu, 7000);
}

TEST(TextEnd, a_setting_that_touches_it_is_left_out) {
  EXPECT_EQ(read_log(std::string(kWhole) + "  num_layers ........... 4").setting("layers"), nullptr);
  EXPECT_EQ(read_log(std::string(kWhole) + "  bf16 ........... Fals").setting("bf16"), nullptr);
  EXPECT_EQ(*read_log(std::string(kWhole) + "  num_layers ........... 48\n").setting("layers"), "48");
}

TEST(TextEnd, the_last_cell_of_a_table_may_be_cut) {
  const Reported got = read_log("step,device/tokens_per_sec,device/mfu\n1,7000,0.41\n2,7000,0.4");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_FALSE(got.steps[1].mfu_ratio);
  EXPECT_EQ(got.steps[1].tokens_per_second_per_gpu, 7000);
}

TEST(TextEnd, a_text_of_carriage_returns_alone_is_one_line) {
  const Reported got = read_log("Train:  10%|█| 1/10 [00:01<00:09,  1.00it/s]\rTrain:  20%|█| 2/10 [00:02<00:08,  1.00it/s]\r");
  EXPECT_EQ(got.lines_total, 1U);
  EXPECT_EQ(got.lines_matched, 1U);
  EXPECT_EQ(read_log("a\nb\rc\r").lines_total, 2U);
  EXPECT_EQ(read_log("a\nb\n").lines_total, 2U);
}

TEST(TextEnd, a_setting_is_no_line_of_a_format_that_was_asked_for) {
  Options options;
  options.format = "megatron";
  const Reported got = read_log("[titan] Peak FLOPS used for computing MFU: 9.890e+14\n[titan] step: 1  loss: 5.1  tps: 7,000  mfu: 30.00%\n", options);
  EXPECT_EQ(got.lines_matched, 0U);
  EXPECT_TRUE(got.format.empty());
  ASSERT_TRUE(got.nearest_miss);
  EXPECT_EQ(got.nearest_miss->why, "a line of torchtitan, and those of megatron were asked for");
}

}  // namespace
}  // namespace flopsight::training_logs
