#include <gtest/gtest.h>

#include <algorithm>

#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;

std::vector<std::string> serve(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"tune", "serve", "--config", FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Llama-3-8B_config.json", "--gpu", "H100-SXM5-80GB", "--gpus", "2",
                                        "--input-tokens", "1024", "--output-tokens", "256"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

base::json::Value serve_json(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--format", "json"});
  const Answer answer = run_program(serve(std::move(more)));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}

TEST(TuneServe, json_has_the_keys_of_the_contract) {
  const auto out = serve_json({"--concurrency", "64", "--usd-per-gpu-hour", "2.5"});
  EXPECT_GT(number(out, "predicted.step_seconds"), 0);
  EXPECT_NEAR(number(out, "predicted.tokens_per_second_per_gpu") * 2, number(out, "predicted.tokens_per_second"), 1e-6);
  EXPECT_GT(number(out, "predicted.time_to_first_token_seconds"), number(out, "predicted.time_per_output_token_seconds"));
  EXPECT_GT(number(out, "memory_bytes_per_gpu.kv_cache"), 1e9);
  EXPECT_NEAR(number(out, "predicted.usd_per_million_output_tokens"), 5e6 / 3600 / number(out, "predicted.tokens_per_second"), 1e-9);
  EXPECT_EQ(text(out, "fits"), "true");
  double parts = 0;
  for (const char* part : {"compute", "memory", "tensor_parallel", "pipeline_bubble", "data_parallel", "expert_parallel", "host"}) parts += number(out, std::string("predicted.breakdown_seconds.") + part);
  EXPECT_NEAR(parts, number(out, "predicted.step_seconds"), 1e-9);
  EXPECT_GT(number(test::find(out, "advice", "id", "quantize_weights"), "gain_ratio"), 0);
}

TEST(TuneServe, no_price_no_cost) {
  const auto out = serve_json();
  EXPECT_EQ(text(out, "predicted.usd_per_million_output_tokens"), "null");
  EXPECT_TRUE(test::assumes(out, "no --usd-per-gpu-hour"));
}

TEST(TuneServe, weights_that_do_not_fit_are_an_answer) {
  std::vector<std::string> arguments = serve();
  arguments[3] = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Llama-3-70B_config.json";
  const Answer answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_NE(answer.out.find("does not fit"), std::string::npos) << answer.out;
  EXPECT_EQ(answer.out.find("requests at once"), std::string::npos) << "a speed of what cannot run: " << answer.out;
  EXPECT_EQ(answer.out.find("  +"), std::string::npos) << "a gain on it: " << answer.out;
  EXPECT_NE(answer.out.find("makes it fit"), std::string::npos) << answer.out;
  arguments.insert(arguments.end(), {"--format", "json"});
  const auto out = base::json::parse(run_program(arguments).out).value();
  EXPECT_EQ(text(out, "predicted"), "null");
  EXPECT_EQ(text(out, "fits"), "false");
  EXPECT_GT(number(test::find(out, "advice", "id", "quantize_weights"), "predicted.tokens_per_second"), 0);
  EXPECT_EQ(text(test::find(out, "advice", "id", "quantize_weights"), "gain_ratio"), "null");
}

TEST(TuneServe, one_output_token_has_no_time_between_tokens) {
  const Answer answer = run_program(serve({"--concurrency", "8", "--output-tokens", "1"}));
  std::vector<std::string> arguments = serve({"--concurrency", "8", "--format", "json"});
  *(std::find(arguments.begin(), arguments.end(), "--output-tokens") + 1) = "1";
  const auto out = base::json::parse(run_program(arguments).out).value();
  EXPECT_EQ(text(out, "predicted.time_per_output_token_seconds"), "null");
  EXPECT_EQ(text(out, "predicted.bound_by"), "null");
  *(std::find(arguments.begin(), arguments.end(), "json")) = "table";
  EXPECT_EQ(run_program(arguments).out.find("decoding is bound by"), std::string::npos);
  EXPECT_GT(number(out, "predicted.tokens_per_second"), 0);
}

TEST(TuneServe, table_and_page_say_the_same) {
  EXPECT_NE(run_program(serve()).out.find("time to first token"), std::string::npos);
  const Answer page = run_program(serve({"--format", "html"}));
  EXPECT_NE(page.out.find("<svg"), std::string::npos);
  EXPECT_NE(page.out.find("time to first token"), std::string::npos);
}

TEST(TuneServe, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  const auto without = [](const std::string& name) {
    std::vector<std::string> arguments = serve();
    const auto at = std::find(arguments.begin(), arguments.end(), name);
    arguments.erase(at, at + 2);
    return arguments;
  };
  std::vector<std::string> ampere = serve({"--attention", "flash3"});
  *std::find(ampere.begin(), ampere.end(), "H100-SXM5-80GB") = "A100-SXM4-80GB";
  std::vector<std::string> volta = serve({"--attention", "flash2"});
  *std::find(volta.begin(), volta.end(), "H100-SXM5-80GB") = "V100-SXM2";
  std::vector<std::string> mamba = serve({"--attention", "flash3"});
  mamba[3] = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Mamba-130M_config.json";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {without("--gpu"), "--gpu: expected the name of a GPU; there is no default"},
      {without("--input-tokens"), "--input-tokens: expected"},
      {without("--output-tokens"), "--output-tokens: expected"},
      {serve({"--tp", "4"}), "--gpus 2 cannot be divided by the 4 GPUs of a replica"},
      {serve({"--ep", "2"}), "the model has no routed experts"},
      {serve({"--precision", "int2"}), "--precision int2: expected bf16"},
      {serve({"--kv-precision", "int2"}), "--kv-precision int2: expected bf16"},
      {serve({"--attention", "standard"}), "--attention standard: expected flash1"},
      {ampere, "--attention flash3: FlashAttention-3 needs a GPU from Hopper on, A100-SXM4-80GB is Ampere"},
      {serve({"--batching", "sometimes"}), "--batching sometimes: expected continuous or static"},
      {serve({"--acceptance", "0.8"}), "--draft-tokens, --acceptance and --draft-cost go together"},
      {serve({"--prefix-hit-ratio", "2"}), "--prefix-hit-ratio"},
      {serve({"--concurrency", "0"}), "--concurrency"},
      {serve({"--output-lengths", folder.write("l.csv", "tokens,count\nx,1\n")}), "line 2, column tokens"},
      {serve({"--output-lengths", folder.write("m.csv", "tokens,count\n100,1\n200,1\n")}), "--output-tokens 256: the mean of --output-lengths is 150, expected the same"},
      {serve({"--max-tokens", "4096"}), "--max-tokens 4096: needs --kv-block 0"},
      {serve({"--dispatch", "deepep"}), "--dispatch deepep: needs --ep over more GPUs than --tp"},
      {mamba, "--attention flash3: the model has no attention"},
      {volta, "--attention flash2: FlashAttention-2 needs a GPU from Ampere on, V100-SXM2 is Volta"},
      {serve({"--fabric", "single-gpu", "--node-gpus", "8"}), "--node-gpus 8: the GPUs of single-gpu are not connected; say --node-gb-per-second"},
  };
  test::expect_refused(cases);
}

TEST(TuneServe, options_that_go_together_are_taken) {
  const TempFolder folder;
  EXPECT_EQ(run_program(serve({"--kv-block", "0", "--max-tokens", "4096"})).exit_code, 0);
  const Answer lengths = run_program(serve({"--batching", "static", "--output-lengths", folder.write("l.csv", "tokens,count\n56,1\n456,1\n")}));
  EXPECT_EQ(lengths.exit_code, 0) << lengths.err;
  std::vector<std::string> experts = serve({"--tp", "2", "--ep", "2"});
  experts[3] = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/mistralai--Mixtral-8x7B-v0.1_config.json";
  const Answer within = run_program(experts);
  EXPECT_NE(within.out.find("assumed: --ep within --tp: "), std::string::npos) << within.out << within.err;
}

}  // namespace
}  // namespace flopsight::app
