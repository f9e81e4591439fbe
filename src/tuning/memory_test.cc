#include "tuning/memory.h"

#include <gtest/gtest.h>

#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using test::TestRun;

TEST(StateBytes, of_the_recipes_in_use) {
  TrainSettings s;
  EXPECT_EQ(state_bytes(s).total_bytes(), 16);  // BF16 with FP32 master copy and moments
  s.fp32_gradients = true;
  EXPECT_EQ(state_bytes(s).total_bytes(), 18);
  s = {};
  s.precision = Precision::kFp32;
  EXPECT_EQ(state_bytes(s).total_bytes(), 16) << "mixed precision does not shrink model states";
  s = {};
  s.optimizer = Optimizer::kAdam8Bit;
  EXPECT_EQ(state_bytes(s).total_bytes(), 10);
  s = {};
  s.optimizer = Optimizer::kAdamBf16;
  s.fp32_master = false;
  EXPECT_EQ(state_bytes(s).total_bytes(), 8);
  s = {};
  s.precision = Precision::kFp8;
  s.narrow_weights = true;
  s.optimizer = Optimizer::kAdamBf16;
  EXPECT_EQ(state_bytes(s).total_bytes(), 11);
}

TEST(Memory, model_states_of_70b_are_1129_gigabytes) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = run.settings.layout.data = 1;
  run.settings.global_batch = 1;
  const Memory memory = run.memory();
  EXPECT_NEAR((memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes) / 1e9, 1129, 1);
  EXPECT_EQ(memory.fits(), false);
  EXPECT_NE(memory.over().find("80.0 GiB are there"), std::string::npos) << memory.over();
}

TEST(Memory, zero_divides_stage_by_stage) {
  TestRun run;
  run.settings.zero_stage = 0;
  const Memory whole = run.memory();
  run.settings.zero_stage = 1;
  EXPECT_DOUBLE_EQ(run.memory().optimizer_bytes, whole.optimizer_bytes / 8);
  EXPECT_DOUBLE_EQ(run.memory().gradients_bytes, whole.gradients_bytes);
  run.settings.zero_stage = 2;
  EXPECT_DOUBLE_EQ(run.memory().gradients_bytes, whole.gradients_bytes / 8);
  EXPECT_DOUBLE_EQ(run.memory().weights_bytes, whole.weights_bytes);
  run.settings.zero_stage = 3;
  EXPECT_GT(run.memory().weights_bytes, whole.weights_bytes / 8) << "two blocks are there in full";
  EXPECT_LT(run.memory().weights_bytes, whole.weights_bytes / 8 * 1.6);
}

// Korthikanti et al. 2022 (arXiv 2205.05198), GPT-3 175B, s 2048, b 1: 2.87 GB a layer, tensor 8: 10.3 GB with all layers, divided sequences and no
// scores. Theirs has 2 s b h more for masks of dropout: 34 against 32.
TEST(Memory, activations_of_gpt3_are_the_published_ones_without_dropout_masks) {
  const flops::Model model = test::model_of("made--GPT-3-175B");
  TrainSettings s;
  s.sequence_tokens = 2048;
  const auto layers_bytes = [&] {
    double sum = 0;
    for (const flops::Layer& layer : model.layers) {
      if (layer.attention || layer.kind == flops::LayerKind::kMlp) sum += static_cast<double>(layer.executed) * activation_bytes_per_token(model, layer, s) * 2048;
    }
    return sum;
  };
  const double sbh = 2048.0 * 12288;
  s.attention = AttentionKernel::kStandard;
  EXPECT_NEAR(layers_bytes() / 96, 2.87e9 - 2 * sbh, 0.01e9);
  s.layout.tensor = 8;
  EXPECT_NEAR(layers_bytes(), 34.4e9 - 96 * 2 * sbh / 8, 0.4e9);
  s.attention = AttentionKernel::kFlash2;
  EXPECT_NEAR(layers_bytes(), 10.3e9 * 32 / 34, 0.1e9);
  s.sequence_parallel = false;
  EXPECT_NEAR(layers_bytes(), 96 * sbh * (8 + 24.0 / 8), 0.1e9);
}

TEST(Memory, activations_of_llama_8b_at_8k_are_36_gigabytes) {
  TestRun run;
  run.settings.kernels = Kernels::kFused;
  double sum = 0;
  for (const flops::Layer& layer : run.model.layers) {
    if (layer.attention || layer.kind == flops::LayerKind::kMlp) sum += static_cast<double>(layer.executed) * activation_bytes_per_token(run.model, layer, run.settings) * 8192;
  }
  EXPECT_NEAR(sum / 1e9, 36.5, 0.5);
}

TEST(Memory, full_recomputation_keeps_an_input_a_block_and_one_block) {
  TestRun run;
  const double kept = run.memory().activations_bytes;
  run.settings.recompute = flops::Recompute::kFull;
  const double logits = 6.0 * 128256 * 4096;
  EXPECT_NEAR(run.memory().activations_bytes, 32.0 * 2 * 4096 * 4096 + (kept - logits) / 32 + logits, 1e6);
}

