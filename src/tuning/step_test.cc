#include "tuning/step.h"

#include <gtest/gtest.h>

#include "tuning/formulas.h"
#include "tuning/search.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using test::TestRun;

TEST(Step, its_figures_belong_to_each_other) {
  TestRun run;
  const Step step = run.step();
  EXPECT_NEAR(step.breakdown.compute_seconds, step.products_seconds + step.attention_seconds, 1e-9);
  EXPECT_NEAR(step.breakdown.memory_seconds, step.elementwise_seconds + step.optimizer_seconds, 1e-9);
  EXPECT_NEAR(step.tokens_per_second, 64 * 4096 / step.step_seconds(), 1e-6);
  EXPECT_NEAR(step.mfu_ratio, step.tokens_per_second / 8 * 48.25e9 / 989.4e12, 1e-3);
  EXPECT_GT(step.attainable_ofu_ratio, step.mfu_ratio) << "padding of tiles and scores computed again are counted by the hardware";
  EXPECT_LT(step.attainable_ofu_ratio, step.mfu_ratio * 1.1);
  EXPECT_LT(step.mfu_ratio, 0.803) << "no run is above the best product";
}

TEST(Step, full_recomputation_costs_a_quarter_to_a_third) {
  TestRun run;
  const double without = run.step().step_seconds(), mfu = run.step().mfu_ratio;
  run.settings.recompute = flops::Recompute::kFull;
  const Step with = run.step();
  EXPECT_NEAR(with.step_seconds() / without, 1.30, 0.04);
  EXPECT_NEAR(with.attainable_ofu_ratio / with.mfu_ratio, 1.35, 0.03);
  EXPECT_LT(with.mfu_ratio, mfu);
  EXPECT_NEAR(with.recompute_seconds, with.step_seconds() - without, 1e-9) << "element-wise kernels run again as well";
}

TEST(Step, the_bubble_is_its_formula_but_for_the_head) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.layout = {8, 8, 1, 1, 1, 1};
  run.settings.global_batch = 32;
  const Step plain = run.step();
  const double busy = plain.step_seconds() - plain.breakdown.pipeline_bubble_seconds - plain.optimizer_seconds - plain.breakdown.pipeline_parallel_seconds - plain.breakdown.data_parallel_seconds;
  EXPECT_GT(plain.breakdown.pipeline_bubble_seconds / busy, 7.0 / 32);
  run.settings.layout.virtual_stages = 10;
  EXPECT_LT(run.step().step_seconds(), plain.step_seconds());
  run.settings.layout.virtual_stages = 1;
  run.settings.global_batch = 256;
  EXPECT_LT(run.step().breakdown.pipeline_bubble_seconds / run.step().step_seconds(), plain.breakdown.pipeline_bubble_seconds / plain.step_seconds());
}

TEST(Step, stages_that_differ_are_as_slow_as_the_fullest) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.global_batch = 256;
  run.settings.layout = {8, 8, 1, 1, 1, 1};
  const double even = run.step().step_seconds();
  run.settings.layout.pipeline = 7;  // 80 = 6 x 12 + 8
  run.settings.gpus = 56;
  // Twelve blocks against ten and the head, which now is on the stage of eight.
  EXPECT_GT(run.step().step_seconds() / even, 1.05);
  EXPECT_LT(run.step().step_seconds() / even, 1.2);
  EXPECT_NEAR(stage_ratios(61, {1, 16, 1, 1, 1, 1}).largest_ratio, 4.0 / 61, 1e-12);
  EXPECT_EQ(stage_ratios(80, {1, 8, 1, 1, 1, 1}).largest_ratio, 1.0 / 8);
}

