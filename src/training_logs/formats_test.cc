#include <gtest/gtest.h>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

Reported one(std::string_view text) {
  Reported got = read_log(text);
  EXPECT_EQ(got.steps.size(), 1U) << text;
  if (got.steps.empty()) got.steps.emplace_back();
  return got;
}

TEST(TrainingLogFormats, megatron_in_all_wordings_is_the_figure_of_the_step) {
  for (const char* figure : {
           "throughput per GPU (TFLOP/s/GPU): 633.7 | ",
           "throughput per GPU (TFLOP/s/GPU): 633.7/630.1 | ",
           "compute per GPU (TFLOP/s/GPU): 633.7 (avg 630.1) | ",
           "compute per GPU (TFLOP/s/GPU): 1135.2 | throughput per GPU (TFLOP/s/GPU): 633.7 | ",
           "throughput per GPU (PFLOP/s/GPU): 0.6337 | ",
       }) {
    const Reported got = one(std::string(" iteration        4/      20 | elapsed time per iteration (ms): 654.5/735.1 | ") + figure +
                             "tokens/s/GPU inst/harmonic mean: 25032.8/22288.1 | global batch size:    16 | lm loss: 1.101008E+01 |\n");
    EXPECT_EQ(got.format, "megatron");
    EXPECT_EQ(got.steps[0].step, 4);
    EXPECT_NEAR(*got.steps[0].flops_per_second_per_gpu, 633.7e12, 1) << figure;
    EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.6545);
    EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 25032.8);
  }
}

TEST(TrainingLogFormats, megatron_bridge_prints_a_step_in_two_lines) {
  const Reported got = one(
      "ain_fp8_mx/0 Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n\n"
      "ain_fp8_mx/0  [2025-12-22 15:18:33] iteration       50/      50 | consumed samples: 25600 | "
      "elapsed time per iteration (ms): 9089.0 | lm loss: 1E+00 |\n");
  EXPECT_EQ(got.format, "megatron-bridge");
  EXPECT_EQ(got.steps[0].step, 50);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 9.089);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 663.5e12);
}

TEST(TrainingLogFormats, megatron_bridge_with_tokens_before_their_unit) {
  const Reported got = one("Step Time: 0.50s , 32680.36 tok/s/gpu, GPU utilization: 257.1 MODEL_TFLOP/s/GPU , Peak Mem: 64.5GB");
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.5);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 32680.36);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 257.1e12);
}

TEST(TrainingLogFormats, a_gpu_utilization_in_percent_is_no_flop_rate) {
  const Reported got = one("Step Time : 12.78s GPU utilization: 85%");
  EXPECT_FALSE(got.steps[0].flops_per_second_per_gpu);
  EXPECT_FALSE(got.steps[0].mfu_ratio);
  EXPECT_EQ(got.excluded[static_cast<std::size_t>(Exclusion::kUnknownUnit)], 1U);
}

TEST(TrainingLogFormats, nemo_as_a_line_and_as_a_bar) {
  const Reported line = one(
      "0: Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: 45 | "
      "reduced_train_loss: 11.96 | train_step_timing in s: 6.08 | TFLOPS_per_GPU: 1.249e+03 | consumed_samples: 5888\n");
  EXPECT_EQ(line.format, "nemo");
  EXPECT_EQ(line.steps[0].rank, 0);
  EXPECT_EQ(line.steps[0].step, 45);
  EXPECT_DOUBLE_EQ(*line.steps[0].step_seconds, 6.08);
  EXPECT_DOUBLE_EQ(*line.steps[0].flops_per_second_per_gpu, 1249e12);
  EXPECT_EQ(*line.setting("global_batch_size"), "128");

  const Reported bar = one(
      "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, reduced_train_loss=3.090, "
      "global_step=794.0, train_step_timing in s=41.20]\r");
  EXPECT_EQ(bar.format, "nemo");
  EXPECT_EQ(bar.steps[0].step, 794);
  EXPECT_DOUBLE_EQ(*bar.steps[0].step_seconds, 41.2);
}

TEST(TrainingLogFormats, lightning_bars_count_on_over_epochs) {
  const Reported got = read_log(
      "Epoch 0:   0%|          | 0/1000 [00:00<?, ?it/s]\r"
      "Epoch 0:  12%|█▏        | 120/1000 [00:30<03:20, 4.00it/s, v_num=0]\r"
      "Epoch 1:   1%|          | 10/1000 [00:05<03:20, 2.50s/it, v_num=0]\n");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.format, "lightning");
  EXPECT_EQ(got.steps[0].step, 120);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.25);
  EXPECT_EQ(got.steps[1].step, 1010);
  EXPECT_DOUBLE_EQ(*got.steps[1].step_seconds, 2.5);
  // A bar of something else is none of training.
  EXPECT_EQ(read_log("Loading checkpoint shards: 100%|██| 4/4 [00:05<00:00, 1.3s/it]\n").steps.size(), 0U);
}

