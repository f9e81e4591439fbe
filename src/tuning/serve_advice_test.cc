#include "tuning/serving.h"

#include <gtest/gtest.h>

#include "tuning/formulas.h"
#include "tuning/test_cases.h"
#include "tuning/test_serve_run.h"

namespace flopsight::tuning {
namespace {

using test::find;
using test::rejected;
using test::ServeRun;

TEST(ServeAdvice, weights_in_fewer_bits_within_their_bound) {
  ServeRun run;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "quantize_weights");
  ASSERT_NE(a, nullptr);
  EXPECT_LT(*a->gain_ratio, 2.85) << "INT4 has 3.85 times less to read, not 4";
  EXPECT_EQ(a->price.find("99"), std::string::npos) << "no accuracy is promised";
  run.settings.weights = WeightFormat::kFp8;
  EXPECT_EQ(find(run.advice(), "quantize_weights"), nullptr);
}

TEST(ServeAdvice, of_one_token_nothing_is_decoded) {
  ServeRun run;
  run.settings.output_tokens = 1;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "quantize_weights");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->change.find("FP8"), std::string::npos) << "weights alone in fewer bits change no prefill";
  EXPECT_NE(a->why.find("products bound by arithmetic take"), std::string::npos) << a->why;
  for (const Advice& one : findings.advice) EXPECT_EQ(one.why.find("decoding is bound by"), std::string::npos) << one.why;
  run.settings.input_tokens = 16;
  EXPECT_EQ(find(run.advice(), "quantize_weights"), nullptr) << "only reading would gain";
}

TEST(ServeAdvice, a_narrower_cache_where_it_is_read_long) {
  ServeRun run;
  run.settings.concurrency = 128;
  EXPECT_NE(find(run.advice(), "kv_precision"), nullptr);
  run.settings.concurrency = 1;
  run.settings.input_tokens = 16;
  EXPECT_EQ(find(run.advice(), "kv_precision"), nullptr);
}

TEST(ServeAdvice, continuous_batching_only_with_lengths) {
  ServeRun run;
  run.settings.concurrency = 8;
  run.settings.continuous = false;
  EXPECT_NE(rejected(run.advice(), "continuous_batching"), nullptr) << "no constant 2.5 is assumed";
  run.settings.output_lengths = {{32, 0.7}, {128, 0.2}, {480, 0.1}};
  const Findings findings = run.advice();
  const Advice* a = find(findings, "continuous_batching");
  ASSERT_NE(a, nullptr);
  EXPECT_NEAR(*a->gain_ratio, padded_in_batch_ratio(run.settings.output_lengths, 8) - 1, 0.1) << "but for prompts, which a static batch takes together";
  run.settings.output_lengths = {{96, 1}};
  EXPECT_EQ(find(run.advice(), "continuous_batching"), nullptr) << "equal lengths gain nothing";
}

TEST(ServeAdvice, paging_where_memory_is_the_limit) {
  ServeRun run;
  run.settings.input_tokens = 452;
  run.settings.tokens_max = 8192;
  run.settings.block_tokens = 0;
  run.settings.concurrency = 512;
  EXPECT_NE(find(run.advice(), "paged_cache"), nullptr);
  run.settings.block_tokens = 16;
  EXPECT_EQ(find(run.advice(), "paged_cache"), nullptr);
}

TEST(ServeAdvice, no_speculation_where_it_loses) {
  ServeRun run;
  run.settings.concurrency = 200;
  run.settings.speculation = Speculation{5, 0.6, 0.2};
  EXPECT_NE(find(run.advice(), "no_speculation"), nullptr);
  run.settings.concurrency = 1;
  EXPECT_EQ(find(run.advice(), "no_speculation"), nullptr);
}

TEST(ServeAdvice, prefill_in_pieces_where_it_stops_others) {
  ServeRun run;
  run.settings.input_tokens = 16384;
  run.settings.concurrency = 16;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "chunked_prefill");
  ASSERT_NE(a, nullptr);
  EXPECT_NE(a->why.find("worst time between tokens"), std::string::npos);
  run.settings.concurrency = 1;
  EXPECT_EQ(find(run.advice(), "chunked_prefill"), nullptr) << "there is nobody to stop";
}

TEST(ServeAdvice, as_many_gpus_for_a_replica_as_it_takes) {
  ServeRun run;
  run.settings.gpus = run.settings.tensor = 8;
  run.settings.concurrency = 64;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "tensor_parallel");
  ASSERT_NE(a, nullptr);
  EXPECT_LT(*a->gain_ratio, 8);
  run.settings.tensor = 1;
  run.settings.concurrency = 1024;
  EXPECT_EQ(find(run.advice(), "tensor_parallel"), nullptr);
}

TEST(ServeAdvice, replicas_without_a_request_are_better_part_of_one_that_has) {
  ServeRun run;
  run.settings.gpus = 8;
  const Findings findings = run.advice();
  const Advice* a = find(findings, "tensor_parallel");
  ASSERT_NE(a, nullptr);
  EXPECT_GT(*a->gain_ratio, 1);
  EXPECT_NE(a->why.find("7 of 8 replicas have no request"), std::string::npos) << a->why;
}

TEST(ServeAdvice, experts_over_gpus) {
  ServeRun run("Qwen--Qwen3-30B-A3B");
  run.settings.gpus = 8;
  run.settings.concurrency = 512;
  EXPECT_NE(find(run.advice(), "expert_parallel"), nullptr);
  run.settings.expert = 8;
  EXPECT_EQ(find(run.advice(), "expert_parallel"), nullptr);
}

TEST(ServeAdvice, tokens_once_to_a_node_where_experts_lie_on_several) {
  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.gpus = run.settings.expert = 32;
  run.settings.weights = WeightFormat::kFp8;
  run.settings.concurrency = 4096;
  const Findings findings = run.advice();
  ASSERT_NE(find(findings, "expert_dispatch"), nullptr);
  EXPECT_GT(*find(findings, "expert_dispatch")->gain_ratio, 0.02);
  run.settings.dispatch = Dispatch::kOnce;
  EXPECT_EQ(find(run.advice(), "expert_dispatch"), nullptr);
  ServeRun dense;
  EXPECT_EQ(find(dense.advice(), "expert_dispatch"), nullptr) << "nothing is sent to experts";
}

TEST(ServeAdvice, more_requests_while_there_is_room) {
  ServeRun run;
  EXPECT_NE(find(run.advice(), "concurrency"), nullptr);
  run.settings.concurrency = 200;
  EXPECT_EQ(find(run.advice(), "concurrency"), nullptr) << "the cache is full";
}

TEST(ServeAdvice, graphs_where_launches_are_slower_than_kernels) {
  ServeRun run("made--Qwen3-0.6B");
  run.settings.graphs = false;
  EXPECT_NE(find(run.advice(), "cuda_graphs"), nullptr);
  run.settings.graphs = true;
  EXPECT_EQ(find(run.advice(), "cuda_graphs"), nullptr);
}

}  // namespace
}  // namespace flopsight::tuning
