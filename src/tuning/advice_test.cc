// Each rule where it must fire, and where it must not.
#include "tuning/advice.h"

#include <gtest/gtest.h>

#include "tuning/formulas.h"
#include "tuning/search.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using test::find;
using test::rejected;
using test::TestRun;

// A run that leaves little to advise: the quickest layout of the search, with all that the rules know of.
TestRun tuned() {
  TestRun run;
  run.settings.attention = AttentionKernel::kFlash3;
  run.settings.precision = Precision::kFp8;
  run.settings.overlap_tensor = true;
  run.settings = search_layouts(run.steps, run.settings).value().best.front().settings;
  return run;
}

TEST(Advice, a_tuned_run_gets_none) {
  TestRun run = tuned();
  const Findings findings = run.advice();
  for (const Advice& a : findings.advice) ADD_FAILURE() << a.id << ": " << a.change;
}

TEST(Advice, micro_batch_larger_where_products_are_small) {
  TestRun run("made--Qwen3-0.6B");
  run.settings.sequence_tokens = 256;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "micro_batch");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.05);
  TestRun full;
  EXPECT_EQ(find(full.advice(), "micro_batch"), nullptr) << "two sequences do not fit";
}

TEST(Advice, no_recomputation_where_the_memory_is_there) {
  TestRun run;
  run.settings.recompute = flops::Recompute::kFull;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "recompute");
  ASSERT_NE(a, nullptr);
  EXPECT_NEAR(*a->gain_ratio, 0.30, 0.05);
  EXPECT_EQ(a->confidence, Confidence::kHigh);
  const std::string takes = "running blocks forward again takes ";
  ASSERT_EQ(a->why.find(takes), 0u) << a->why;
  const double ratio = std::stod(a->why.substr(takes.size())) / 100;
  EXPECT_NEAR(1 / (1 - ratio) - 1, *a->gain_ratio, 0.002) << "what goes away is what is gained";
  run.settings.recompute = flops::Recompute::kNone;
  EXPECT_EQ(find(run.advice(), "recompute"), nullptr);
}

TEST(Advice, recomputation_where_nothing_else_makes_the_run_fit) {
  TestRun run;
  run.settings.micro_batch = 4;
  ASSERT_EQ(run.memory().fits(), false);
  const Findings findings = run.advice();
  const Advice* a = find(findings, "recompute");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->change, "recomputing whole blocks instead of keeping all activations (--recompute full)");
  EXPECT_TRUE(a->makes_it_fit);
  EXPECT_NE(a->why.find("does not fit"), std::string::npos);
}

TEST(Advice, fp8_within_its_bound) {
  TestRun run;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "precision");
  ASSERT_NE(a, nullptr);
  const Step step = run.step();
  const double bound = amdahl_ratio(step.products_linear_seconds / step.step_seconds(), 1978.9 * 0.709 / (989.4 * 0.803));
  EXPECT_LT(1 + *a->gain_ratio, bound) << "casts cost";
  EXPECT_GT(*a->gain_ratio, 0.15);
  EXPECT_LT(*a->gain_ratio, 0.45) << "1.28 was measured; twice never is";
  EXPECT_FALSE(a->price.empty()) << "accuracy is named as a price";
  TestRun ampere("made--Llama-3-8B", "A100-SXM4-80GB", "dgx-a100");
  EXPECT_EQ(find(ampere.advice(), "precision"), nullptr) << "the GPU has no FP8";
}

TEST(Advice, sixteen_bits_instead_of_fp32) {
  TestRun run;
  run.settings.precision = Precision::kTf32;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "precision");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->price.find("no loss scaling"), std::string::npos);
}

TEST(Advice, fused_kernels_where_they_run_one_by_one) {
  TestRun run;
  run.settings.kernels = Kernels::kEager;
  run.settings.recompute = flops::Recompute::kFull;  // it would not fit otherwise
  const Findings findings = run.advice();
  const Advice* a = find(findings, "fused_kernels");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.03);
  EXPECT_LT(*a->gain_ratio, 0.30);
  run.settings.kernels = Kernels::kFused;
  EXPECT_EQ(find(run.advice(), "fused_kernels"), nullptr);
}

