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

// Weights of 15.0 GB that are multiplied with and a cache of 131 kB a token, at 80 % of 3.35 TB/s.
TEST(Decode, llama_8b_on_an_h100_is_the_worked_roofline) {
  const ServeRun run;
  const struct {
    double batch, tokens_per_second;
  } kWorked[] = {{1, 164}, {8, 1178}, {32, 3479}, {64, 5160}, {128, 6804}};
  for (const auto& worked : kWorked) {
    // The worked figures read the table of input tokens as well: 7 % of the weights.
    const DecodeStep step = run.decode(worked.batch);
    EXPECT_NEAR(worked.batch / (step.total_seconds() - step.host_seconds) / worked.tokens_per_second, 1.03, 0.05) << worked.batch;
  }
}

TEST(Decode, a_70b_model_on_two_gpus_and_13b_on_one) {
  ServeRun large("made--Llama-3-70B");
  large.settings.gpus = large.settings.tensor = 2;
  EXPECT_NEAR(large.decode(1, 1).weights_seconds, 26.3e-3, 0.5e-3);
  const ServeRun small("made--Llama-2-13B", "A100-SXM4-80GB", "dgx-a100");
  EXPECT_NEAR(small.decode(1, 1).weights_seconds, 12.75e-3 / 0.8, 0.3e-3);
}

TEST(Decode, all_experts_are_read_once_the_batch_is_large) {
  const ServeRun run("Qwen--Qwen3-30B-A3B");
  const double one = run.decode(1).weights_seconds, many = run.decode(64).weights_seconds;
  EXPECT_GT(many / one, 7) << "the advantage of active parameters is gone";
}

TEST(Decode, latent_attention_reads_little_and_computes_much) {
  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.gpus = run.settings.tensor = 8;
  EXPECT_NEAR(run.predict().cache_bytes_per_token, 70272, 1) << "and every tensor-parallel GPU has all of it";
  ServeRun dense("made--Llama-3-70B");
  dense.settings.gpus = dense.settings.tensor = 8;
  EXPECT_NEAR(dense.predict().cache_bytes_per_token, 327680 / 8.0, 1);
}

TEST(Decode, small_messages_cost_their_latency) {
  ServeRun run("made--Llama-3-70B");
  run.settings.gpus = run.settings.tensor = 8;
  const double messages = run.decode(1).tensor_parallel_seconds;
  EXPECT_GT(messages, 160 * 10e-6);
  EXPECT_LT(messages, 160 * 25e-6);
}

TEST(Serving, its_figures_belong_to_each_other) {
  ServeRun run;
  run.settings.concurrency = 32;
  const Serving v = run.predict();
  EXPECT_NEAR(v.tokens_per_second, v.request_rate_hertz * 96, 1e-6);
  EXPECT_NEAR(v.request_seconds, v.first_token_seconds + *v.token_seconds * 95, 1e-9);
  EXPECT_NEAR(v.request_rate_hertz * v.request_seconds, 32, 1e-9) << "Little's law";
  EXPECT_NEAR(v.breakdown.total_seconds() * 95, v.request_seconds, 1e-9) << "a cycle has 95 steps, as the first token is the prefill's";
  EXPECT_GT(v.attainable_ofu_ratio, 0);
  EXPECT_LT(v.attainable_ofu_ratio, 0.8);
}

TEST(Serving, requests_in_flight_are_those_that_are_given) {
  for (const std::uint64_t gpus : {1u, 3u, 8u}) {
    for (const std::uint64_t concurrency : {1u, 2u, 4u, 8u, 9u, 64u, 4000u}) {
      ServeRun run;
      run.settings.gpus = gpus;
      run.settings.concurrency = concurrency;
      const Serving v = run.predict();
      EXPECT_NEAR(v.tokens_per_second * v.request_seconds / 96, static_cast<double>(concurrency), 1e-9 * static_cast<double>(concurrency)) << gpus << " GPUs";
    }
  }
  ServeRun run;
  const Serving one = run.predict();
  run.settings.gpus = 8;
  EXPECT_EQ(run.predict().tokens_per_second, one.tokens_per_second) << "seven replicas have nothing to do";
  EXPECT_NEAR(run.predict().attainable_ofu_ratio, one.attainable_ofu_ratio / 8, 1e-15);
  run.settings.concurrency = 4;
  EXPECT_NEAR(run.predict().tokens_per_second, 4 * one.tokens_per_second, 1e-9);
}