TEST(Step, accumulation_lowers_messages_for_each_token) {
  TestRun run("made--Llama-3-70B", "A100-SXM4-80GB", "dgx-a100");
  run.settings.gpus = 64;
  run.settings.layout = {8, 1, 1, 1, 1, 8};
  run.settings.overlap_data = false;
  run.settings.global_batch = 8;
  const Step one = run.step();
  run.settings.global_batch = 64;
  const Step eight = run.step();
  EXPECT_NEAR(eight.breakdown.data_parallel_seconds, one.breakdown.data_parallel_seconds, 1e-9);
  EXPECT_LT(eight.breakdown.data_parallel_seconds / eight.step_seconds(), one.breakdown.data_parallel_seconds / one.step_seconds() / 4);
  run.settings.zero_stage = 3;
  EXPECT_NEAR(run.step().breakdown.data_parallel_seconds / one.breakdown.data_parallel_seconds, 8 * 1.5, 0.5) << "stage 3 gathers weights for every micro-batch";
}

TEST(Step, tensor_parallel_messages_are_eight_hidden_states_a_layer) {
  TestRun run("made--Llama-3-70B");
  run.settings.layout = {8, 1, 1, 1, 1, 1};
  run.settings.global_batch = 1;
  const Step step = run.step();
  // 9.18 MB a token with 360 GB/s: 25.5 us; the base and hops of 960 messages, and the head's, are on top.
  EXPECT_NEAR(step.tensor_parallel_all_seconds / 4096, 25.5e-6, 8e-6);
  run.settings.overlap_tensor = true;
  EXPECT_LT(run.step().breakdown.tensor_parallel_seconds, step.breakdown.tensor_parallel_seconds / 2);
}

TEST(Step, formats_that_a_gpu_does_not_have_are_refused) {
  TestRun run("made--Llama-3-8B", "A100-SXM4-80GB", "dgx-a100");
  run.settings.precision = Precision::kFp8;
  EXPECT_EQ(run.steps.predict(run.settings).error().message, "A100-SXM4-80GB has no fp8 peak in the catalogue, which has tf32, fp16, bf16, int8");
}

TEST(Step, settings_that_do_not_divide_name_the_size) {
  const auto message = [](void (*change)(TrainSettings&)) {
    TestRun run;
    change(run.settings);
    const auto step = run.steps.predict(run.settings);
    return step.ok() ? std::string("ok") : step.error().message;
  };
  EXPECT_EQ(message([](TrainSettings& s) { s.layout.tensor = 3; s.layout.data = 8; }), "--tp 3 x --pp 1 x --cp 1 x --dp 8 = 24, expected --gpus 8");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 24; s.layout.tensor = 3; s.global_batch = 64; }), "--tp 3: the model's 32 attention heads cannot be divided by it");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 512; s.layout.pipeline = 64; }), "--pp 64: the model's 32 layers cannot be divided over 64");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 40; s.layout.pipeline = 5; }), "ok");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 40; s.layout.pipeline = 5; s.layout.virtual_stages = 2; }), "--pp 5 x --vp 2: the model's 32 layers cannot be divided by 10, nor with one layer fewer on each GPU");
  TestRun uneven("deepseek-ai--DeepSeek-V3");
  uneven.settings.gpus = 256;
  uneven.settings.global_batch = 4096;
  uneven.settings.layout = {1, 4, 4, 1, 64, 64};
  EXPECT_TRUE(check_settings(uneven.model, uneven.settings).ok()) << "61 layers in 16 parts, as it is trained";
  EXPECT_EQ(message([](TrainSettings& s) { s.global_batch = 60; }), "--global-batch 60 cannot be divided by --micro-batch 1 x 8 data-parallel GPUs");
  EXPECT_EQ(message([](TrainSettings& s) { s.layout.expert = 2; }), "--ep 2: the model has no routed experts");
  EXPECT_EQ(message([](TrainSettings& s) { s.layout.virtual_stages = 2; }), "--vp 2 needs --pp");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 16; s.layout.pipeline = 2; s.layout.virtual_stages = 2; s.global_batch = 8; }),
            "--vp 2: interleaving needs micro-batches in multiples of --pp 2, there are 1");
  EXPECT_EQ(message([](TrainSettings& s) { s.gpus = 24; s.layout.context = 3; }), "--cp 3: --seq-len 4096 cannot be divided by it");
  EXPECT_EQ(message([](TrainSettings& s) { s.prediction_steps = 1; }), "--mtp 1: the configuration has no multi-token prediction layers");
  EXPECT_EQ(message([](TrainSettings& s) { s.micro_batch = 128; }), "--micro-batch 128: expected 1 to --global-batch 64");
  EXPECT_EQ(message([](TrainSettings& s) { s.sequence_tokens = kSequenceTokensMax + 1; }), "--seq-len 134217729: expected 1 to 134217728");
  EXPECT_EQ(message([](TrainSettings& s) { s.layout = {kGpusMax, kGpusMax, 1, kGpusMax, 1, kGpusMax}; }), "--tp x --pp x --cp x --dp: more than 1048576 GPUs, expected --gpus 8");
  EXPECT_EQ(message([](TrainSettings& s) { s.sequence_tokens = 8; }), "ok");
}

