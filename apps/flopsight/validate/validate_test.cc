#include <gtest/gtest.h>

#include "base/file.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::count;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;

const std::vector<std::string> kSimulated = {"validate", "--simulated", "--gpu", "NVIDIA H100 80GB HBM3", "--precision", "bf16", "--precision", "tf32"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string file(const TempFolder& folder, const std::string& name) {
  const auto bytes = base::read_file(folder.path() + "/out/" + name);
  return bytes.ok() ? *bytes : "(" + bytes.error().message + ")";
}

TEST(Validate, a_simulated_gpu_is_said_to_be_one_in_every_answer) {
  const TempFolder folder;
  const Answer table = run_program(with(kSimulated, {"--out", folder.path() + "/out"}));
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(table.out.starts_with("SIMULATED H100-SXM5-80GB, 132 SMs")) << table.out;
  EXPECT_NE(table.out.find("no figure here says anything of a real GPU"), std::string::npos);
  for (const char* part : {"OFU MAE", "<=2 pp", "<=5 pp", "OFU_adj MAE", "bf16", "tf32"}) EXPECT_NE(table.out.find(part), std::string::npos) << part;
  EXPECT_TRUE(file(folder, "points.csv").starts_with("# SIMULATED flopsight validate: H100-SXM5-80GB"));
  EXPECT_NE(file(folder, "points.csv").find("\ntrue,tf32,128,128,128,"), std::string::npos);
  EXPECT_NE(file(folder, "scatter.svg").find("SIMULATED: OFU and MFU"), std::string::npos);
  const auto summary = base::json::parse(file(folder, "summary.json"));
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(text(*summary, "simulated"), "true");
  EXPECT_EQ(text(*summary, "driver_version"), "null");
  EXPECT_EQ(text(*summary, "start"), "2026-11-29T12:00:00Z");
  EXPECT_EQ(count(*summary, "points"), 54U);
}

TEST(Validate, agrees_after_correction_and_reads_high_before) {
  const Answer answer = run_program(with(kSimulated, {"--format", "json", "--seconds", "30s"}));
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = base::json::parse(answer.out);
  ASSERT_TRUE(json.ok());
  for (const char* row : {"0", "1"}) {
    const std::string at = std::string("agreement.") + row + ".";
    EXPECT_LT(number(*json, at + "ofu_adjusted.error_mean_ratio"), 0.003);
    EXPECT_EQ(number(*json, at + "ofu_adjusted.within_2_points_ratio"), 1);
    EXPECT_GT(number(*json, at + "ofu.bias_ratio"), number(*json, at + "ofu_adjusted.bias_ratio"));
  }
}

TEST(Validate, the_same_seed_gives_the_same_bytes_and_another_others) {
  const Answer one = run_program(kSimulated);
  EXPECT_EQ(one.out, run_program(kSimulated).out);
  EXPECT_NE(one.out, run_program(with(kSimulated, {"--seed", "2"})).out);
}

TEST(Validate, what_is_there_is_replaced_by_force_only) {
  const TempFolder folder;
  const auto again = with(kSimulated, {"--sizes", "128:256", "--unaligned", "0", "--out", folder.path() + "/out"});
  EXPECT_EQ(run_program(again).exit_code, 0);
  const Answer refused = run_program(again);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("points.csv: is there already; --force replaces it"), std::string::npos) << refused.err;
  EXPECT_EQ(run_program(with(again, {"--force"})).exit_code, 0);
}

TEST(Validate, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  folder.write("plain", "x");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"validate", "--simulated"}, "--simulated needs --gpu: the name of a GPU; there is no default"},
      {{"validate", "--gpu", "H100-SXM5-80GB"}, "--gpu belongs to --simulated"},
      {{"validate", "--simulated", "--gpu", "no such"}, "no GPU no such in the catalogue"},
      {{"validate", "--simulated", "--gpu", "A10G"}, "the catalogue lacks its SM count or clocks"},
      {with(kSimulated, {"--exporter", "http://localhost:9400/metrics"}), "--exporter does not go with it"},
      {with(kSimulated, {"--precision", "fp4"}), "H100-SXM5-80GB has no tensor peak for fp4"},
      {with(kSimulated, {"--precision", "fp32"}), "--precision fp32: expected a format of tensor cores"},
      {with(kSimulated, {"--sizes", "4096"}), "--sizes 4096: expected LEAST:MOST"},
      {with(kSimulated, {"--sizes", "4096:128"}), "--sizes 4096:128: expected LEAST:MOST"},
      {with(kSimulated, {"--sizes", "130:140", "--unaligned", "0"}), "no product: no size of the sweep lies between the bounds"},
      {with(kSimulated, {"--seconds", "0"}), "--seconds 0: expected a duration"},
      {with(kSimulated, {"--interval", "never"}), "--interval never: expected a duration"},
      {with(kSimulated, {"--seed", "-1"}), "--seed -1: expected a whole number"},
      {with(kSimulated, {"--unaligned", "1001"}), "--unaligned 1001: expected 0 to 1000"},
      {with(kSimulated, {"--format", "csv"}), "--format csv: expected table or json"},
      {with(kSimulated, {"--force"}), "--force needs --out"},
      {with(kSimulated, {"--out", folder.path() + "/plain"}), "plain"},
      {with(kSimulated, {"--gpu-catalog", folder.path() + "/missing.csv"}), "missing.csv"},
      {{"validate", "--cuda-library", folder.path() + "/libcuda.so.1"}, "the CUDA driver cannot be loaded: "},
  };
  for (const auto& [arguments, expected] : cases) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << expected;
    EXPECT_NE(answer.err.find(expected), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_TRUE(answer.out.empty()) << answer.out;
  }
}

}  // namespace
}  // namespace flopsight::app
