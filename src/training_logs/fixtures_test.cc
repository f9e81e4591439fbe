// Every published log of tests/fixtures/training_logs, with the figures that were counted from it by other means.

#include <gtest/gtest.h>

#include "base/file.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

std::string fixture(const std::string& name) {
  const auto text = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/training_logs/" + name);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : std::string();
}

std::uint64_t excluded(const Reported& reported, Exclusion exclusion) {
  return reported.excluded[static_cast<std::size_t>(exclusion)];
}

TEST(TrainingLogFixtures, bigscience_megatron_deepspeed) {
  const Reported got = read_log(fixture("bigscience-tr11-176B-a100-megatron-deepspeed.log"));
  EXPECT_EQ(got.format, "megatron");
  EXPECT_EQ(got.lines_matched, 18U);
  EXPECT_EQ(got.lines_total, 18U);
  ASSERT_EQ(got.steps.size(), 18U);
  EXPECT_EQ(got.summary.steps_used, 18U);
  EXPECT_EQ(got.steps.front().step, 12695);
  EXPECT_EQ(got.attempts, 1U);
  EXPECT_DOUBLE_EQ(*got.summary.flops_per_second_per_gpu, 147.46e12);
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 106.315);  // seconds here, milliseconds in Megatron-LM: the line says which
  EXPECT_DOUBLE_EQ(*got.summary.samples_per_second, 19.26);
  EXPECT_FALSE(got.summary.mfu_ratio);
  EXPECT_FALSE(got.steps.front().time);
  EXPECT_EQ(*got.setting("global_batch_size"), "2048");
  EXPECT_DOUBLE_EQ(got.steps.front().loss->value, 2.463556);
}

TEST(TrainingLogFixtures, maxtext_warms_up_in_two_steps) {
  const Reported got = read_log(fixture("maxtext-docs-v6e.log"));
  EXPECT_EQ(got.format, "maxtext");
  ASSERT_EQ(got.steps.size(), 10U);  // the document shows step 9 twice
  EXPECT_EQ(excluded(got, Exclusion::kWarmUp), 2U);
  EXPECT_EQ(got.steps[0].excluded, Exclusion::kWarmUp);
  EXPECT_EQ(got.steps[1].excluded, Exclusion::kWarmUp);
  EXPECT_FALSE(got.steps[2].excluded);
  EXPECT_EQ(got.summary.steps_used, 8U);
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 5.668);
  EXPECT_DOUBLE_EQ(*got.summary.flops_per_second_per_gpu, 134.9125e12);
  EXPECT_NEAR(*got.summary.tokens_per_second_per_gpu, 8672.0495, 1e-6);
}

TEST(TrainingLogFixtures, maxtext_above_the_peak_is_an_asynchronous_start) {
  Options options;
  options.peak_flops_per_second = 918e12;  // TPU v6e
  const Reported got = read_log(fixture("maxtext-docs-v6e.log"), options);
  EXPECT_EQ(excluded(got, Exclusion::kAbovePeak), 1U);
  EXPECT_EQ(excluded(got, Exclusion::kWarmUp), 1U);
  EXPECT_EQ(got.steps[1].excluded, Exclusion::kAbovePeak);
}

TEST(TrainingLogFixtures, mlperf_result) {
  const Reported got = read_log(fixture("mlperf-v5.0-nvidia-eos-64xH100node-llama31_405b.txt"));
  EXPECT_EQ(got.format, "mlperf");
  EXPECT_EQ(got.steps_total, 240U);
  EXPECT_EQ(got.attempts, 1U);  // the averages of blocks, numbered 0 to 5, are no restarts
  EXPECT_NEAR(*got.summary.step_seconds, 55.1, 0.02);
  EXPECT_EQ(*got.setting("global_batch_size"), "1152");
  EXPECT_EQ(*got.setting("sequence_length"), "8192");
  EXPECT_EQ(*got.setting("platform"), "64xNVIDIA HGX H100");
  ASSERT_TRUE(got.steps.front().time);
  EXPECT_EQ(got.steps.front().time->unix_milliseconds, 1744812678480);
  EXPECT_EQ(got.steps.front().step, 1152);  // MLPerf counts samples
}

TEST(TrainingLogFixtures, megatron_golden_values) {
  const Reported got = read_log(fixture("megatron-lm-golden-deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm-h100.json"));
  EXPECT_EQ(got.format, "megatron-golden-values");
  EXPECT_EQ(got.steps_total, 1908U);  // the loss is there for step 1 as well
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 12.3826);
  EXPECT_EQ(got.steps.back().step, 9535);
}

