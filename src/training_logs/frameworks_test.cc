#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/file.h"
#include "training_logs/report.h"

// Lines of frameworks as they were printed (tests/fixtures/training_logs/framework-fragments.log), and as their sources print them.

namespace flopsight::training_logs {
namespace {

// The part under the `which`-th heading of this format.
std::string fragment(const std::string& format, int which = 1) {
  const auto text = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/training_logs/framework-fragments.log");
  EXPECT_TRUE(text.ok());
  std::size_t at = 0;
  for (int i = 0; i < which; ++i) at = text->find("## " + format + ":", at) + 1;
  const std::size_t begin = text->find('\n', at) + 1;
  return text->substr(begin, text->find("## ", begin) - begin);
}

bool has_note(const Reported& got, std::string_view words) {
  for (const std::string& note : got.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(TrainingLogFrameworks, torchtune_prints_tokens_of_a_gpu) {
  const Reported got = read_log(fragment("torchtune"));
  EXPECT_EQ(got.format, "torchtune");
  ASSERT_EQ(got.steps.size(), 6U);
  EXPECT_EQ(got.steps[0].excluded, Exclusion::kWarmUp);
  EXPECT_EQ(got.steps[1].step, 2);
  EXPECT_DOUBLE_EQ(*got.steps[1].tokens_per_second_per_gpu, 405.044978758513);
  EXPECT_DOUBLE_EQ(got.steps[1].loss->value, 1.8718312978744507);
}

TEST(TrainingLogFrameworks, litgpt_prints_times_of_micro_batches_which_are_steps_only_without_accumulation) {
  const Reported accumulated = read_log(fragment("litgpt"));
  EXPECT_EQ(accumulated.format, "litgpt");
  EXPECT_EQ(accumulated.steps_total, 0U);
  EXPECT_GT(accumulated.lines_matched, 0U);
  EXPECT_TRUE(has_note(accumulated, "time of micro-batches"));
  EXPECT_FALSE(accumulated.nearest_miss);
  const Reported plain = read_log("Epoch 1 | iter 7 step 7 | loss train: 1.646, val: n/a | iter time: 820.31 ms (step) remaining time: 0:01:40\n");
  ASSERT_EQ(plain.steps.size(), 1U);
  EXPECT_EQ(plain.steps[0].step, 7);
  EXPECT_DOUBLE_EQ(*plain.steps[0].step_seconds, 0.82031);
}

TEST(TrainingLogFrameworks, the_trainer_of_hugging_face_prints_its_speed_at_the_end) {
  for (const auto& [which, samples, seconds] : {std::tuple{1, 0.887, 1 / 0.444}, {2, 1.333, 1 / 0.168}}) {
    const Reported got = read_log(fragment("hf-trainer", which));
    EXPECT_EQ(got.format, "hf-trainer");
    ASSERT_EQ(got.steps.size(), 1U) << which;
    EXPECT_DOUBLE_EQ(*got.summary.samples_per_second, samples);
    EXPECT_DOUBLE_EQ(*got.summary.step_seconds, seconds);
  }
  const Reported running = read_log("{'loss': 1.29, 'grad_norm': 1.01, 'learning_rate': 8.2e-08, 'epoch': 0.01}\n");
  EXPECT_EQ(running.format, "hf-trainer");
  EXPECT_EQ(running.steps_total, 0U);
  EXPECT_TRUE(has_note(running, "the Trainer prints its speed at the end"));
}

TEST(TrainingLogFrameworks, what_is_made_of_the_trainer_prints_more) {
  const Reported axolotl = read_log(
      "{'loss': 1.1, 'grad_norm': 0.4, 'learning_rate': 1e-05, 'memory/max_active (GiB)': 60.1, 'tokens_per_second_per_gpu': 4213.5, 'epoch': 0.02}\n"
      "{'train_runtime': 100.0, 'train_samples_per_second': 2.0, 'train_steps_per_second': 0.5, 'train_loss': 1.1, 'epoch': 0.02}\n");
  ASSERT_EQ(axolotl.steps.size(), 1U) << "the average of the run is not one step more";
  EXPECT_DOUBLE_EQ(*axolotl.summary.tokens_per_second_per_gpu, 4213.5);
  const Reported swift = read_log(
      "{'loss': 0.7, 'token_acc': 0.8, 'grad_norm': 0.9, 'learning_rate': 2e-06, 'memory(GiB)': 67.1, 'train_speed(iter/s)': 0.25, 'epoch': 0.5, "
      "'global_step/max_steps': '10/200', 'percentage': '5.00%'}\n");
  ASSERT_EQ(swift.steps.size(), 1U);
  EXPECT_EQ(swift.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(*swift.steps[0].step_seconds, 4);
  // A callback's own MFU has no unit: 0.41 may be 41 % or 0.41 %.
  const Reported own = read_log("{'loss': 1.1, 'mfu': 0.41, 'epoch': 0.02}\n");
  EXPECT_EQ(own.steps_total, 0U);
  EXPECT_TRUE(has_note(own, "'mfu' has no unit"));
}

TEST(TrainingLogFrameworks, nanotron_writes_thousands_as_letters) {
  const Reported got = read_log(fragment("nanotron"));
  EXPECT_EQ(got.format, "nanotron");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 91);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.0904);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 5660);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second, 11'300);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 0.784e12);
}

TEST(TrainingLogFrameworks, verl_prints_the_mfu_of_the_update_and_it_is_said) {
  const Reported got = read_log(fragment("verl"));
  EXPECT_EQ(got.format, "verl");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[0].step, 66);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.021786912233273698);
  EXPECT_TRUE(has_note(got, "update of the actor alone"));
  const Reported wrapped = read_log("step:3 - perf/mfu/actor:np.float64(0.41) - timing_s/step:30.5 - perf/throughput:1234.5 - perf/time_per_step:30.5\n");
  ASSERT_EQ(wrapped.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*wrapped.steps[0].mfu_ratio, 0.41);
  EXPECT_DOUBLE_EQ(*wrapped.steps[0].step_seconds, 30.5);
  EXPECT_DOUBLE_EQ(*wrapped.steps[0].tokens_per_second_per_gpu, 1234.5);
}