TEST(Advice, io_aware_attention_bounded_by_its_share) {
  TestRun run("made--Llama-3-8B", "A100-SXM4-80GB", "dgx-a100");
  run.settings.attention = AttentionKernel::kStandard;
  run.settings.recompute = flops::Recompute::kSelective;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "io_aware_attention");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.1);
  TestRun hopper;
  const Findings second = hopper.advice();
  a = find(second, "io_aware_attention");
  ASSERT_NE(a, nullptr);
  const Step step = hopper.step();
  EXPECT_LT(1 + *a->gain_ratio, 1 / (1 - step.attention_seconds / step.step_seconds()));
  run.settings.attention = AttentionKernel::kFlash2;
  EXPECT_EQ(find(run.advice(), "io_aware_attention"), nullptr) << "an A100 has nothing newer";
}

TEST(Advice, optimizer_state_divided) {
  TestRun run;
  run.settings.zero_stage = 0;
  run.settings.recompute = flops::Recompute::kFull;
  const Findings none = run.advice();
  EXPECT_NE(find(none, "shard_optimizer"), nullptr);
  run.settings.zero_stage = 1;
  EXPECT_EQ(find(run.advice(), "shard_optimizer"), nullptr);
}

TEST(Advice, narrower_moments_only_where_their_memory_is_needed) {
  TestRun run;
  run.settings.gpus = run.settings.layout.data = 2;
  run.settings.recompute = flops::Recompute::kFull;
  ASSERT_EQ(run.memory().fits(), false);
  const Findings findings = run.advice();
  const Advice* a = find(findings, "optimizer_precision");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->confidence, Confidence::kLow);
  TestRun roomy;
  EXPECT_EQ(find(roomy.advice(), "optimizer_precision"), nullptr);
}

TEST(Advice, gradients_in_bf16) {
  TestRun run;
  run.settings.fp32_gradients = true;
  run.settings.overlap_data = false;
  run.settings.global_batch = 8;
  run.settings.sequence_tokens = 2048;
  EXPECT_NE(find(run.advice(), "gradient_precision"), nullptr);
  run.settings.fp32_gradients = false;
  EXPECT_EQ(find(run.advice(), "gradient_precision"), nullptr);
}

TEST(Advice, overlap_of_each_kind) {
  TestRun run;
  run.settings.overlap_data = false;
  run.settings.global_batch = 8;
  run.settings.sequence_tokens = 2048;
  EXPECT_NE(find(run.advice(), "overlap_data_parallel"), nullptr);
  run.settings.overlap_data = true;
  EXPECT_EQ(find(run.advice(), "overlap_data_parallel"), nullptr);
  TestRun tensor("made--Llama-3-70B");
  tensor.settings.gpus = 64;
  tensor.settings.layout = {8, 1, 1, 1, 1, 8};
  const Findings findings = tensor.advice();
  const Advice* a = find(findings, "overlap_tensor_parallel");
  ASSERT_NE(a, nullptr);
  EXPECT_LT(*a->gain_ratio, 0.25);
  EXPECT_EQ(find(run.advice(), "overlap_tensor_parallel"), nullptr) << "there is no tensor parallelism";
  TestRun experts("mistralai--Mixtral-8x7B-v0.1");
  experts.settings.gpus = experts.settings.layout.data = 64;
  experts.settings.layout.expert = 8;
  experts.settings.global_batch = 1024;
  experts.settings.sequence_tokens = 2048;
  EXPECT_NE(find(experts.advice(), "overlap_expert_parallel"), nullptr);
  experts.settings.overlap_expert = true;
  EXPECT_EQ(find(experts.advice(), "overlap_expert_parallel"), nullptr);
}