TEST(Serving, pieces_of_prefill_save_no_more_than_the_reading_of_steps_that_carry_them) {
  for (const std::uint64_t concurrency : {1u, 2u, 3u, 8u, 64u}) {
    ServeRun run;
    run.settings.input_tokens = 1000;
    run.settings.output_tokens = 200;
    run.settings.gpus = concurrency == 3 ? 2 : 1;
    run.settings.concurrency = concurrency;
    const Serving whole = run.predict();
    for (const std::uint64_t chunk : {1u, 8u, 16u, 512u, 1000u}) {
      run.settings.chunk_tokens = chunk;
      const Serving v = run.predict();
      const std::string where = "pieces of " + std::to_string(chunk) + ", " + std::to_string(concurrency) + " at once";
      const double requests = static_cast<double>(concurrency);
      EXPECT_NEAR(v.tokens_per_second * v.request_seconds / 200, requests, 1e-9 * requests) << where;
      EXPECT_GE(v.prefill_seconds, 0.98 * whole.prefill_seconds) << where;
      EXPECT_GE(v.first_token_seconds, v.prefill_seconds * (1 - 1e-12)) << where;
      const double carried = std::min(v.batch_total * static_cast<double>((1000 + chunk - 1) / chunk), 398.0);
      EXPECT_GE(v.request_seconds, whole.request_seconds - v.batch_total * 0.02 * whole.prefill_seconds - (v.batch_total > 1 ? carried : 0) * v.decode.weights_seconds) << where;
      if (v.batch_total == 1) {
        EXPECT_NEAR(v.first_token_seconds, v.prefill_seconds, 1e-12) << where;
      }
    }
  }
  ServeRun run;
  run.settings.input_tokens = 1000;
  run.settings.chunk_tokens = 1;
  EXPECT_GT(run.predict().prefill_seconds, 1000 * run.decode(1).weights_seconds) << "each piece reads the weights";
}

TEST(Serving, prefill_of_70b_is_compute_bound) {
  ServeRun run("made--Llama-3-70B");
  run.settings.gpus = run.settings.tensor = 8;
  run.settings.input_tokens = 8192;
  const Serving v = run.predict();
  const double messages = 2 * 80 * all_reduce_time(run.fabric, group_of(run.fabric, 8, 1), units::Bytes(2.0 * 8192 * 8192)).time.value;
  EXPECT_NEAR(v.prefill_seconds - messages, 0.27, 0.05) << "0.31 s at half of the peak, 0.22 at 0.71; norms, activations and starts take the rest";
  run.settings.prefix_hit_ratio = 0.5;
  EXPECT_LT(run.predict().prefill_seconds, v.prefill_seconds * 0.6);
}

TEST(Serving, what_does_not_fit_is_said) {
  ServeRun run("made--Llama-3-70B");
  const Serving one = run.predict();
  EXPECT_EQ(one.memory.fits(), false);
  EXPECT_EQ(one.batch_fitting_total, 0);
  run.settings.weights = WeightFormat::kFp8;
  EXPECT_LT(run.predict().batch_fitting_total, 10) << "70 GB of weights leave little of 80";
}

TEST(Serving, more_requests_than_fit_wait) {
  ServeRun run;
  run.settings.concurrency = 1000;
  const Serving v = run.predict();
  EXPECT_LT(v.batch_total, 300);
  EXPECT_GT(v.request_seconds, 3 * *v.token_seconds * 96);
  EXPECT_GT(v.first_token_seconds, v.request_seconds / 2) << "which is waiting";
}

TEST(Serving, latencies_grow_with_concurrency_and_keep_their_order) {
  for (const std::uint64_t outputs : {2u, 8u, 96u, 1000u}) {
    for (const std::uint64_t chunk : {0u, 256u}) {
      ServeRun run;
      run.settings.output_tokens = outputs;
      run.settings.chunk_tokens = chunk;
      double first = 0, between = 0;
      for (const std::uint64_t concurrency : {1u, 2u, 4u, 16u, 64u, 256u, 1024u}) {
        run.settings.concurrency = concurrency;
        const Serving v = run.predict();
        const std::string where = std::to_string(outputs) + " tokens, pieces of " + std::to_string(chunk) + ", " + std::to_string(concurrency) + " at once";
        EXPECT_GT(v.first_token_seconds, first * (1 + 1e-9)) << where;
        EXPECT_GE(*v.token_seconds, between * (1 - 1e-9)) << where;
        EXPECT_GE(*v.token_seconds, v.decode.total_seconds() * (1 - 1e-9)) << where;
        EXPECT_GE(*v.token_worst_seconds, *v.token_seconds * (1 - 1e-9)) << where;
        EXPECT_NEAR(v.request_seconds, v.first_token_seconds + *v.token_seconds * static_cast<double>(outputs - 1), v.request_seconds * 1e-9) << where;
        first = v.first_token_seconds;
        between = *v.token_seconds;
      }
    }
  }
}