TEST(TrainingLogFormats, of_a_line_into_which_another_was_written_the_last_record_counts) {
  const std::string line = " iteration 10/ 100 | elapsed time per iteration (ms): 3434.5 | throughput per GPU (TFLOP/s/GPU): 412.3 | lm loss: 8.1E+00 |";
  for (const std::string& torn : {" iteration 10/ 100 | elapsed time per iteration (ms): 34" + line, line.substr(0, 40) + line.substr(0, 55) + line, line + line}) {
    const Reported got = read_log(torn + "\n");
    ASSERT_EQ(got.steps.size(), 1U) << torn;
    EXPECT_EQ(got.steps[0].step, 10);
    EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 3.4345) << torn;
    EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 412.3e12) << torn;
  }
  // Where only the first is whole, it is what there is.
  const Reported first = read_log(line + " iteration 11/ 100 | elapsed ti\n");
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*first.steps[0].step_seconds, 3.4345);
  EXPECT_EQ(first.steps[0].step, 10);
}

TEST(TrainingLogFormats, nanogpt_before_it_knows_its_mfu) {
  const Reported got = read_log("iter 0: loss 10.9774, time 25117.76ms, mfu -100.00%\niter 10: loss 9.1, time 301.50ms, mfu 41.25%\n");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.format, "nanogpt");
  EXPECT_EQ(got.steps[0].excluded, Exclusion::kNotYetKnown);
  EXPECT_FALSE(got.steps[0].mfu_ratio);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 25.11776);
  EXPECT_EQ(got.summary.steps_used, 1U);
  EXPECT_DOUBLE_EQ(*got.summary.mfu_ratio, 0.4125);
}

TEST(TrainingLogFormats, composer_on_the_console) {
  const Reported got = one(
      "[batch=6/20]:\n"
      "\t Train loss/train/total: 2.5845\n"
      "\t Train throughput/batches_per_sec: 0.1085\n"
      "\t Train throughput/samples_per_sec: 0.2170\n"
      "\t Train throughput/device/samples_per_sec: 0.1085\n"
      "\t Train throughput/tokens_per_sec: 62282.6574\n"
      "\t Train throughput/device/tokens_per_sec: 7785.3322\n"
      "\t Train throughput/device/flops_per_sec: 395600000000000.0\n"
      "\t Train throughput/device/mfu: 0.4000\n");
  EXPECT_EQ(got.format, "composer");
  const Step& step = got.steps[0];
  EXPECT_EQ(step.step, 6);
  EXPECT_EQ(step.ranks, 1U);
  EXPECT_DOUBLE_EQ(*step.mfu_ratio, 0.4);
  EXPECT_DOUBLE_EQ(*step.tokens_per_second, 62282.6574);
  EXPECT_DOUBLE_EQ(*step.tokens_per_second_per_gpu, 7785.3322);
  EXPECT_DOUBLE_EQ(*step.samples_per_second, 0.2170);
  EXPECT_DOUBLE_EQ(*step.step_seconds, 1 / 0.1085);
  EXPECT_NEAR(*got.summary.implied_peak_flops_per_second, 989e12, 1);
}

TEST(TrainingLogFormats, deepspeed_timer_in_both_forms) {
  const Reported now = one(
      "[2024-07-17 19:53:24,981] [INFO] [timer.py:258:stop] epoch=0/micro_step=9000/global_step=4500, "
      "RunningAvgSamplesPerSec=16.124955167964504, CurrSamplesPerSec=16.807402094161112, MemAllocated=0.02GB\n");
  EXPECT_EQ(now.format, "deepspeed");
  EXPECT_EQ(now.steps[0].step, 4500);
  EXPECT_DOUBLE_EQ(*now.steps[0].samples_per_second, 16.807402094161112);
  const Reported then = one("[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.48609168106144, MemAllocated=0.26GB\n");
  EXPECT_EQ(then.steps[0].step, 40);
  EXPECT_DOUBLE_EQ(*then.steps[0].samples_per_second, 83.48609168106144);
}

TEST(TrainingLogFormats, deepspeed_flops_profiler_counts_forward_and_backward_together) {
  const Reported got = one(
      "Profile Summary at step 10:\n"
      "fwd latency:                                                  76.67 ms\n"
      "fwd FLOPS per GPU = fwd flops per GPU / fwd latency:          81.9 TFLOPS\n"
      "bwd FLOPS per GPU = 2 * fwd flops per GPU / bwd latency:      116.27 TFLOPS\n"
      "fwd+bwd FLOPS per GPU = 3 * fwd flops per GPU / (fwd+bwd latency):   102.0 TFLOPS\n"
      "step latency:                                                 34.09 us\n"
      "iter latency:                                                 184.73 ms\n"
      "samples/second:                                               21.65\n");
  EXPECT_EQ(got.format, "deepspeed-flops-profiler");
  EXPECT_EQ(got.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 102e12);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.18473);
  EXPECT_DOUBLE_EQ(*got.steps[0].samples_per_second, 21.65);
}

