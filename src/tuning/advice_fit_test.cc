// What is said of a run that does not fit into memory.
#include <gtest/gtest.h>

#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using test::find;
using test::rejected;
using test::TestRun;

// Where one change is enough, it is that; its rate is told, and no gain over a run that there cannot be.
TEST(Fit, what_does_not_fit_has_no_speed_to_gain_over) {
  TestRun run;
  run.settings.micro_batch = 4;
  ASSERT_EQ(run.memory().fits(), false);
  const Findings findings = run.advice();
  const Advice* a = find(findings, "recompute");
  ASSERT_NE(a, nullptr);
  EXPECT_FALSE(a->gain_ratio.has_value());
  EXPECT_TRUE(a->makes_it_fit);
  EXPECT_GT(*a->tokens_per_second, 0);
  EXPECT_EQ(find(findings, "fit"), nullptr) << "one change is enough";
  for (const Advice& other : findings.advice) EXPECT_FALSE(other.gain_ratio.has_value()) << other.id;
}

TEST(Fit, nor_do_rules_that_know_their_gain_have_one_over_it) {
  TestRun run;
  run.settings.micro_batch = 4;
  TrainCase one = run.training();
  one.lengths = {{512, 3}, {4096, 1}};
  const Findings findings = advise_training(run.steps, one);
  ASSERT_NE(find(findings, "packing"), nullptr);
  EXPECT_FALSE(find(findings, "packing")->gain_ratio.has_value());
  EXPECT_FALSE(find(findings, "packing")->makes_it_fit);
}

TEST(Fit, several_changes_at_once_where_none_is_enough_alone) {
  TestRun run("made--Llama-3-8B", "H100-SXM5-80GB", "single-gpu");
  run.settings.gpus = run.settings.layout.data = 1;
  ASSERT_EQ(run.memory().fits(), false);
  const Findings findings = run.advice();
  const Advice* a = find(findings, "fit");
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->makes_it_fit);
  EXPECT_NE(a->change.find("recompute full"), std::string::npos) << a->change;
  EXPECT_NE(a->change.find("--optimizer adam8bit, --no-master-weights"), std::string::npos) << a->change;
  EXPECT_NE(a->price.find("convergence"), std::string::npos);
  EXPECT_EQ(rejected(findings, "fit"), nullptr);
  TestRun fitting;
  EXPECT_EQ(find(fitting.advice(), "fit"), nullptr);
}

TEST(Fit, what_cannot_be_made_to_fit_is_told_with_what_would_hold_it) {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = run.settings.layout.data = 2;
  const Findings findings = run.advice();
  EXPECT_EQ(find(findings, "fit"), nullptr);
  const Rejected* r = rejected(findings, "fit");
  ASSERT_NE(r, nullptr);
  EXPECT_NE(r->why.find("a GPU still needs "), std::string::npos) << r->why;
  EXPECT_NE(r->why.find("32 such GPUs would hold it"), std::string::npos) << r->why;
  TestRun fitting;
  EXPECT_EQ(rejected(fitting.advice(), "fit"), nullptr);
}

TEST(Fit, a_job_that_was_measured_did_fit_whatever_is_predicted_of_its_memory) {
  TestRun run;
  run.settings.micro_batch = 4;
  TrainCase one = run.training();
  ASSERT_EQ(one.memory.fits(), false);
  one.measured = Measured{};
  one.measured->ofu_ratio = 0.4;
  const Findings findings = advise_training(run.steps, one);
  const Advice* a = find(findings, "io_aware_attention");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 0);
  EXPECT_EQ(rejected(findings, "fit"), nullptr);
  for (const Advice& advice : findings.advice) EXPECT_FALSE(advice.makes_it_fit) << advice.id;
}

TEST(Attention, scores_in_memory_are_a_part_of_what_bounds_the_gain) {
  TestRun run("made--Llama-3-8B", "A100-SXM4-80GB", "dgx-a100");
  run.settings.attention = AttentionKernel::kStandard;
  run.settings.recompute = flops::Recompute::kSelective;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "io_aware_attention");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->why.find("and writing and reading its scores "), std::string::npos) << a->why;
  const Step now = run.step();
  run.settings.attention = AttentionKernel::kFlash2;
  const double share = (now.attention_seconds + now.elementwise_seconds - run.step().elementwise_seconds) / now.step_seconds();
  EXPECT_LT(1 - 1 / (1 + *a->gain_ratio), share);
}

TEST(Attention, workstation_gpus_are_not_told_to_use_hoppers_kernels) {
  TestRun run("made--Llama-3-8B", "RTX PRO 6000 Blackwell WS", "pcie-gen5");
  EXPECT_EQ(find(run.advice(), "io_aware_attention"), nullptr) << "the second generation is what there is";
  TestRun data_centre("made--Llama-3-8B", "B200-SXM", "dgx-b200");
  EXPECT_NE(find(data_centre.advice(), "io_aware_attention"), nullptr);
}

TEST(Layout, what_rules_of_their_own_say_is_no_layout) {
  TestRun run("made--T5-small", "A100-SXM4-40GB", "dgx-a100");
  run.settings.gpus = run.settings.layout.data = 2;
  run.settings.sequence_tokens = 512;
  run.settings.global_batch = 128;
  const Findings findings = run.advice();
  EXPECT_NE(find(findings, "micro_batch"), nullptr);
  EXPECT_EQ(find(findings, "layout"), nullptr) << "only the micro-batch would be another";
}

}  // namespace
}  // namespace flopsight::tuning