// One layer's scores are there while it goes backward, however little is kept of the others.
TEST(Memory, recomputation_does_not_make_the_scores_of_standard_attention_go_away) {
  TestRun run;
  run.settings.sequence_tokens = 65536;
  run.settings.global_batch = 8;
  const double scores = 32.0 * 65536 * 65536;  // elements, of one layer
  for (const flops::Recompute level : {flops::Recompute::kSelective, flops::Recompute::kFull}) {
    run.settings.recompute = level;
    run.settings.attention = AttentionKernel::kFlash2;
    const double flash = run.memory().activations_bytes;
    run.settings.attention = AttentionKernel::kStandard;
    EXPECT_NEAR(run.memory().activations_bytes - flash, 9 * scores, 1e6);
    EXPECT_EQ(run.memory().fits(), false);
  }
  run.settings.recompute = flops::Recompute::kNone;
  run.settings.attention = AttentionKernel::kFlash2;
  const double flash = run.memory().activations_bytes;
  run.settings.attention = AttentionKernel::kStandard;
  EXPECT_NEAR(run.memory().activations_bytes - flash, (32 * 5 + 4) * scores, 1e6);
}

// Llama 3 405B as it was pre-trained (arXiv 2407.21783, 3.3.2 and table 4): 16,384 H100, 8k tokens, no recomputation, 126 blocks in 16 x 8 parts, of
// which first and last are one block short; gradients in FP32, divided with the optimizer's state.
TEST(Memory, llama_405b_fits_as_it_was_trained) {
  TestRun run("made--Llama-3.1-405B");
  run.settings.gpus = 16384;
  run.settings.sequence_tokens = 8192;
  run.settings.global_batch = 2048;
  run.settings.layout = {8, 16, 8, 1, 1, 128};
  run.settings.zero_stage = 2;
  run.settings.fp32_gradients = true;
  EXPECT_EQ(run.memory().fits(), true) << run.memory().over();
  EXPECT_GT(run.memory().activations_bytes / 1e9, 50) << "of up to 16 micro-batches";
  EXPECT_GT(run.step().mfu_ratio, 0.3);
  const StageRatios ratios = stage_ratios(126, run.settings.layout);
  EXPECT_DOUBLE_EQ(ratios.first_ratio * 126, 7);
  EXPECT_DOUBLE_EQ(ratios.last_ratio * 126, 7);
  EXPECT_DOUBLE_EQ(ratios.largest_ratio * 126, 8);
}

TEST(Memory, no_more_micro_batches_are_held_than_a_step_has) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 8;
  run.settings.layout = {1, 8, 2, 1, 1, 1};
  run.settings.global_batch = 64;
  const double many = run.memory().activations_bytes;
  run.settings.global_batch = 8;
  EXPECT_NEAR(run.memory().activations_bytes / many, 8 / (8 + 7.0 / 2), 1e-9) << "of 8, where interleaving would hold 11.5";
}

TEST(Memory, experts_are_divided_by_expert_parallelism) {
  TestRun run("mistralai--Mixtral-8x7B-v0.1");
  run.settings.layout.expert = 8;
  const StageParameters stage = stage_parameters(run.model, run.settings.layout);
  EXPECT_NEAR(stage.blocks.routed_total, 32.0 * 3 * 4096 * 14336, 1);
  EXPECT_EQ(stage.head.dense_total, 32000.0 * 4096 + 4096);
  run.settings.layout.pipeline = 2;
  EXPECT_NEAR(stage_parameters(run.model, run.settings.layout).blocks.routed_total, 16.0 * 3 * 4096 * 14336, 1);
}

TEST(Memory, whole_experts_on_tensor_parallel_gpus_take_what_divided_ones_do) {
  TestRun run("mistralai--Mixtral-8x7B-v0.1");
  run.settings.layout = {4, 1, 1, 1, 2, 2};
  const Memory divided = run.memory();
  run.settings.layout.expert = 8;
  run.settings.layout.expert_tensor = 1;
  EXPECT_EQ(run.settings.layout.expert_data(), 1u);
  EXPECT_NEAR(run.memory().weights_bytes, divided.weights_bytes, 1);
  EXPECT_NEAR(run.memory().optimizer_bytes, divided.optimizer_bytes, 1) << "one copy of the experts each";
}

TEST(Memory, the_first_stage_holds_as_many_micro_batches_as_there_are_stages) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 8;
  run.settings.layout.data = 1;
  run.settings.layout.pipeline = 8;
  run.settings.recompute = flops::Recompute::kFull;
  const double deep = run.memory().activations_bytes;
  run.settings.global_batch = run.settings.micro_batch = 1;
  EXPECT_GT(deep, 4 * 80.0 * 2 * 8192 * 4096 / 8);
  EXPECT_LT(run.memory().activations_bytes, deep) << "with one micro-batch there is one to hold";
}

}  // namespace
}  // namespace flopsight::tuning