TEST(Advice, tokens_once_to_a_node_where_experts_lie_on_several) {
  TestRun run("Qwen--Qwen3-30B-A3B");
  run.settings.gpus = run.settings.layout.data = 64;
  run.settings.layout.expert = 32;
  run.settings.global_batch = 1024;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "expert_dispatch");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.1);
  EXPECT_LT(*a->gain_ratio, run.step().breakdown.expert_parallel_seconds / run.step().step_seconds() / (1 - run.step().breakdown.expert_parallel_seconds / run.step().step_seconds()));
  run.settings.dispatch = Dispatch::kOnce;
  EXPECT_EQ(find(run.advice(), "expert_dispatch"), nullptr);
  run.settings.dispatch = Dispatch::kAllToAll;
  run.settings.layout.expert = 1;
  EXPECT_EQ(find(run.advice(), "expert_dispatch"), nullptr) << "nothing is sent";
}

TEST(Advice, sequence_parallelism_beside_tensor_parallelism) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.layout = {8, 8, 1, 1, 1, 1};
  run.settings.recompute = flops::Recompute::kFull;
  run.settings.sequence_parallel = false;
  EXPECT_NE(find(run.advice(), "sequence_parallel"), nullptr);
  run.settings.sequence_parallel = true;
  EXPECT_EQ(find(run.advice(), "sequence_parallel"), nullptr);
}

TEST(Advice, an_odd_vocabulary_is_padded) {
  TestRun run("made--GPT-2");
  run.settings.sequence_tokens = 1024;
  run.settings.micro_batch = 8;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "alignment");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->change, "vocabulary 50257 padded to 50304");
  EXPECT_NE(a->why.find("By tiles and waves alone nothing is gained"), std::string::npos);
  TestRun aligned;
  EXPECT_EQ(find(aligned.advice(), "alignment"), nullptr);
}

TEST(Advice, accumulation_where_much_is_done_once_a_step) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.layout = {8, 8, 1, 1, 1, 1};
  run.settings.global_batch = 8;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "gradient_accumulation");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.2) << "half of the bubble";
  run.settings.global_batch = 256;
  EXPECT_EQ(find(run.advice(), "gradient_accumulation"), nullptr);
}

TEST(Advice, a_better_layout_that_fits) {
  TestRun run("made--Llama-3-8B");
  run.settings.layout = {8, 1, 1, 1, 1, 1};
  const Findings findings = run.advice();
  const Advice* a = find(findings, "layout");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.03);
  EXPECT_EQ(find(tuned().advice(), "layout"), nullptr);
}

TEST(Advice, tensor_parallelism_stays_inside_a_node) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.layout = {16, 1, 1, 1, 1, 4};
  run.fabric.node_gpus = 8;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "placement");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0.2);
  run.settings.layout = {8, 1, 1, 1, 1, 8};
  EXPECT_EQ(find(run.advice(), "placement"), nullptr);
}

TEST(Advice, a_forced_algorithm_that_is_slower) {
  TestRun run;
  run.settings.global_batch = 8;
  run.settings.sequence_tokens = 1024;
  run.settings.overlap_data = false;
  run.settings.zero_stage = 0;
  TrainCase one = run.training();
  one.environment = {"NCCL_ALGO=Tree"};
  EXPECT_NE(find(advise_training(run.steps, one), "collective_algorithm"), nullptr);
  one.environment = {};
  EXPECT_EQ(find(advise_training(run.steps, one), "collective_algorithm"), nullptr);
  for (const int stage : {1, 2, 3}) {
    run.settings.zero_stage = stage;
    one = run.training();
    one.environment = {"NCCL_ALGO=Tree"};
    const Findings findings = advise_training(run.steps, one);
    EXPECT_EQ(find(findings, "collective_algorithm"), nullptr) << "nothing is all-reduced with ZeRO " << stage;
    EXPECT_NE(rejected(findings, "collective_algorithm"), nullptr);
  }
}