TEST(Serving, a_request_alone_waits_for_nobody) {
  ServeRun run;
  run.settings.concurrency = 1;
  const Serving v = run.predict();
  EXPECT_NEAR(v.first_token_seconds, v.prefill_seconds, 1e-12);
  EXPECT_NEAR(*v.token_seconds, v.decode.total_seconds(), 1e-12) << "its own prefill is no time between its tokens";
  EXPECT_EQ(*v.token_worst_seconds, *v.token_seconds);
}

TEST(Serving, fewer_requests_than_groups_of_gpus_have_a_whole_prefill_each) {
  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.gpus = run.settings.expert = 16;
  for (const std::uint64_t concurrency : {1u, 4u, 16u}) {
    run.settings.concurrency = concurrency;
    const Serving v = run.predict();
    EXPECT_GE(v.first_token_seconds, v.prefill_seconds * (1 - 1e-12)) << concurrency;
    EXPECT_GE(*v.token_seconds, v.decode.total_seconds() * (1 - 1e-12)) << concurrency;
  }
}

TEST(Serving, one_token_is_the_prefills_and_has_nothing_between) {
  ServeRun run;
  run.settings.output_tokens = 1;
  run.settings.concurrency = 8;
  const Serving v = run.predict();
  EXPECT_FALSE(v.token_seconds.has_value());
  EXPECT_FALSE(v.token_worst_seconds.has_value());
  EXPECT_NEAR(v.first_token_seconds, v.request_seconds, 1e-12);
  EXPECT_EQ(v.prefills_together_total, 4) << "8,192 tokens at once";
  EXPECT_LT(v.request_seconds, 8 * v.prefill_seconds);
  EXPECT_GT(v.request_seconds, 7 * v.prefill_seconds) << "2,000 tokens alone are bound by arithmetic already";
  EXPECT_NEAR(v.breakdown.total_seconds(), v.request_seconds, 1e-9);
}

TEST(Serving, short_prompts_that_come_together_read_the_weights_once) {
  ServeRun run;
  run.settings.input_tokens = run.settings.output_tokens = 128;
  run.settings.concurrency = 2;
  EXPECT_EQ(run.predict().prefills_together_total, 2) << "those that began together end together";
  run.settings.output_lengths = {{64, 1}, {192, 1}};
  EXPECT_EQ(run.predict().prefills_together_total, 1) << "one ends and another comes";
  run.settings.output_lengths.clear();
  run.settings.concurrency = 1270;
  run.settings.cache = CacheFormat::k8Bit;
  const Serving v = run.predict();
  EXPECT_NEAR(v.prefills_together_total, 10, 1e-9) << "as many as end with a decode step";
  EXPECT_GT(v.first_token_seconds, v.prefill_seconds) << "each of them has to wait for all";
  const double prefills = v.request_seconds - 127 * v.decode.total_seconds();
  EXPECT_LT(prefills, 0.7 * 1270 * v.prefill_seconds);
  run.settings.chunk_tokens = 512;
  EXPECT_EQ(run.predict().prefills_together_total, 4) << "a piece has no more tokens than it may";
}

TEST(Serving, kernels_take_time_to_start) {
  const ServeRun run;
  EXPECT_NEAR(run.decode(1).host_seconds, 65 * 7 * 3e-6, 1e-12) << "with CUDA graphs; 32 of attention, 32 feed-forward, the head";
  ServeRun tiny("made--Qwen3-0.6B");
  tiny.settings.input_tokens = 8;
  EXPECT_NEAR(tiny.predict().prefill_seconds, 57 * 7 * 6e-6, 1e-9) << "a prompt is launched kernel by kernel, which takes longer than the kernels";
}