TEST(TrainingLogFormats, csv_of_a_logger_has_rows_of_several_kinds) {
  const Reported got = read_log(
      "epoch,lr,step,train/device/flops_per_sec,train/device/mfu,train_loss\n"
      "0,0.001,9,,,2.5\n"
      "0,,9,395600000000000,0.4,\n"
      "0,,19,296700000000000,0.3,\n");
  EXPECT_EQ(got.format, "csv");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[1].step, 19);
  EXPECT_DOUBLE_EQ(*got.summary.mfu_ratio, 0.35);
  EXPECT_NEAR(*got.summary.implied_peak_flops_per_second, 989e12, 1);
}

TEST(TrainingLogFormats, colours_and_prefixes_of_launchers_do_not_matter) {
  for (const char* prefix : {
           "",
           "[rank3]:",
           "[default3]:",
           "3: ",
           "[1,3]<stdout>:",
           "2026-02-24T19:46:17.508123456Z stdout F [rank3]:",
           "\x1b[36m(RayTrainWorker pid=12)\x1b[0m ",
       }) {
    const Reported got = one(std::string(prefix) +
                             "[titan] 2026-02-24 19:46:17,508 - root - INFO - \x1b[31mstep:  4  \x1b[32mloss:  7.62585  "
                             "\x1b[38;2;180;60;0mgrad_norm: 26.6250  \x1b[36mtps: 10,050  \x1b[34mtflops: 314.71  "
                             "\x1b[35mmfu: 13.99%\x1b[39m\r\n");
    EXPECT_EQ(got.format, "torchtitan") << prefix;
    EXPECT_EQ(got.steps[0].step, 4) << prefix;
    EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.1399) << prefix;
    const bool ranked = std::string_view(prefix).find('3') != std::string_view::npos && prefix[0] != '\x1b';
    EXPECT_EQ(got.steps[0].rank, ranked ? std::optional<std::int64_t>(3) : std::nullopt) << prefix;
  }
}