// As src/olmo_core/train/callbacks/console_logger.py and speed_monitor.py print (allenai/OLMo-core 00e2b7b, 07b9e85).
TEST(TrainingLogFrameworks, olmo_core_prints_a_block_and_its_mfu_in_percent) {
  const Reported got = read_log(
      "2025-05-01 10:00:00.123\thost:0\tolmo_core.train.callbacks.console_logger:80\tINFO\t[step=10/1000,epoch=1,eta=3:12:10]\n"
      "    train/CE loss=10.52\n"
      "    optim/total grad norm=1.234\n"
      "    throughput/device/data loading (s)=0.0012\n"
      "    throughput/device/TPS=12,345\n"
      "    throughput/device/TPS (actual avg)=9,999\n"
      "    throughput/device/BPS=0.7534\n"
      "    throughput/device/BPS (actual avg)=0.5000\n"
      "    throughput/device/MFU=41.25\n"
      "    throughput/device/MFU (actual avg)=30.10\n"
      "[step=11/1000,epoch=1]\n");
  EXPECT_EQ(got.format, "olmo-core");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.4125);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 12'345);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 1 / 0.7534);
}

TEST(TrainingLogFrameworks, nanochat_prints_its_mfu_in_percent_with_or_without_the_sign) {
  for (const char* mfu : {"bf16_mfu: 47.25", "mfu: 47.25", "bf16_mfu: 47.25%"}) {
    const Reported got = read_log(std::string("step 00010/21400 (0.05%) | loss: 8.224312 | lrm: 1.00 | dt: 512.30ms | tok/sec: 1,023,424 | ") + mfu + " | total time: 0.00m\n");
    EXPECT_EQ(got.format, "nanochat");
    ASSERT_EQ(got.steps.size(), 1U) << mfu;
    EXPECT_EQ(got.steps[0].step, 10);
    EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.4725) << mfu;
    EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second, 1'023'424);
  }
}

// As docker's json-file driver, fluentd, Google's and systemd's collectors keep a line.
TEST(TrainingLogFrameworks, a_container_log_kept_as_json_gives_its_text_and_its_time) {
  const std::string line = "iteration 7/ 100 | elapsed time per iteration (ms): 500.0 | throughput per GPU (TFLOP/s/GPU): 300.0 |";
  for (const std::string& record : {
           "{\"log\":\"" + line + "\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-01T10:00:00.123456789Z\"}\n",
           "{\"@timestamp\":\"2026-01-01T10:00:00.123Z\",\"message\":\"\\u001b[32m" + line + "\\u001b[0m\"}\r\n",
           "{\"textPayload\":\"[2025-12-31 23:59:59] " + line + "\\n\",\"timestamp\":\"2026-01-01T11:00:00.123+01:00\"}",
       }) {
    const Reported got = read_log(record);
    ASSERT_EQ(got.steps.size(), 1U) << record;
    EXPECT_EQ(got.format, "megatron");
    EXPECT_EQ(got.steps[0].step, 7);
    ASSERT_TRUE(got.steps[0].time) << record;
    EXPECT_EQ(got.steps[0].time->unix_milliseconds, 1'767'261'600'123);
    EXPECT_FALSE(got.steps[0].is_zone_assumed);
  }
  // Quotes and several lines inside.
  const Reported mllog = read_log("{\"log\":\"a\\r:::MLLOG {\\\"key\\\": \\\"tracked_stats\\\", \\\"value\\\": {\\\"train_step_time\\\": 2.5}, \\\"metadata\\\": {\\\"step\\\": 3}}\\n\"}\n");
  ASSERT_EQ(mllog.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*mllog.steps[0].step_seconds, 2.5);
}