TEST(Advice, compression_only_on_slow_links_and_with_its_price) {
  TestRun run("made--GPT-2", "A100-SXM4-80GB", "aws-p4d");
  run.settings.gpus = 64;
  run.settings.layout.data = 64;
  run.settings.sequence_tokens = 256;
  run.settings.zero_stage = 0;
  run.settings.overlap_data = false;
  run.fabric.network_rate = units::BytesPerSecond(0.5e9);
  Findings findings = run.advice();
  const Advice* a = find(findings, "gradient_compression");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->price.find("accuracy"), std::string::npos);
  run.fabric.network_rate = units::BytesPerSecond(50e9);
  run.settings.sequence_tokens = 32;
  findings = run.advice();
  EXPECT_EQ(find(findings, "gradient_compression"), nullptr);
  ASSERT_NE(rejected(findings, "gradient_compression"), nullptr);
  run.fabric.network_rate = units::BytesPerSecond(0.5e9);
  run.settings.zero_stage = 3;
  findings = run.advice();
  ASSERT_NE(rejected(findings, "gradient_compression"), nullptr);
  EXPECT_NE(rejected(findings, "gradient_compression")->why.find("reduce-scattered"), std::string::npos);
}

TEST(Advice, packing_from_lengths) {
  TestRun run;
  TrainCase one = run.training();
  one.lengths = {{256, .25}, {512, .25}, {1024, .25}, {2048, .15}, {4096, .10}};
  const Findings findings = advise_training(run.steps, one);
  const Advice* a = find(findings, "packing");
  ASSERT_NE(a, nullptr);
  EXPECT_NEAR(*a->gain_ratio, 4096.0 / 1164.8 - 1, 0.2);
  one.lengths = {{4096, 1}};
  EXPECT_EQ(find(advise_training(run.steps, one), "packing"), nullptr) << "all are as long as a sequence";
  one.lengths = {};
  EXPECT_EQ(find(advise_training(run.steps, one), "packing"), nullptr) << "nothing is known of lengths";
}

TEST(Advice, checkpoint_interval_of_young_and_daly) {
  TestRun run;
  TrainCase one = run.training();
  one.checkpoint_seconds = 60;
  one.failure_seconds = 3.09 * 3600;
  one.restart_seconds = 600;
  one.checkpoint_interval_seconds = 7200;
  const Findings findings = advise_training(run.steps, one);
  const Advice* a = find(findings, "checkpoint_interval");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->change, "a checkpoint every 1116 s instead of 7200 s");
  one.checkpoint_interval_seconds = 2.5 * 3.09 * 3600;
  const Findings far = advise_training(run.steps, one);
  ASSERT_NE(find(far, "checkpoint_interval"), nullptr) << "more than two failures in one interval";
  EXPECT_NEAR(*find(far, "checkpoint_interval")->gain_ratio, 3.06, 0.05);
  one.checkpoint_interval_seconds = 1e12;
  const Findings never = advise_training(run.steps, one);
  ASSERT_NE(find(never, "checkpoint_interval"), nullptr);
  EXPECT_FALSE(find(never, "checkpoint_interval")->gain_ratio.has_value()) << "nothing is ever done: there is no ratio to it";
  one.checkpoint_interval_seconds = 1200;
  EXPECT_EQ(find(advise_training(run.steps, one), "checkpoint_interval"), nullptr) << "the optimum is flat";
  one.checkpoint_interval_seconds.reset();
  EXPECT_EQ(find(advise_training(run.steps, one), "checkpoint_interval"), nullptr);
}