TEST(TrainingLogFixtures, verification_cards_are_results_of_several_runs) {
  const Reported qwen = read_log(fixture("megatron-bridge-verification-card-qwen3-8b.yaml"));
  EXPECT_EQ(qwen.format, "megatron-bridge-card");
  EXPECT_TRUE(qwen.several_runs);
  EXPECT_FALSE(qwen.summary.step_seconds);
  ASSERT_EQ(qwen.steps.size(), 5U);
  EXPECT_EQ(qwen.steps[0].label, "pretrain H100 bf16");
  EXPECT_DOUBLE_EQ(*qwen.steps[0].step_seconds, 25.07032);
  EXPECT_DOUBLE_EQ(*qwen.steps[0].flops_per_second_per_gpu, 512.7e12);
  EXPECT_DOUBLE_EQ(*qwen.steps[0].tokens_per_second_per_gpu, 10456.348);
  EXPECT_EQ(*qwen.setting("model"), "Qwen/Qwen3-8B");

  const Reported nemotron = read_log(fixture("megatron-bridge-verification-card-nemotron-3-super-120b-a12b.yaml"));
  ASSERT_EQ(nemotron.steps.size(), 7U);  // of fourteen; what is not verified has no figures
  const Reported deepseek = read_log(fixture("megatron-bridge-verification-card-deepseek-v3.yaml"));
  ASSERT_GE(deepseek.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(*deepseek.steps[0].step_seconds, 61.75613);
}

// The fragments are quoted in issues about several frameworks; each block is a log of its own.
std::string block(std::string_view head) {
  const std::string all = fixture("issue-fragments.log");
  const std::size_t at = all.find(head);
  EXPECT_NE(at, std::string::npos) << head;
  const std::size_t from = all.find('\n', at) + 1;
  return all.substr(from, all.find("\n##", from) - from);
}

TEST(TrainingLogFixtures, megatron_lm_of_an_issue) {
  const Reported got = read_log(block("NVIDIA/Megatron-LM#756"));
  EXPECT_EQ(got.format, "megatron");
  ASSERT_EQ(got.steps.size(), 3U);
  EXPECT_DOUBLE_EQ(*got.summary.step_seconds, 5.4449);
  EXPECT_DOUBLE_EQ(*got.summary.flops_per_second_per_gpu, 239.8e12);
  EXPECT_FALSE(got.steps[0].time);
  EXPECT_EQ(got.times_without_zone, 3U);

  Options options;
  options.zone = *base::Zone::find("America/Los_Angeles");
  const Reported zoned = read_log(block("NVIDIA/Megatron-LM#756"), options);
  EXPECT_EQ(units::to_rfc3339(*zoned.steps[0].time), "2024-04-06T09:55:45Z");
}

TEST(TrainingLogFixtures, torchtitan_where_every_rank_prints_implies_its_peak) {
  const Reported got = read_log(block("pytorch/torchtitan#2389"));
  EXPECT_EQ(got.format, "torchtitan");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[0].ranks, 2U);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 314.70e12);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 10050);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.1399);
  // B200, dense BF16. The MFU has four digits, which leaves 0.04 %.
  EXPECT_NEAR(*got.summary.implied_peak_flops_per_second, 2250e12, 2250e12 * 4e-4);
  EXPECT_FALSE(got.summary.implied_peak_printed);
}

TEST(TrainingLogFixtures, torchtitan_with_ranks_and_milliseconds_after_a_comma) {
  Options options;
  options.zone = base::Zone::utc();
  const Reported got = read_log(block("pytorch/torchtitan#1437"), options);
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_EQ(got.steps[0].rank, 0);
  EXPECT_EQ(units::to_rfc3339(*got.steps[0].time), "2025-07-21T15:57:42.774Z");
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second_per_gpu, 30768);
  // 3.15 TFLOP/s at 0.32 %: two digits, so that the quotient says little.
  EXPECT_NEAR(*got.summary.implied_peak_flops_per_second, 989e12, 989e12 * 0.02);
}

TEST(TrainingLogFixtures, torchtitan_says_that_it_guesses_the_peak) {
  const Reported got = read_log(std::string(block("pytorch/torchtitan#3393")) + "\n");
  EXPECT_EQ(*got.setting("peak_undefined_for"), "Tesla T4");
  EXPECT_EQ(*got.setting("peak_fallback"), "A100");
  EXPECT_DOUBLE_EQ(*got.summary.implied_peak_flops_per_second, 312e12);
  EXPECT_TRUE(got.summary.implied_peak_printed);
  EXPECT_EQ(got.lines_matched, 2U);
}

TEST(TrainingLogFixtures, a_gpu_utilization_that_is_a_rate) {
  const Reported got = read_log(block("NVIDIA-NeMo/Megatron-Bridge#388"));
  EXPECT_EQ(got.format, "megatron-bridge");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 12.78);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 528.1e12);
  EXPECT_FALSE(got.steps[0].mfu_ratio);
}

TEST(TrainingLogFixtures, megatron_progress_file) {
  const Reported got = read_log(block("swiss-ai/Megatron-LM#46"));
  EXPECT_EQ(got.format, "megatron-progress");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 100);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 364.8e12);
  EXPECT_EQ(*got.setting("world_size"), "8");
  EXPECT_EQ(*got.setting("scheduler_job"), "198424");
}

}  // namespace
}  // namespace flopsight::training_logs
