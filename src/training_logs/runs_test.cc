#include <gtest/gtest.h>

#include <string>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

std::string titan(int from, int to, double mfu_percent) {
  std::string text;
  for (int step = from; step <= to; ++step) {
    text += "[titan] - step: " + std::to_string(step) + "  loss:  7.6  tps: 10,050  tflops: 314.71  mfu: " + std::to_string(mfu_percent) + "%\n";
  }
  return text;
}

std::string megatron(int from, int to, double milliseconds) {
  std::string text;
  for (int step = from; step <= to; ++step) {
    text += " iteration " + std::to_string(step) + "/ 100 | elapsed time per iteration (ms): " + std::to_string(milliseconds) +
            " | throughput per GPU (TFLOP/s/GPU): " + std::to_string(4e5 / milliseconds) + " | global batch size: 128 | lm loss: 1.0 |\n";
  }
  return text;
}

std::string sizes(int layers, int gpus) {
  return "using world size: " + std::to_string(gpus) + ", data-parallel size: 1\n  num_layers ........... " + std::to_string(layers) + "\n";
}

TEST(TrainingLogRuns, two_frameworks_in_one_text_have_no_summary_over_both) {
  const Reported got = read_log(titan(1, 10, 30) + megatron(1, 20, 1000));
  EXPECT_TRUE(got.several_runs);
  EXPECT_FALSE(got.summary.mfu_ratio || got.summary.flops_per_second_per_gpu || got.summary.step_seconds);
  ASSERT_EQ(got.runs.size(), 2U);
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[0].label, "torchtitan");
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.3);
  EXPECT_EQ(got.runs[0].steps_used, 10U);
  EXPECT_EQ(got.steps[1].label, "megatron");
  EXPECT_DOUBLE_EQ(*got.steps[1].flops_per_second_per_gpu, 400e12);
  EXPECT_EQ(got.runs[1].steps_used, 20U);
  // Interleaved, as two jobs that write to one file: the same.
  std::string mixed;
  for (int step = 1; step <= 10; ++step) mixed += titan(step, step, 30) + megatron(step, step, 1000);
  const Reported interleaved = read_log(mixed);
  ASSERT_EQ(interleaved.runs.size(), 2U);
  EXPECT_EQ(interleaved.runs[0].steps_used, 10U);
}

TEST(TrainingLogRuns, one_framework_can_be_read_alone) {
  Options options;
  options.format = "megatron";
  const Reported got = read_log(titan(1, 10, 30) + megatron(1, 20, 1000), options);
  EXPECT_FALSE(got.several_runs);
  EXPECT_EQ(got.summary.steps_used, 20U);
}

TEST(TrainingLogRuns, a_library_beside_the_framework_fills_in_and_is_no_run) {
  std::string text;
  for (int step = 1; step <= 8; ++step) {
    text += titan(step, step, 30) + "[2024-07-17 19:53:24,981] [INFO] [timer.py:258:stop] epoch=0/micro_step=1/global_step=" + std::to_string(step) +
            ", RunningAvgSamplesPerSec=16.1, CurrSamplesPerSec=16.8, MemAllocated=0.02GB\n";
  }
  const Reported got = read_log(text);
  EXPECT_FALSE(got.several_runs);
  EXPECT_EQ(got.format, "torchtitan");
  EXPECT_EQ(got.summary.steps_used, 8U);
  EXPECT_DOUBLE_EQ(*got.summary.mfu_ratio, 0.3);
  EXPECT_DOUBLE_EQ(*got.summary.samples_per_second, 16.8);
}

TEST(TrainingLogRuns, other_sizes_printed_before_a_restart_are_another_run) {
  const Reported got = read_log(sizes(32, 8) + megatron(1, 10, 1000) + sizes(80, 8) + megatron(1, 10, 1010));
  ASSERT_EQ(got.runs.size(), 2U);
  EXPECT_EQ(got.runs[0].label, "megatron 1");
  EXPECT_EQ(got.runs[1].label, "megatron 2");
  ASSERT_FALSE(got.runs[1].settings.empty());
  const auto layers = [](const LoggedRun& run) {
    for (const auto& [name, value] : run.settings) {
      if (name == "layers") return value;
    }
    return std::string();
  };
  EXPECT_EQ(layers(got.runs[0]), "32");
  EXPECT_EQ(layers(got.runs[1]), "80");
  EXPECT_DOUBLE_EQ(*got.steps[1].step_seconds, 1.01);
  // Another number of GPUs: time and rate of the job are others as well.
  EXPECT_EQ(read_log(sizes(32, 8) + megatron(1, 10, 1000) + sizes(32, 16) + megatron(11, 20, 1000)).runs.size(), 2U);
}