TEST(Advice, debug_flags_left_on) {
  TestRun run;
  TrainCase one = run.training();
  one.environment = {"TORCH_DISTRIBUTED_DEBUG=DETAIL", "CUDA_LAUNCH_BLOCKING=1", "NCCL_P2P_DISABLE=0", "TORCH_DISTRIBUTED_DEBUG=OFF", "PATH=/bin"};
  const Findings findings = advise_training(run.steps, one);
  ASSERT_GE(findings.advice.size(), 2u);
  EXPECT_EQ(findings.advice[0].id, "debug_flag");
  EXPECT_EQ(findings.advice[0].change, "TORCH_DISTRIBUTED_DEBUG not set to DETAIL");
  EXPECT_FALSE(findings.advice[0].gain_ratio.has_value()) << "no figure is invented";
  EXPECT_EQ(findings.advice[1].change, "CUDA_LAUNCH_BLOCKING not set to 1");
  EXPECT_EQ(std::count_if(findings.advice.begin(), findings.advice.end(), [](const Advice& a) { return a.id == "debug_flag"; }), 2);
}

TEST(Advice, flags_in_small_letters_and_without_traffic) {
  TestRun run;
  TrainCase one = run.training();
  one.environment = {"TORCH_DISTRIBUTED_DEBUG=detail", "NCCL_DEBUG=info", "NCCL_IB_DISABLE=1", "CUDA_LAUNCH_BLOCKING=FALSE"};
  Findings findings = advise_training(run.steps, one);
  EXPECT_EQ(find(findings, "debug_flag")->change, "TORCH_DISTRIBUTED_DEBUG not set to detail");
  EXPECT_EQ(std::count_if(findings.advice.begin(), findings.advice.end(), [](const Advice& a) { return a.id == "debug_flag"; }), 2);
  ASSERT_NE(rejected(findings, "debug_flag"), nullptr) << "eight GPUs in a node";
  EXPECT_NE(rejected(findings, "debug_flag")->why.find("one node"), std::string::npos);
  run.settings.gpus = run.settings.layout.data = 16;
  one = run.training();
  one.environment = {"NCCL_IB_DISABLE=1", "NCCL_P2P_DISABLE=1"};
  findings = advise_training(run.steps, one);
  EXPECT_EQ(std::count_if(findings.advice.begin(), findings.advice.end(), [](const Advice& a) { return a.id == "debug_flag"; }), 2);
  run.settings.gpus = run.settings.layout.data = 1;
  one = run.training();
  one.environment = {"NCCL_P2P_DISABLE=1"};
  findings = advise_training(run.steps, one);
  EXPECT_EQ(find(findings, "debug_flag"), nullptr);
  EXPECT_NE(rejected(findings, "debug_flag"), nullptr) << "one GPU has nobody to talk to";
}

TEST(Advice, power_only_where_the_clock_was_measured_to_cost) {
  TestRun run;
  TrainCase one = run.training();
  EXPECT_EQ(find(advise_training(run.steps, one), "power_and_clock"), nullptr);
  one.measured = Measured{};
  one.measured->ofu_ratio = 0.40;
  one.measured->clock_loss_ratio = 0.06;
  EXPECT_NE(find(advise_training(run.steps, one), "power_and_clock"), nullptr);
  one.measured->clock_loss_ratio = 0.005;
  EXPECT_EQ(find(advise_training(run.steps, one), "power_and_clock"), nullptr);
}

TEST(Advice, input_where_idle_time_has_no_explanation) {
  TestRun run;
  TrainCase one = run.training();
  one.measured = Measured{};
  one.measured->sm_idle_ratio = 0.45;
  EXPECT_NE(find(advise_training(run.steps, one), "input_or_host"), nullptr);
  one.measured->sm_idle_ratio = 0.05;
  EXPECT_EQ(find(advise_training(run.steps, one), "input_or_host"), nullptr);
}