TEST(TrainingLogFormats, a_container_log_as_json_is_read_with_its_colours) {
  const Reported got = one(R"({"log":"\u001b[31mstep:  4  \u001b[36mtps: 10,050  \u001b[34mtflops: 314.71  \u001b[35mmfu: 13.99%\u001b[39m\n","stream":"stdout","time":"2026-02-24T19:46:17.5Z"})" "\n");
  EXPECT_EQ(got.steps[0].step, 4);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.1399);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 314.71e12);
}

TEST(TrainingLogFormats, a_decimal_comma_is_no_figure_and_not_the_part_before_it) {
  const Reported got = one("step: 4  loss:  7,62585  tps: 10,050,000  tflops: 314,71  mfu: 13,99%\n");
  EXPECT_EQ(got.steps[0].tokens_per_second_per_gpu, 10'050'000);
  EXPECT_FALSE(got.steps[0].flops_per_second_per_gpu);
  EXPECT_FALSE(got.steps[0].mfu_ratio);
  EXPECT_FALSE(got.steps[0].loss);
}

TEST(TrainingLogFormats, three_digits_behind_a_comma_are_no_thousands_where_another_figure_has_a_decimal_comma) {
  const auto maxtext = [](const char* seconds, const char* rate) {
    return read_log(std::string("completed step: 3, seconds: ") + seconds + ", TFLOP/s/device: " + rate + ", Tokens/s/device: 7772.0, loss: 2.0\n");
  };
  const Reported comma = maxtext("3,000", "400,0");
  ASSERT_EQ(comma.steps.size(), 1U);
  EXPECT_FALSE(comma.steps[0].step_seconds);
  EXPECT_FALSE(comma.steps[0].flops_per_second_per_gpu);
  EXPECT_DOUBLE_EQ(*comma.steps[0].tokens_per_second_per_gpu, 7772);
  EXPECT_EQ(comma.excluded[static_cast<std::size_t>(Exclusion::kUnparsable)], 2U);
  const Reported behind = maxtext("3,000.5", "400,0");
  EXPECT_DOUBLE_EQ(*behind.steps.at(0).step_seconds, 3000.5);
  const Reported thousands = maxtext("3,000", "400.0");
  EXPECT_DOUBLE_EQ(*thousands.steps.at(0).step_seconds, 3000);
}

TEST(TrainingLogFormats, a_decimal_comma_behind_thousands_with_dots_is_no_figure_either) {
  const auto megatron = [](const std::string& time) {
    return read_log(" iteration        1/   1000 | consumed samples:          128 | elapsed time per iteration (ms): " + time +
                    " | throughput per GPU (TFLOP/s/GPU): 400.1 | learning rate: 3.0E-06 | global batch size:   128 | lm loss: 1.0 | loss scale: 1.0 |\n");
  };
  for (const char* time : {"3.800,5", "1.234.567", "1.234.567,89", "12.345,678"}) {
    const Reported got = megatron(time);
    ASSERT_EQ(got.steps.size(), 1U) << time;
    EXPECT_FALSE(got.steps[0].step_seconds) << time;
    EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 400.1e12) << time;
  }
  for (const auto& [time, seconds] : {std::pair{"3800.5", 3.8005}, {"3,800.5", 3.8005}, {"3.800", 0.0038}, {"3.8005", 0.0038005}, {"3800.123", 3.800123}}) {
    const Reported got = megatron(time);
    ASSERT_TRUE(got.steps.size() == 1 && got.steps[0].step_seconds) << time;
    EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, seconds) << time;
  }
}

TEST(TrainingLogFormats, the_time_with_an_offset_is_believed_first) {
  const Reported got = one("2026-02-24T19:46:17.508Z [titan] 2026-02-24 11:46:17,508 - step: 4 tps: 1,000 mfu: 10.00%\n");
  EXPECT_EQ(units::to_rfc3339(*got.steps[0].time), "2026-02-24T19:46:17.508Z");
  EXPECT_EQ(got.times_without_zone, 0U);
}

TEST(TrainingLogFormats, settings_that_megatron_prints) {
  const Reported got = read_log(
      "using world size: 16, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 4, "
      "pipeline-model-parallel size: 2\n"
      "  seq_length ...................................... 8192\n"
      "  num_layers ...................................... 32\n"
      "[2024-01-01 00:00:00,000] [INFO] [config.py:1001:print]   train_batch_size ............. 256\n"
      "  something_else .................................. 5\n");
  EXPECT_EQ(*got.setting("world_size"), "16");
  EXPECT_EQ(*got.setting("tensor_parallel"), "4");
  EXPECT_EQ(*got.setting("pipeline_parallel"), "2");
  EXPECT_EQ(*got.setting("data_parallel"), "2");
  EXPECT_EQ(*got.setting("sequence_length"), "8192");
  EXPECT_EQ(*got.setting("layers"), "32");
  EXPECT_EQ(*got.setting("global_batch_size"), "256");
  EXPECT_EQ(got.settings.size(), 8U);
}

TEST(TrainingLogFormats, an_mfu_without_a_unit_is_left_out_and_said) {
  const Reported got = one(" iteration 4/ 20 | elapsed time per iteration (ms): 654.5 | MFU: 0.41 |\n");
  EXPECT_FALSE(got.steps[0].mfu_ratio);
  EXPECT_EQ(got.excluded[static_cast<std::size_t>(Exclusion::kUnknownUnit)], 1U);
  ASSERT_EQ(got.notes.size(), 1U);
  EXPECT_EQ(got.notes[0], "the figure after 'MFU' has no unit that is known, and is left out");
}

TEST(TrainingLogFormats, a_throughput_of_mlperf_is_samples_where_the_batch_shows_it) {
  const Reported got = one(
      ":::MLLOG {\"time_ms\": 1, \"key\": \"global_batch_size\", \"value\": 1152}\n"
      ":::MLLOG {\"time_ms\": 1, \"key\": \"tracked_stats\", \"value\": {\"throughput\": 20.939, \"train_step_time\": 55.0168}, "
      "\"metadata\": {\"step\": 0}}\n");
  EXPECT_DOUBLE_EQ(*got.steps[0].samples_per_second, 20.939);
  EXPECT_FALSE(got.steps[0].step);
}

TEST(TrainingLogFormats, a_throughput_of_mlperf_without_a_unit_is_left_out) {
  const Reported got = one(
      ":::MLLOG {\"time_ms\": 1, \"key\": \"tracked_stats\", \"value\": {\"throughput\": 12.5, \"train_step_time\": 2.5}, "
      "\"metadata\": {\"step\": 8}}\n:::MLLOG {\"time_ms\": 1, \"key\"\n");
  EXPECT_FALSE(got.steps[0].samples_per_second);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 2.5);
  EXPECT_EQ(got.excluded[static_cast<std::size_t>(Exclusion::kUnknownUnit)], 1U);
  EXPECT_EQ(got.excluded[static_cast<std::size_t>(Exclusion::kUnparsable)], 1U);
}

}  // namespace
}  // namespace flopsight::training_logs