TEST(TrainingLogRuns, the_same_run_begun_anew_is_one_run) {
  const Reported again = read_log(sizes(32, 8) + megatron(1, 10, 1000) + sizes(32, 8) + megatron(1, 10, 1010));
  EXPECT_FALSE(again.several_runs);
  EXPECT_EQ(again.attempts, 2U);
  EXPECT_EQ(again.summary.steps_used, 20U);
  // From a checkpoint, at whatever speed: it is the same training.
  const Reported resumed = read_log(megatron(1, 20, 1000) + megatron(11, 30, 2000));
  EXPECT_FALSE(resumed.several_runs);
  EXPECT_EQ(resumed.attempts, 2U);
}

TEST(TrainingLogRuns, from_the_start_again_at_another_speed_is_another_run) {
  const Reported got = read_log(megatron(1, 10, 1000) + megatron(1, 10, 1500));
  ASSERT_EQ(got.runs.size(), 2U);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 1);
  EXPECT_DOUBLE_EQ(*got.steps[1].step_seconds, 1.5);
  // Of three steps nobody can tell.
  EXPECT_FALSE(read_log(megatron(1, 3, 1000) + megatron(1, 10, 1500)).several_runs);
}

TEST(TrainingLogRuns, a_text_that_grows_gives_the_steps_of_each_framework) {
  Reader reader({});
  reader.feed(titan(1, 12, 30));
  std::size_t of_titan = 0, of_megatron = 0;
  const auto take = [&](const std::vector<Taken>& given) {
    for (const Taken& taken : given) {
      (taken.format == "torchtitan" ? of_titan : of_megatron) += taken.steps.size();
      for (const Step& step : taken.steps) EXPECT_EQ(step.mfu_ratio.has_value(), taken.format == "torchtitan");
    }
  };
  take(reader.take());
  reader.feed(megatron(1, 12, 1000));
  take(reader.take());
  take(reader.close_open());
  EXPECT_EQ(of_titan, 12U);
  EXPECT_EQ(of_megatron, 12U);
  EXPECT_EQ(reader.format(), "torchtitan");
}

TEST(TrainingLogRuns, a_text_that_grows_is_read_again_from_the_first_step_that_any_framework_has_open) {
  Reader reader({});
  const std::string first = titan(1, 12, 30);
  reader.feed(first + megatron(1, 12, 1000));
  (void)reader.take();
  EXPECT_LT(reader.resume_at().offset_bytes, first.size());
}

TEST(TrainingLogRuns, a_library_beside_the_framework_gives_no_steps_of_its_own) {
  Reader reader({});
  reader.feed(megatron(1, 12, 1000) + "[INFO] epoch=0/micro_step=100/global_step=50, RunningAvgSamplesPerSec=10.2, CurrSamplesPerSec=10.5, MemAllocated=1GB\n");
  std::size_t steps = 0;
  for (const Taken& taken : reader.close()) {
    EXPECT_EQ(taken.format, "megatron");
    steps += taken.steps.size();
  }
  EXPECT_EQ(steps, 12U);
}

std::string trainer(double steps_per_second, std::string_view rank = "") {
  return std::string(rank) + "{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 1.0}\n" + std::string(rank) + "{'train_runtime': 100.0, 'train_samples_per_second': " +
         std::to_string(steps_per_second * 8) + ", 'train_steps_per_second': " + std::to_string(steps_per_second) + ", 'train_loss': 1.4, 'epoch': 3.0}\n";
}

TEST(TrainingLogRuns, what_comes_after_the_end_that_the_trainer_tells_is_another_run) {
  const Reported got = read_log(trainer(10) + trainer(20));
  EXPECT_TRUE(got.several_runs);
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_NEAR(*got.steps[0].step_seconds, 0.1, 1e-6);
  EXPECT_NEAR(*got.steps[1].step_seconds, 0.05, 1e-6);
  EXPECT_FALSE(got.summary.step_seconds);
}

TEST(TrainingLogRuns, an_end_that_several_processes_tell_is_that_of_one_run) {
  const std::string loss = "{'loss': 1.5, 'epoch': 1.0}\n";
  const auto end = [](double rate) { return "{'train_runtime': 100.0, 'train_steps_per_second': " + std::to_string(rate) + ", 'epoch': 3.0}\n"; };
  EXPECT_FALSE(read_log(loss + end(10) + end(10.1)).several_runs);
  EXPECT_FALSE(read_log(trainer(10, "[rank0]: ") + trainer(10.1, "[rank1]: ")).several_runs);
  EXPECT_TRUE(read_log(loss + end(10) + end(20)).several_runs);
}

TEST(TrainingLogRuns, the_settings_of_the_text_are_those_that_all_runs_print) {
  const Reported got = read_log(sizes(32, 8) + "  seq_length ........... 4096\n" + megatron(1, 10, 1000) + "  seq_length ........... 4096\n" + sizes(64, 8) + megatron(1, 10, 1000));
  ASSERT_EQ(got.runs.size(), 2U);
  EXPECT_EQ(got.setting("layers"), nullptr);
  ASSERT_NE(got.setting("sequence_length"), nullptr);
  EXPECT_EQ(*got.setting("sequence_length"), "4096");
}

}  // namespace
}  // namespace flopsight::training_logs
