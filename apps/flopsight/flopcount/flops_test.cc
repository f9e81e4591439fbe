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

base::json::Value flops_of(const std::string& path, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {"flops", path, "--format", "json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Answer answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}

TEST(Flops, json_has_the_keys_of_the_contract) {
  const auto out = flops_of(config("deepseek-ai--DeepSeek-V3"), {"--seq-len", "4096", "--convention", "all"});
  EXPECT_EQ(text(out, "model_type"), "deepseek_v3");
  EXPECT_EQ(number(out, "parameters_total"), 671026419200);
  EXPECT_EQ(number(out, "parameters_active"), 37552297472);
  EXPECT_EQ(number(out, "parameters_embedding"), 926679040);
  EXPECT_EQ(number(out, "kv_cache_bytes_per_token"), 61 * 1152);
  const auto audit = find(out, "conventions", "name", "audit_causal");
  EXPECT_NEAR(number(audit, "flops_per_token_train"), 250457382912, 1);
  EXPECT_NEAR(number(audit, "flops_per_token_forward"), 250457382912 / 3.0, 1);
  for (const char* name : {"audit_full_attention", "6n_total", "6n_active", "palm", "megatron", "torchtitan", "hf_trainer", "litgpt", "llm_foundry", "nanogpt", "hfu_full_recompute"}) {
    EXPECT_GT(number(find(out, "conventions", "name", name), "flops_per_token_train"), 0) << name;
  }
  double parameters = 0, forward = 0;
  for (const auto& layer : *out.find("layers")->as_array()) {
    if (text(layer, "section") != "text") continue;
    parameters += number(layer, "parameters");
    forward += number(layer, "flops_per_token_forward");
  }
  EXPECT_EQ(parameters, 671026419200);
  EXPECT_NEAR(forward, 250457382912 / 3.0, 1);
  EXPECT_TRUE(test::assumes(out, "multi-token prediction"));
}

TEST(Flops, a_folder_standard_names_and_options) {
  const TempFolder folder;
  folder.write("config.json", *base::read_file(config("meta-llama--Meta-Llama-3.1-8B")));
  const auto out = flops_of(folder.path());
  EXPECT_EQ(number(out, "parameters_total"), 8030261248);
  EXPECT_EQ(number(out, "seq_len"), 4096);
  EXPECT_TRUE(test::assumes(out, "no --seq-len"));
  const auto lora = flops_of(folder.path(), {"--lora-rank", "16", "--lora-targets", "q,v"});
  EXPECT_EQ(number(lora, "lora_parameters"), 32 * 16 * (4096 + 4096 + 4096 + 1024));
  const auto full = flops_of(folder.path(), {"--recompute", "full", "--seq-len", "8192"});
  EXPECT_NEAR(number(full, "recompute.flops_per_token_executed"), 67577577472, 1);
}

TEST(Flops, a_tower_is_told_beside_the_text) {
  const auto out = flops_of(config("Qwen--Qwen3-VL-8B-Instruct"));
  EXPECT_EQ(number(out, "parameters_total"), 8767123696);
  EXPECT_EQ(number(out, "parameters_text"), 8190735360);
  EXPECT_EQ(number(out, "vision.text_tokens_per_image"), 576);
  EXPECT_GT(number(out, "vision.flops_per_image_forward"), 2e12);
}

TEST(Flops, the_table_says_the_same) {
  const Answer answer = run_program({"flops", config("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"), "--seq-len", "8192"});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_NE(answer.out.find("120 668 707 840"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("75.791"), std::string::npos) << answer.out;
}

TEST(Flops, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  const std::string good = config("meta-llama--Meta-Llama-3.1-8B");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"flops", folder.path()}, "config.json: cannot open: No such file"},
      {{"flops", folder.write("a.json", "{")}, "line 1"},
      {{"flops", folder.write("b.json", "{\"model_type\": \"mystery\"}")}, "b.json: model_type mystery is not known"},
      {{"flops", folder.write("c.json", "{}")}, "model_type: not there"},
      {{"flops", folder.write("d.json", "[]")}, "a JSON array, expected the object of a config.json"},
      {{"flops", good, "--convention", "x"}, "--convention x: expected audit_causal"},
      {{"flops", good, "--mtp", "1"}, "has no multi-token prediction layers"},
      {{"flops", good, "--lora-targets", "q"}, "--lora-targets needs --lora-rank"},
      {{"flops", good, "--lora-rank", "8", "--lora-targets", "z"}, "target of adapters z: expected"},
      {{"flops", good, "--recompute", "half"}, "--recompute half: expected none, selective or full"},
      {{"flops", good, "--format", "xml"}, "--format xml: expected table or json"},
      {{"flops", good, "--seq-len", "0"}, "--seq-len"},
      {{"flops"}, "config is required"},
  };
  for (const auto& [arguments, said] : cases) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find(said), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

}  // namespace
}  // namespace flopsight::app