TEST(Serving, a_static_batch_starts_together_and_is_not_interrupted) {
  ServeRun run;
  run.settings.continuous = false;
  run.settings.concurrency = 8;
  run.settings.output_lengths = {{10, 1}, {182, 1}};
  const Serving v = run.predict();
  EXPECT_GT(v.first_token_seconds, 8 * v.prefill_seconds) << "the longest of the batch before is waited for as well";
  EXPECT_NEAR(*v.token_seconds, v.decode.total_seconds(), 1e-12);
  EXPECT_NEAR(v.request_seconds, v.first_token_seconds + *v.token_seconds * 95, 1e-9);
}

TEST(Serving, reserving_to_the_longest_wastes_what_paging_does_not) {
  ServeRun run;
  run.settings.input_tokens = 452;
  run.settings.tokens_max = 2048;
  run.settings.block_tokens = 0;
  const Serving reserved = run.predict();
  EXPECT_NEAR(reserved.cache_waste_ratio, 0.756, 0.002);
  run.settings.block_tokens = 16;
  const Serving paged = run.predict();
  EXPECT_LT(paged.cache_waste_ratio, 0.04);
  EXPECT_NEAR(paged.batch_fitting_total / reserved.batch_fitting_total, 4, 0.1);
}

TEST(Serving, speculation_gains_alone_and_loses_in_a_full_batch) {
  ServeRun run;
  const double alone = run.predict().tokens_per_second;
  run.settings.concurrency = 200;
  const double full = run.predict().tokens_per_second;
  run.settings.speculation = Speculation{5, 0.6, 0.2};
  EXPECT_LT(run.predict().tokens_per_second, full);
  run.settings.speculation = Speculation{4, 0.8, 0.1};
  run.settings.concurrency = 1;
  EXPECT_NEAR(run.predict().tokens_per_second / alone, 2.4, 0.3);
}

TEST(Serving, settings_that_do_not_fit_name_the_size) {
  const auto message = [](void (*change)(ServeSettings&)) {
    ServeRun run;
    change(run.settings);
    const auto result = run.serve.predict(run.settings);
    return result.ok() ? std::string("ok") : result.error().message;
  };
  EXPECT_EQ(message([](ServeSettings& s) { s.gpus = 6; s.tensor = 4; }), "--gpus 6 cannot be divided by the 4 GPUs of a replica (--tp, --ep)");
  EXPECT_EQ(message([](ServeSettings& s) { s.gpus = s.tensor = 3; }), "--tp 3: the model's 32 attention heads cannot be divided by it");
  EXPECT_EQ(message([](ServeSettings& s) { s.gpus = s.expert = 2; }), "--ep 2: the model has no routed experts");
  EXPECT_EQ(message([](ServeSettings& s) { s.tokens_max = 100; }), "--max-tokens 100: less than the 2096 of --input-tokens and --output-tokens");
  EXPECT_EQ(message([](ServeSettings& s) { s.concurrency = kConcurrencyMax + 1; }), "--concurrency 10000001: expected 1 to 10000000");
  EXPECT_EQ(message([](ServeSettings& s) { s.concurrency = kConcurrencyMax; }), "ok");
  EXPECT_EQ(message([](ServeSettings& s) { s.weights = WeightFormat::kFp4; }), "H100-SXM5-80GB has no fp4 peak in the catalogue, which has tf32, fp16, bf16, fp8, int8");
}

TEST(Serving, copies_of_experts_fill_up_gpus_that_experts_do_not_divide_over) {
  ServeRun run("moonshotai--Kimi-K2-Instruct", "GB200", "gb200-nvl72");
  run.settings.weights = WeightFormat::kFp8;
  run.settings.gpus = run.settings.expert = 72;
  EXPECT_EQ(check_serve_settings(run.model, run.settings).error().message, "--ep 72: the model's 384 experts cannot be divided by it; --redundant-experts 48 would fill them up");
  run.settings.redundant_experts = 48;
  const double weights = run.predict().memory.weights_bytes;
  run.settings.gpus = run.settings.expert = 64;
  run.settings.redundant_experts = 0;
  EXPECT_NEAR(weights, run.predict().memory.weights_bytes, 1) << "six on each GPU";
  run.settings.redundant_experts = 7;
  EXPECT_EQ(check_serve_settings(run.model, run.settings).error().message, "--ep 64: the model's 384 experts and 7 more cannot be divided by it");
  run.settings.expert = 1;
  EXPECT_EQ(check_serve_settings(run.model, run.settings).error().message, "--redundant-experts 7: needs --ep");
}

