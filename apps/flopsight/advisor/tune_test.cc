#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::find;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;

std::string config(const std::string& name) { return FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json"; }

std::vector<std::string> train(std::vector<std::string> more = {}, const std::string& model = "made--Llama-3-8B") {
  std::vector<std::string> arguments = {"tune", "train", "--config", config(model), "--gpu", "H100-SXM5-80GB", "--gpus", "8", "--seq-len", "4096", "--global-batch", "64"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

base::json::Value train_json(std::vector<std::string> more = {}, const std::string& model = "made--Llama-3-8B") {
  more.insert(more.end(), {"--format", "json"});
  const Answer answer = run_program(train(std::move(more), model));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}

TEST(TuneTrain, json_has_the_keys_of_the_contract) {
  const auto out = train_json({"--usd-per-gpu-hour", "2"});
  EXPECT_GT(number(out, "predicted.step_seconds"), 0);
  EXPECT_NEAR(number(out, "predicted.tokens_per_second_per_gpu") * 8, number(out, "predicted.tokens_per_second"), 1e-6);
  EXPECT_GT(number(out, "predicted.mfu_ratio"), 0.2);
  EXPECT_GT(number(out, "predicted.attainable_ofu_ratio"), number(out, "predicted.mfu_ratio"));
  double parts = 0;
  for (const char* part : {"compute", "memory", "tensor_parallel", "pipeline_bubble", "data_parallel", "expert_parallel", "host", "context_parallel", "pipeline_parallel"}) {
    parts += number(out, std::string("predicted.breakdown_seconds.") + part);
  }
  EXPECT_NEAR(parts, number(out, "predicted.step_seconds"), 1e-9);
  double memory = 0;
  for (const char* part : {"weights", "gradients", "optimizer", "activations", "kv_cache", "reserved"}) memory += number(out, std::string("memory_bytes_per_gpu.") + part);
  EXPECT_NEAR(memory, number(out, "memory_bytes_per_gpu.total"), 1);
  EXPECT_EQ(text(out, "fits"), "true");
  EXPECT_EQ(text(out, "measured"), "null");
  const auto advice = find(out, "advice", "id", "precision");
  for (const char* key : {"change", "confidence", "why", "source"}) EXPECT_NE(text(advice, key), "null") << key;
  EXPECT_GT(number(advice, "gain_ratio"), 0);
  EXPECT_GT(number(advice, "usd_saved_per_day"), 0);
  EXPECT_GT(number(advice, "predicted.tokens_per_second"), number(out, "predicted.tokens_per_second"));
  EXPECT_TRUE(test::assumes(out, "no --fabric: links of dgx-h100"));
  EXPECT_TRUE(test::assumes(out, "no --micro-batch"));
}

TEST(TuneTrain, lengths_beyond_the_models_positions_and_what_is_not_modelled_of_experts_are_said) {
  std::vector<std::string> arguments = train({"--format", "json"});
  *(std::find(arguments.begin(), arguments.end(), "--seq-len") + 1) = "1048576";
  const auto out = base::json::parse(run_program(arguments).out).value();
  EXPECT_TRUE(test::assumes(out, "--seq-len 1048576 is beyond the ")) << run_program(arguments).out;
  EXPECT_FALSE(test::assumes(train_json(), "is beyond the "));
  const auto experts = train_json({"--ep", "8"}, "mistralai--Mixtral-8x7B-v0.1");
  EXPECT_TRUE(test::assumes(experts, "no --dispatch: a token goes to each of its experts separately"));
  EXPECT_TRUE(test::assumes(experts, "each expert gets as many tokens as any other"));
  EXPECT_FALSE(test::assumes(train_json({"--ep", "8", "--dispatch", "deepep"}, "mistralai--Mixtral-8x7B-v0.1"), "no --dispatch"));
}

TEST(TuneTrain, experts_over_tensor_parallel_gpus_as_well) {
  const Answer refused = run_program(train({"--ep", "8", "--tp", "4"}, "mistralai--Mixtral-8x7B-v0.1"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--ep 8: the 2 GPUs of --cp x --dp cannot be divided by it; with --etp 1 experts are whole"), std::string::npos) << refused.err;
  const auto folded = train_json({"--ep", "8", "--tp", "4", "--etp", "1"}, "mistralai--Mixtral-8x7B-v0.1");
  EXPECT_EQ(number(folded, "settings.etp"), 1);
  EXPECT_GT(number(folded, "predicted.breakdown_seconds.expert_parallel"), 0);
  EXPECT_NE(run_program(train({"--ep", "8", "--tp", "4", "--etp", "1"}, "mistralai--Mixtral-8x7B-v0.1")).out.find("ep 8, etp 1, dp 2"), std::string::npos);
}

TEST(TuneTrain, what_does_not_fit_is_an_answer_and_not_a_failure) {
  const auto out = train_json({"--micro-batch", "8"});
  EXPECT_EQ(text(out, "fits"), "false");
  EXPECT_NE(text(out, "over").find("GiB are needed, 80.0 GiB are there: weights"), std::string::npos);
  EXPECT_NE(text(find(out, "advice", "id", "micro_batch"), "why").find("does not fit into memory"), std::string::npos);
}

TEST(TuneTrain, a_search_lists_layouts) {
  const auto out = train_json({"--search"});
  EXPECT_GE(test::count(out, "layouts"), 2u);
  EXPECT_LE(number(out, "layouts.0.step_seconds"), number(out, "layouts.1.step_seconds"));
  EXPECT_GE(number(out, "layouts_tried"), number(out, "layouts_fitting"));
}

TEST(TuneTrain, lengths_flags_and_checkpoints_become_advice) {
  const TempFolder folder;
  const auto out = train_json({"--lengths", folder.write("lengths.csv", "tokens,count\n512,3\n4096,1\n"), "--env", "CUDA_LAUNCH_BLOCKING=1", "--checkpoint-cost", "60s", "--checkpoint-interval", "2h", "--mtbf",
                               "3h", "--restart-cost", "10m"});
  EXPECT_GT(number(find(out, "advice", "id", "packing"), "gain_ratio"), 1);
  EXPECT_EQ(text(find(out, "advice", "id", "debug_flag"), "gain_ratio"), "null");
  EXPECT_GT(number(find(out, "advice", "id", "checkpoint_interval"), "gain_ratio"), 0.1);
}

TEST(TuneTrain, the_table_says_the_same) {
  const Answer answer = run_program(train({"--micro-batch", "8"}));
  EXPECT_EQ(answer.exit_code, 0);
  for (const char* said : {"predicted step", "attainable OFU", "products and attention", "does not fit: ", "assumed: no --precision: BF16", "what to change next"}) {
    EXPECT_NE(answer.out.find(said), std::string::npos) << said;
  }
}

TEST(TuneTrain, the_page_draws_the_breakdown_and_escapes_names) {
  const TempFolder folder;
  const std::string path = folder.write("<b>&\"config.json", *base::read_file(config("made--Llama-3-8B")));
  std::vector<std::string> arguments = train({"--format", "html"});
  arguments[3] = path;
  const Answer answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.out.rfind("<!doctype html>", 0), 0u);
  EXPECT_NE(answer.out.find("<svg"), std::string::npos);
  EXPECT_NE(answer.out.find("&lt;b&gt;&amp;&quot;config.json"), std::string::npos);
  EXPECT_EQ(answer.out.find("<b>"), std::string::npos);
  EXPECT_EQ(answer.out.find("http://"), std::string::npos) << "the page stands alone";
}

TEST(TuneTrain, a_gpu_without_a_reference_system_needs_links) {
  std::vector<std::string> arguments = train();
  arguments[5] = "L40S";
  EXPECT_NE(run_program(arguments).err.find("--fabric: L40S has no reference system"), std::string::npos);
  arguments.insert(arguments.end(), {"--fabric", "pcie-gen4"});
  EXPECT_EQ(run_program(arguments).exit_code, 0);
  arguments[7] = "1";
  arguments.resize(12);
  EXPECT_EQ(run_program(arguments).exit_code, 0) << "one GPU sends nothing";
}

TEST(TuneTrain, the_last_value_of_a_variable_is_what_the_job_has) {
  EXPECT_NE(run_program(train({"--env", "CUDA_LAUNCH_BLOCKING=0", "--env", "CUDA_LAUNCH_BLOCKING=1"})).out.find("CUDA_LAUNCH_BLOCKING"), std::string::npos);
  EXPECT_EQ(run_program(train({"--env", "CUDA_LAUNCH_BLOCKING=1", "--env", "PATH=/bin", "--env", "CUDA_LAUNCH_BLOCKING=0"})).out.find("CUDA_LAUNCH_BLOCKING"), std::string::npos);
}

TEST(TuneTrain, settings_that_contradict_each_other_are_exit_2_and_one_line) {
  std::vector<std::string> ampere = train({"--attention", "flash3"});
  *std::find(ampere.begin(), ampere.end(), "H100-SXM5-80GB") = "A100-SXM4-80GB";
  const test::Refusals cases = {
      {train({"--overlap", "none,data"}), "--overlap none,data: none does not go with others"},
      {train({"--overlap", "data,none"}), "--overlap data,none: none does not go with others"},
      {train({"--mtbf", "3h"}), "--mtbf: needs --checkpoint-cost, --checkpoint-interval as well"},
      {train({"--restart-cost", "3m", "--checkpoint-cost", "1m"}), "--checkpoint-cost, --restart-cost: needs --checkpoint-interval, --mtbf as well"},
      {train({"--dispatch", "deepep"}), "--dispatch deepep: needs --ep"},
      {train({"--attention", "standard"}, "made--Mamba-130M"), "--attention standard: the model has no attention"},
      {train({"--fp8-weights"}), "--fp8-weights: needs --precision fp8 or fp4"},
      {ampere, "--attention flash3: FlashAttention-3 needs a GPU from Hopper on, A100-SXM4-80GB is Ampere"},
  };
  test::expect_refused(cases);
  EXPECT_EQ(run_program(train({"--fp8-weights", "--precision", "fp8"})).exit_code, 0);
  EXPECT_EQ(run_program(train({"--overlap", "none"})).exit_code, 0);
}

TEST(TuneTrain, attention_of_a_wide_run_is_not_said_to_be_flash) {
  const auto out = train_json({"--precision", "tf32"});
  EXPECT_TRUE(test::assumes(out, "FlashAttention takes 16-bit inputs"));
  EXPECT_FALSE(test::assumes(out, "no --attention: FlashAttention-2"));
  EXPECT_TRUE(test::assumes(train_json(), "no --attention: FlashAttention-2"));
}

TEST(TuneTrain, before_ampere_there_is_no_flash_attention_2) {
  for (const char* gpu : {"V100-SXM2", "T4"}) {
    std::vector<std::string> arguments = train({"--format", "json", "--precision", "fp16", "--fabric", "dgx-1v"});
    *std::find(arguments.begin(), arguments.end(), "H100-SXM5-80GB") = gpu;
    const auto out = base::json::parse(run_program(arguments).out).value();
    EXPECT_TRUE(test::assumes(out, "no --attention: memory-efficient attention")) << gpu;
    EXPECT_FALSE(test::assumes(out, "no --attention: FlashAttention-2")) << gpu;
    arguments.insert(arguments.end(), {"--attention", "standard"});
    EXPECT_EQ(run_program(arguments).out.find("--attention flash2"), std::string::npos) << gpu;
    EXPECT_EQ(run_program(arguments).out.find("\"FlashAttention-2\""), std::string::npos) << gpu;
  }
}

TEST(TuneTrain, memory_is_what_the_name_of_the_gpu_says) {
  const auto run = [](const char* gpu) {
    std::vector<std::string> arguments = train({"--format", "json", "--precision", "fp16", "--fabric", "dgx-1v"});
    *std::find(arguments.begin(), arguments.end(), "H100-SXM5-80GB") = gpu;
    return base::json::parse(run_program(arguments).out).value();
  };
  EXPECT_EQ(number(run("Tesla V100-SXM2-32GB"), "memory_bytes_per_gpu.capacity"), 32.0 * 1024 * 1024 * 1024);
  EXPECT_FALSE(test::assumes(run("Tesla V100-SXM2-32GB"), "V100-SXM2 has 16 or 32 GB"));
  EXPECT_EQ(number(run("V100-SXM2"), "memory_bytes_per_gpu.capacity"), 16.0 * 1024 * 1024 * 1024);
  EXPECT_TRUE(test::assumes(run("V100-SXM2"), "V100-SXM2 has 16 or 32 GB, and the name does not say which: 16 GB"));
}

TEST(TuneTrain, links_that_are_given_are_what_is_said_of_them) {
  const auto out = train_json({"--node-gpus", "4", "--network-gb-per-second", "25"});
  EXPECT_EQ(text(out, "settings.fabric"), "links as given: 4 GPUs to a node, 450 GB/s inside, 25 GB/s of network for each, latencies as of dgx-h100");
}

TEST(TuneTrain, lengths_that_are_none_are_exit_2_and_one_line) {
  const TempFolder folder;
  test::expect_refused({
      {train({"--lengths", folder.path() + "/none.csv"}), "none.csv"},
      {train({"--lengths", folder.write("a.csv", "length\n1\n")}), "line 1: expected the columns tokens and count"},
      {train({"--lengths", folder.write("b.csv", "tokens,count\n0,1\n")}), "line 2, column tokens"},
      {train({"--lengths", folder.write("c.csv", "tokens,count\n8,-1\n")}), "line 2, column count"},
      {train({"--lengths", folder.write("d.csv", "tokens,count\n8,0\n")}), "no documents"},
  });
}

TEST(TuneTrain, mistakes_are_exit_2_and_one_line) {
  const auto without = [](const std::string& name) {
    std::vector<std::string> arguments = train();
    const auto at = std::find(arguments.begin(), arguments.end(), name);
    arguments.erase(at, at + 2);
    return arguments;
  };
  const auto with_gpu = [](const std::string& gpu) {
    std::vector<std::string> arguments = train();
    arguments[5] = gpu;
    return arguments;
  };
  const test::Refusals cases = {
      {{"tune"}, "subcommand is required"},
      {without("--config"), "--config: expected the config.json"},
      {without("--gpu"), "--gpu: expected the name of a GPU; there is no default"},
      {without("--gpus"), "--gpus: expected how many"},
      {without("--seq-len"), "--seq-len: expected"},
      {without("--global-batch"), "--global-batch: expected"},
      {with_gpu("NVIDIA A100 80GB PCIe MIG 1g.10gb"), "--gpu NVIDIA A100 80GB PCIe MIG 1g.10gb: a MIG instance"},
      {with_gpu("H9000"), "--gpu H9000: not in the catalogue"},
      {with_gpu("A10G"), "the catalogue has no dense 16-bit peak"},
      {train({"--tp", "3"}), "--tp 3 x --pp 1 x --cp 1 = 3 does not divide --gpus 8"},
      {train({"--tp", "2", "--dp", "8"}), "= 16, expected --gpus 8"},
      {train({"--pp", "8", "--vp", "3"}), "the model's 32 layers cannot be divided by 24"},
      {train({"--global-batch", "65"}), "--global-batch"},
      {train({"--ep", "2"}), "the model has no routed experts"},
      {train({"--etp", "1", "--tp", "2"}), "--etp 1: the model has no routed experts"},
      {train({"--ep", "2", "--tp", "2", "--etp", "4"}, "mistralai--Mixtral-8x7B-v0.1"), "--etp 4: expected a divisor of --tp 2"},
      {train({"--ep", "8", "--tp", "8", "--etp", "2"}, "mistralai--Mixtral-8x7B-v0.1"), "--ep 8 x --etp 2: the 8 GPUs of --tp x --cp x --dp cannot be divided by it"},
      {train({"--dispatch", "post"}), "--dispatch post: expected all-to-all or deepep"},
      {train({"--precision", "int4"}), "--precision int4: expected fp32, tf32, fp16, bf16, fp8 or fp4"},
      {train({"--precision", "fp4"}), "H100-SXM5-80GB has no fp4 peak"},
      {train({"--recompute", "some"}), "--recompute some: expected none, selective or full"},
      {train({"--optimizer", "lion"}), "--optimizer lion: expected adam"},
      {train({"--kernels", "fast"}), "--kernels fast: expected eager or fused"},
      {train({"--attention", "flash9"}), "--attention flash9: expected standard"},
      {train({"--no-sequence-parallel"}), "--no-sequence-parallel: needs --tp over 1 or --search"},
      {train({"--overlap", "tensor"}), "--overlap tensor: needs --tp over 1 or --search"},
      {train({"--overlap", "data,expert"}), "--overlap expert: needs --ep or --search"},
      {train({"--overlap", "data", "--tp", "8"}), "--overlap data: needs more than one data-parallel GPU or --search"},
      {train({"--overlap", "all"}), "--overlap all: expected none"},
      {train({"--fabric", "token-ring"}), "--fabric token-ring: expected dgx-1v"},
      {train({"--zero", "4"}), "--zero"},
      {train({"--checkpoint-cost", "soon"}), "--checkpoint-cost soon: expected a duration"},
      {train({"--env", "NAME"}), "--env NAME: expected NAME=value"},
      {train({"--format", "xml"}), "--format xml: expected table, json or html"},
      {train({"--mtp", "1"}), "has no multi-token prediction layers"},
      {train({}, "made--ViT-B-16"), "no language model"},
  };
  test::expect_refused(cases);
}

}  // namespace
}  // namespace flopsight::app