TEST(Step, every_family_of_models_has_one) {
  for (const char* name : {"deepseek-ai--DeepSeek-V3", "made--Nemotron-H-8B", "ai21labs--Jamba-v0.1", "made--gpt-oss-120b", "made--Qwen3-Next-80B-A3B", "made--Mamba-2-2.7B", "made--Gemma-3-27B", "made--Zamba2-2.7B"}) {
    TestRun run(name, "H200");
    run.settings.sequence_tokens = 4096;
    const Step step = run.step();
    EXPECT_GT(step.mfu_ratio, 0.02) << name;
    EXPECT_LT(step.mfu_ratio, 0.75) << name;
    EXPECT_GT(run.memory().activations_bytes, 0) << name;
  }
}

TEST(Search, a_thousand_gpus_have_a_layout_that_fits) {
  TestRun run("made--Llama-3.1-405B");
  run.settings.gpus = run.settings.layout.data = 1024;
  run.settings.global_batch = 1024;
  const SearchResult found = search_layouts(run.steps, run.settings).value();
  ASSERT_FALSE(found.best.empty());
  EXPECT_GT(found.tried_total, found.fitting_total);
  for (const Found& one : found.best) {
    EXPECT_TRUE(check_settings(run.model, one.settings).ok());
    EXPECT_EQ(one.memory.fits(), true);
    EXPECT_LE(one.settings.layout.tensor, 8u) << "inside a node";
    EXPECT_GE(one.step.step_seconds(), found.best.front().step.step_seconds());
  }
}

TEST(Search, nothing_fits_on_too_few_gpus) {
  TestRun run("made--Llama-3.1-405B");
  const SearchResult found = search_layouts(run.steps, run.settings).value();
  EXPECT_TRUE(found.best.empty());
  EXPECT_GT(found.tried_total, 0u);
}

TEST(Step, attention_of_a_wide_run_is_as_wide) {
  for (const AttentionKernel kernel : {AttentionKernel::kFlash2, AttentionKernel::kFlash3, AttentionKernel::kStandard}) {
    TestRun run;
    run.settings.gpus = run.settings.layout.data = run.settings.global_batch = 1;
    run.settings.attention = kernel;
    double before = 0;
    for (const catalog::Precision precision : {catalog::Precision::kBf16, catalog::Precision::kTf32, catalog::Precision::kFp32}) {
      run.settings.precision = precision;
      for (const std::uint64_t tokens : {4096u, 131072u}) {
        run.settings.sequence_tokens = tokens;
        EXPECT_LE(run.step().mfu_ratio, 1) << catalog::precision_name(precision) << ", " << tokens;
      }
      EXPECT_GT(run.step().attention_seconds, 1.5 * before) << catalog::precision_name(precision);
      before = run.step().attention_seconds;
    }
    EXPECT_EQ(run.step().attainable_ofu_ratio, 0) << "FP32 runs on CUDA cores, attention as well";
  }
}

}  // namespace
}  // namespace flopsight::tuning