TEST(Serving, messages_of_experts_in_prefill_are_those_of_experts) {
  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.weights = WeightFormat::kFp8;
  run.settings.gpus = run.settings.expert = 16;
  run.settings.concurrency = 16;
  const Serving v = run.predict();
  EXPECT_EQ(v.breakdown.tensor_parallel_seconds, 0);
  EXPECT_GT(v.breakdown.expert_parallel_seconds, v.decode.expert_parallel_seconds);
}

TEST(Serving, the_last_token_is_no_work) {
  ServeRun run;
  run.settings.input_tokens = 1;
  run.settings.output_tokens = 2;
  const Serving v = run.predict();
  flops::Workload workload;
  workload.sequence.tokens = 3;
  const double peak = *run.rates.peak_flops_per_second(catalog::Precision::kBf16);
  EXPECT_NEAR(v.mfu_ratio, 2 * flops::forward_cost(run.model, workload).total() * v.request_rate_hertz / peak, 1e-12);
}

TEST(Serving, encoders_are_refused) {
  for (const char* name : {"made--BERT-base", "made--T5-small"}) {
    const ServeRun run(name);
    const auto status = check_serve_settings(run.model, run.settings);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.error().message.find("is or has an encoder"), std::string::npos);
  }
}

TEST(Serving, a_prompt_is_sent_to_experts_as_well) {
  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.weights = WeightFormat::kFp8;
  run.settings.gpus = run.settings.expert = 16;
  const double apart = run.predict().prefill_seconds;
  run.fabric.network_rate = units::BytesPerSecond(1e15);
  EXPECT_LT(ServeModel(run.model, run.rates, run.fabric).predict(run.settings)->prefill_seconds, 0.8 * apart);
}

TEST(Serving, experts_over_more_gpus_than_tensor_parallel_ones_have_each_gpu_send_its_part) {
  ServeRun mixtral("mistralai--Mixtral-8x7B-v0.1");
  mixtral.settings.gpus = mixtral.settings.expert = 8;
  mixtral.settings.tensor = 2;
  mixtral.settings.concurrency = 64;
  mixtral.fabric.network_rate = units::BytesPerSecond(0);  // one node, all by NVLink
  const Serving v = mixtral.predict();
  EXPECT_GT(v.tokens_per_second, 0);
  EXPECT_GT(v.decode.expert_parallel_seconds, 0);

  ServeRun run("deepseek-ai--DeepSeek-V3", "H200");
  run.settings.weights = WeightFormat::kFp8;
  run.settings.gpus = run.settings.expert = 16;
  const auto messages_seconds = [&](std::uint64_t tensor, double batch) {
    run.settings.tensor = tensor;
    return run.decode(batch).expert_parallel_seconds;
  };
  // The same tokens go to the same experts on the same GPUs, whoever attended to them.
  for (const std::uint64_t tensor : {2U, 4U, 8U}) EXPECT_NEAR(messages_seconds(tensor, 4096), messages_seconds(1, 4096), 1e-12) << tensor;
}

TEST(Serving, continuous_batching_is_no_slower_than_a_static_batch) {
  ServeRun run("Qwen--Qwen3-30B-A3B");
  run.settings.gpus = run.settings.tensor = 4;
  for (const std::uint64_t tokens : {16U, 128U, 512U, 4096U}) {
    for (const std::uint64_t concurrency : {1U, 8U, 64U, 512U}) {
      run.settings.input_tokens = run.settings.output_tokens = tokens;
      run.settings.concurrency = concurrency;
      run.settings.continuous = true;
      const double continuous = run.predict().tokens_per_second;
      run.settings.continuous = false;
      EXPECT_GE(continuous, run.predict().tokens_per_second / 1.1) << tokens << " tokens, " << concurrency << " requests";
    }
  }
}

TEST(Serving, messages_without_a_link_have_no_time) {
  ServeRun run;
  run.settings.gpus = run.settings.tensor = 2;
  run.fabric.node_rate = units::BytesPerSecond(0);
  const auto predicted = run.serve.predict(run.settings);
  ASSERT_FALSE(predicted.ok());
  EXPECT_NE(predicted.error().message.find("some message has no link to go by"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::tuning