TEST(Advice, what_the_counters_contradict_is_rejected_with_the_reason) {
  TestRun run;
  run.settings.kernels = Kernels::kEager;
  run.settings.recompute = flops::Recompute::kFull;
  TrainCase one = run.training();
  one.measured = Measured{};
  one.measured->tensor_active_ratio = 0.85;
  one.measured->tensor_idle_sm_busy_ratio = 0.02;
  one.measured->sm_idle_ratio = 0.03;
  const Findings findings = advise_training(run.steps, one);
  EXPECT_EQ(find(findings, "fused_kernels"), nullptr);
  ASSERT_NE(rejected(findings, "fused_kernels"), nullptr);
  EXPECT_NE(rejected(findings, "fused_kernels")->why.find("SMs are busy without tensor pipes 2.0 % of the time"), std::string::npos) << rejected(findings, "fused_kernels")->why;
  EXPECT_NE(find(findings, "recompute"), nullptr) << "that time is in tensor pipes, as the counters say";
  one.measured->tensor_idle_sm_busy_ratio = 0.3;
  EXPECT_NE(find(advise_training(run.steps, one), "fused_kernels"), nullptr);
}

TEST(Advice, money_only_with_a_price) {
  TestRun run;
  TrainCase one = run.training();
  EXPECT_FALSE(find(advise_training(run.steps, one), "precision")->usd_saved_per_day.has_value());
  one.usd_per_gpu_hour = 2;
  const Findings findings = advise_training(run.steps, one);
  const Advice* a = find(findings, "precision");
  EXPECT_NEAR(*a->usd_saved_per_day, 2 * 8 * 24 * (1 - 1 / (1 + *a->gain_ratio)), 1e-9);
}

TEST(Attention, is_advised_first_where_the_scores_are_what_does_not_fit) {
  TestRun run("made--Llama-3-70B");
  run.settings.sequence_tokens = 65536;
  run.settings.global_batch = 8;
  run.settings.attention = AttentionKernel::kStandard;
  run.settings.recompute = flops::Recompute::kFull;
  ASSERT_EQ(run.memory().fits(), false);
  const Findings findings = run.advice();
  const Advice* a = find(findings, "io_aware_attention");
  ASSERT_NE(a, nullptr) << "quicker, and a part of the way";
  EXPECT_NE(a->why.find("with this alone it still does not"), std::string::npos) << a->why;
  TestRun small("made--Llama-3-8B");
  small.settings.sequence_tokens = 65536;
  small.settings.global_batch = 8;
  small.settings.attention = AttentionKernel::kStandard;
  ASSERT_EQ(small.memory().fits(), false);
  ASSERT_FALSE(small.advice().advice.empty());
  EXPECT_EQ(small.advice().advice.front().id, "io_aware_attention") << "its scores are most of the memory";
}

TEST(Precision, what_the_bubble_gains_is_said_beside_what_linear_layers_do) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.global_batch = 32;
  run.settings.layout = {8, 8, 1, 1, 1, 1};
  run.settings.recompute = flops::Recompute::kFull;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "precision");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->why.find("the pipeline's bubble, "), std::string::npos) << a->why;
  TestRun alone;
  const Findings without = alone.advice();
  ASSERT_NE(find(without, "precision"), nullptr);
  EXPECT_EQ(find(without, "precision")->why.find("bubble"), std::string::npos);
}

TEST(Packing, longer_documents_are_cut_and_never_make_padding_negative) {
  TestRun run;
  TrainCase one = run.training();
  one.lengths = {{200, 50}, {100000, 50}};
  const Findings findings = advise_training(run.steps, one);
  const Advice* a = find(findings, "packing");
  ASSERT_NE(a, nullptr);
  EXPECT_NEAR(*a->gain_ratio, 2 * 4096 / (200 + 4096.0) - 1, 0.05) << "half of the sequences are full, half have 200 tokens";
  EXPECT_NE(a->why.find("50.0 % of the documents are longer, and counted as cut"), std::string::npos) << a->why;
  EXPECT_EQ(a->why.find(" -"), std::string::npos) << a->why;
  one.lengths = {{5000, 10}, {9000, 3}};
  const Findings longer = advise_training(run.steps, one);
  EXPECT_EQ(find(longer, "packing"), nullptr);
  ASSERT_NE(rejected(longer, "packing"), nullptr);
  EXPECT_NE(rejected(longer, "packing")->why.find("longer than --seq-len 4096"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::tuning