TEST(TrainingLogFrameworks, a_byte_order_mark_and_windows_line_ends_do_not_matter) {
  const Reported table = read_log("\xEF\xBB\xBFstep,device/mfu\r\n1,0.4\r\n2,0.5\r\n");
  EXPECT_EQ(table.format, "csv");
  EXPECT_EQ(table.steps.size(), 2U);
  const Reported golden = read_log("\xEF\xBB\xBF{\"iteration-time\": {\"values\": {\"1\": 2.5}}}\r\n");
  EXPECT_EQ(golden.format, "megatron-golden-values");
}

TEST(TrainingLogFrameworks, tokens_per_iteration_of_nanogpt_are_a_setting) {
  const Reported got = read_log("tokens per iteration will be: 491,520\niter 10: loss 9.1, time 301.50ms, mfu 41.25%\n");
  EXPECT_EQ(*got.setting("tokens_per_step"), "491520");
}

TEST(Frameworks, gpt_neox) {
  const Reported got = read_log(
      "samples/sec: 42.1 | iteration       10/  143000 | elapsed time per iteration (ms): 24321.3 | learning rate: 9.600E-05 | approx flops per GPU: 56.7TFLOPS | "
      "lm_loss: 7.100000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 56.7e12);
  EXPECT_DOUBLE_EQ(*got.steps[0].samples_per_second, 42.1);
  EXPECT_DOUBLE_EQ(got.steps[0].loss->value, 7.1);
}

TEST(Frameworks, axolotl_under_its_newer_name) {
  const Reported got = read_log(
      "{'loss': '1.2', 'grad_norm': '0.5', 'ppl': '3.3', 'memory/max_active (GiB)': '30.1', 'tokens/train_per_sec_per_gpu': '4096.5', 'tokens/total': 1024, "
      "'tokens/trainable': 512, 'epoch': '0.1'}\n");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 4096.5);
  EXPECT_TRUE(got.notes.empty());
}

TEST(Frameworks, fms_fsdp_prints_a_block) {
  std::string text;
  for (const char* step : {"100", "200"}) {
    text += "step: " + std::string(step) + "\nloss: 3.2\nLR: 0.0003\ncurrent step time: 2.5\noverall step time: 9.0\ncurrent token per gpu per sec: 3276\n"
            "overall token per gpu per sec: 900\n";
  }
  const Reported got = read_log(text);
  EXPECT_EQ(got.format, "fms-fsdp");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[1].step, 200);
  EXPECT_DOUBLE_EQ(*got.steps[1].step_seconds, 2.5);
  EXPECT_DOUBLE_EQ(*got.steps[1].tokens_per_second_per_gpu, 3276);
  EXPECT_TRUE(read_log("step: 100\nmy step: 5 of 6\n").format.empty());
}

TEST(Frameworks, deepspeed_pipeline) {
  const Reported got = read_log("steps: 10 loss: 8.1000 iter time (s): 1.250 samples/sec: 20.400\n");
  EXPECT_EQ(got.format, "deepspeed-pipeline");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 10);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 1.25);
  EXPECT_DOUBLE_EQ(*got.steps[0].samples_per_second, 20.4);
}

TEST(Frameworks, internevo) {
  for (const char* line : {
           "2023-07-07 12:29:01,636\tINFO train.py:323 in record_current_batch_training_metrics -- tflops=189.83371103277346,step=1,loss=11.613704681396484,"
           "tgs (tokens/gpu/second)=4274.45,lr=6.000000000000001e-07,loss_scale=65536.0,num_samples_in_batch=16,fwd_bwd_time=3.7\n",
           "2024-03-27 17:03:42,047 INFO training_internlm.py:599 in record_current_batch_training_metrics -- tflops=189.83371103277346 step=1 loss=0.0053 "
           "tgs (tokens/gpu/second)=4274.45 tgs/last_tgs_1=3345.74 tgs/tgs_all=2958.36 lr=1e-05\n",
       }) {
    const Reported got = read_log(line);
    EXPECT_EQ(got.format, "internevo");
    ASSERT_EQ(got.steps.size(), 1U);
    EXPECT_EQ(got.steps[0].step, 1);
    EXPECT_NEAR(*got.steps[0].flops_per_second_per_gpu, 189.8337e12, 1e8);
    EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 4274.45);
  }
}

TEST(Frameworks, colossalai) {
  const Reported got = read_log("Throughput: 12.30 samples/sec, TFLOPS per GPU by Megatron: 201.50, TFLOPS per GPU: 151.10\n");
  EXPECT_EQ(got.format, "colossalai");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 201.5e12);
}

}  // namespace
}  // namespace flopsight::training_logs
