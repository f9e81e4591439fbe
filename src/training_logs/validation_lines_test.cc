// Lines, bars and columns that are of an evaluation: no figure of them is one of training.
#include <gtest/gtest.h>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

TEST(ValidationLines, a_validation_of_torchtitan_is_no_second_rank_of_its_step) {
  const Reported got = read_log(
      "[rank0]:[titan] 2026-01-01 10:00:00,000 - root - INFO - step: 10  loss:  5.1  memory: 60.00GiB(75.00%)  tps: 7,000  tflops: 300.00  mfu: 30.00%\n"
      "[rank0]:[titan] 2026-01-01 10:00:09,000 - root - INFO - validate step: 10  loss:  5.0  memory: 60.00GiB(75.00%)  tps: 21,000\n");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 7000);
  EXPECT_EQ(got.steps[0].ranks, 1U);
  EXPECT_EQ(got.lines_matched, 1U);
  ASSERT_FALSE(got.notes.empty());
  EXPECT_EQ(got.notes[0], "1 line is of a validation, which is no training, and left out");
}

TEST(ValidationLines, so_it_is_of_every_format_that_numbers_its_steps) {
  for (const char* line : {
           "[eval] iteration 10/ 100 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |\n",
           "Validation: iteration: 10 / 100 | tokens_per_sec_per_gpu: 30K | model_tflops_per_gpu: 300 |\n",
           "eval completed step: 10, seconds: 1.0, TFLOP/s/device: 300.0, Tokens/s/device: 9000.0, loss: 3.0\n",
           "validation step 10 dt: 100ms tok/sec: 9,000\n",
           "Epoch 1 validation:  50%|█████     | 5/10 [00:05<00:05,  1.00it/s]\n",
           "Train eval:  50%|█████     | 5/10 [00:05<00:05,  1.00it/s]\n",
       }) {
    EXPECT_EQ(read_log(line).steps.size(), 0U) << line;
  }
}

TEST(ValidationLines, a_word_elsewhere_in_a_line_of_training_does_not_matter) {
  for (const char* line : {
           "[runs/eval] 12 eval steps: 5 step: 10  loss:  5.1  tps: 7,000\n",
           "job eval-7b: max_val step: 10  loss:  5.1  tps: 7,000 eval_tps: 21,000\n",
       }) {
    const Reported got = read_log(line);
    ASSERT_EQ(got.steps.size(), 1U) << line;
    EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 7000) << line;
  }
}

TEST(ValidationLines, columns_of_an_evaluation_are_no_figures) {
  const Reported got = read_log("step,train/device/tokens_per_sec,val/device/tokens_per_sec,eval_full/device/mfu\n10,7000,21000,0.9\n");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].tokens_per_second_per_gpu, 7000);
  EXPECT_FALSE(got.steps[0].mfu_ratio);
}

}  // namespace
}  // namespace flopsight::training_logs
