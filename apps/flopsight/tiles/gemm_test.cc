#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;

const std::string kTraces = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/traces/";
const std::string kConfigs = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/";
const std::string kTrimmed = kTraces + "hta-trace_diff__control__control.trimmed.json.gz";

base::json::Value gemm(std::vector<std::string> options) {
  options.insert(options.begin(), "gemm");
  options.insert(options.end(), {"--format", "json"});
  const Answer answer = run_program(options);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}
const base::json::Value& first(const base::json::Value& out) { return out.find("shapes")->as_array()->front(); }

std::vector<std::string> product(const char* m, const char* n, const char* k, const char* precision, const char* gpu) {
  return {"--m", m, "--n", n, "--k", k, "--precision", precision, "--gpu", gpu};
}

TEST(Gemm, one_product_has_the_keys_of_the_contract) {
  auto options = product("384", "384", "384", "bf16", "H100-SXM5-80GB");
  options.insert(options.end(), {"--tile", "128x256x64"});
  const auto out = gemm(options);
  EXPECT_DOUBLE_EQ(number(out, "overhead_ratio"), 512.0 / 384);
  const auto& row = first(out);
  EXPECT_EQ(text(row, "tile"), "128x256x64");
  EXPECT_EQ(text(row, "tile_source"), "given");
  EXPECT_EQ(number(row, "count"), 1);
  EXPECT_EQ(number(row, "theoretical_flops"), 2.0 * 384 * 384 * 384);
  EXPECT_EQ(number(row, "executed_flops"), 2.0 * 384 * 512 * 384);
  EXPECT_EQ(number(row, "ctas"), 6);
  EXPECT_EQ(number(row, "waves"), 1);
  EXPECT_NEAR(number(row, "wave_efficiency_ratio"), 6.0 / 132, 1e-12);
  ASSERT_NE(row.find("suggested"), nullptr);
}

TEST(Gemm, a_better_size_is_what_the_program_says_of_that_size) {
  for (const char* m : {"100", "127", "129", "130", "1000", "4352", "8200"}) {
    for (const bool given : {false, true}) {
      auto options = product(m, "4096", "4096", "bf16", "H100-SXM5-80GB");
      if (given) options.insert(options.end(), {"--tile", "128x128"});
      const auto now = gemm(options);
      const auto& suggested = *first(now).find("suggested");
      if (suggested.is_null()) continue;
      const auto size = [&](const char* side) { return std::to_string(static_cast<int>(number(suggested, side))); };
      auto near = product("", "", "", "bf16", "H100-SXM5-80GB");
      near[1] = size("m"), near[3] = size("n"), near[5] = size("k");
      if (given) near.insert(near.end(), {"--tile", "128x128"});
      const auto then = gemm(near);
      EXPECT_NEAR(number(suggested, "gain_ratio"), number(then, "predicted_flops_per_second") / number(now, "predicted_flops_per_second"), 1e-9) << m << given;
      EXPECT_GT(number(suggested, "gain_ratio"), 1) << m << given;
    }
  }
}

TEST(Gemm, a_tile_from_a_kernels_name_lies_as_libraries_see_it) {
  auto options = product("256", "384", "512", "fp16", "A100-SXM4-80GB");
  options.insert(options.end(), {"--kernel", "ampere_h16816gemm_256x128_ldg8_stages_32x3_nn"});
  const auto out = gemm(options);
  EXPECT_EQ(text(first(out), "tile"), "128x256x32");
  EXPECT_EQ(text(first(out), "tile_source"), "kernel_name");
  EXPECT_NEAR(number(first(out), "overhead_ratio"), 512.0 / 384, 1e-12);
  EXPECT_EQ(number(first(out), "swapped_overhead_ratio"), 1);
}

TEST(Gemm, a_modelled_tile_says_so_and_how_good_it_is) {
  const auto measured = gemm(product("1024", "1024", "1024", "tf32", "A100-SXM4-80GB"));
  EXPECT_EQ(text(first(measured), "tile_source"), "modelled");
  EXPECT_NEAR(number(measured, "tile_model_accuracy.same_tile_ratio"), 0.63, 0.01);
  const auto unmeasured = gemm(product("1024", "1024", "1024", "bf16", "NVIDIA H100 80GB HBM3"));
  EXPECT_TRUE(unmeasured.find("tile_model_accuracy")->is_null());
  EXPECT_TRUE(test::assumes(unmeasured, "was not measured"));
}

TEST(Gemm, the_products_of_a_model_worst_first) {
  const auto out = gemm({"--config", kConfigs + "meta-llama--Meta-Llama-3.1-8B_config.json", "--tokens", "8192", "--precision", "bf16", "--gpu", "H100-SXM5-80GB", "--backward", "--tile", "128x256x64"});
  const auto& rows = *out.find("shapes")->as_array();
  double flops = 0, lost = 1e30;
  for (const auto& row : rows) {
    const double each = number(row, "theoretical_flops") * number(row, "count");
    flops += each;
    const double now = each * (number(row, "overhead_ratio") / number(row, "wave_efficiency_ratio") - 1);
    EXPECT_LE(now, lost * (1 + 1e-9));
    lost = now;
  }
  // Six FLOPs for each weight and token: 7.5 billion without the embedding.
  EXPECT_NEAR(flops, 6.0 * 7504658432 * 8192, 1);
  const auto split = gemm({"--config", kConfigs + "meta-llama--Meta-Llama-3.1-8B_config.json", "--tokens", "8192", "--precision", "bf16", "--gpu", "H100-SXM5-80GB", "--tp", "8", "--unfused"});
  EXPECT_GT(split.find("shapes")->as_array()->size(), 4u);
  EXPECT_TRUE(test::assumes(split, "attention and recurrent cores"));
}

TEST(Gemm, a_trace_plain_or_compressed_says_the_same) {
  const auto out = gemm({"--trace", kTrimmed});
  EXPECT_NEAR(number(out, "overhead_ratio"), 1.1849, 0.0001);
  EXPECT_EQ(number(out, "sm_count"), 108);
  EXPECT_EQ(number(out, "trace.kernels.tensor_gemm.count"), 1638);
  EXPECT_NEAR(number(out, "trace.overhead_covers_tensor_time_ratio"), 1, 1e-9);
  EXPECT_NEAR(number(out, "trace.tensor_time_ratio"), 0.1495, 0.0001);
  EXPECT_EQ(text(first(out), "kernel"), "cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1");
  const TempFolder folder;
  const auto plain = wire::gunzip(*base::read_file(kTrimmed), std::size_t{64} << 20);
  ASSERT_TRUE(plain.ok());
  const auto same = gemm({"--trace", folder.write("plain.json", *plain)});
  EXPECT_EQ(base::json::dump(same), base::json::dump(out));
}

TEST(Gemm, shapes_that_are_there_and_cannot_be_used_are_not_called_missing) {
  const TempFolder folder;
  const std::string trace = folder.write("t.json", R"({"deviceProperties": [{"name": "NVIDIA A100-SXM4-80GB", "numSms": 108}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10, "dur": 50, "args": {"External id": 4, "Input Dims": [[4611686018427387904, 64], [64, 64]]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 20, "dur": 1, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn", "pid": 0, "tid": 7, "ts": 90, "dur": 5, "args": {"correlation": 7, "x": NaN}}]})");
  const auto out = gemm({"--trace", trace});
  EXPECT_TRUE(test::assumes(out, "no operator has a shape that can be used: 1 of 1"));
  EXPECT_TRUE(test::assumes(out, "malformed events are left out: 1, first aten::mm with a size that no tensor has"));
  EXPECT_EQ(number(out, "trace.malformed_events"), 1);
  EXPECT_EQ(number(out, "trace.operators_with_unusable_shape"), 1);
}

TEST(Gemm, encoder_and_decoder_rows_are_named_apart) {
  const Answer answer = run_program({"gemm", "--config", kConfigs + "made--T5-small_config.json", "--gpu", "A100-SXM4-80GB", "--tokens", "512", "--precision", "bf16"});
  EXPECT_NE(answer.out.find("encoder mlp up "), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("\nmlp up "), std::string::npos) << answer.out;
}

TEST(Gemm, a_gpu_without_a_number_of_sms_is_said) {
  const TempFolder folder;
  const std::string catalog = folder.write("gpus.csv", "model,peak_dense_tflops_bf16\nMine,100\n");
  const auto out = gemm({"--m", "64", "--n", "64", "--k", "64", "--precision", "bf16", "--gpu", "Mine", "--gpu-catalog", catalog});
  EXPECT_TRUE(test::assumes(out, "the number of SMs of Mine is not known: no waves"));
}

TEST(Gemm, a_trace_of_another_gpu_than_the_named_one_is_warned_of) {
  const TempFolder folder;
  const auto packed = base::read_file(kTrimmed);
  auto plain = wire::gunzip(*packed, std::size_t{1} << 26);
  ASSERT_TRUE(plain.ok());
  const std::string name = "NVIDIA A100-PG509-200";  // which the catalogue does not know
  const Answer unknown = run_program({"gemm", "--trace", kTrimmed, "--gpu", "A100-SXM4-80GB"});
  EXPECT_NE(unknown.out.find("the trace calls its GPU " + name + ", which the catalogue does not know; --gpu A100-SXM4-80GB is taken for it"), std::string::npos) << unknown.out;
  plain->replace(plain->find(name), name.size(), "NVIDIA A100-SXM4-80GB");
  const std::string path = folder.write("known.json", *plain);
  const Answer other = run_program({"gemm", "--trace", path, "--gpu", "H100-SXM5-80GB"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_NE(other.out.find("WARNING: the trace is of A100-SXM4-80GB and not of --gpu H100-SXM5-80GB"), std::string::npos) << other.out;
  EXPECT_EQ(run_program({"gemm", "--trace", path, "--gpu", "A100-SXM4-80GB"}).out.find("WARNING"), std::string::npos);
}

TEST(Gemm, every_captured_trace_has_a_table) {
  for (const char* name : {"hta-trace_diff__control__control.trimmed.json.gz", "hta-timeline_analysis__sampled_rank-0.json.gz", "hta-amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz"}) {
    const Answer answer = run_program({"gemm", "--trace", kTraces + name, "--top", "3"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("FLOP-weighted, from 100.0 % of the tensor kernels' time"), std::string::npos) << answer.out;
  }
}

TEST(Gemm, measured_rates_beside_predicted_ones) {
  const TempFolder folder;
  const std::string path = folder.write("rates.csv", "m,n,k,precision,tflops\n4096,4096,4096,fp8,2595.7\n4096,4096,4096,bf16,700\n");
  const Answer answer = run_program({"gemm", "--measured", path, "--gpu", "H100-SXM5-80GB"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("line 2: 1 x 4096x4096x4096 fp8 at 2595.7 TFLOP/s, above the dense peak"), std::string::npos) << answer.out;
  const auto out = gemm({"--measured", path, "--gpu", "H100-SXM5-80GB"});
  EXPECT_EQ(out.find("measured")->find("impossible_lines")->as_array()->size(), 1u);
  EXPECT_EQ(number(out, "measured.predicted_over_measured_less_one.all.rows"), 1);
}

TEST(Gemm, an_overhead_that_is_attached_to_a_job_corrects_its_ofu) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const Answer imported = run_program({"import", "--store", store, "--file", FLOPSIGHT_SOURCE_DIR "/examples/simulated-h100-hour.prom.gz"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const std::vector<std::string> attach = {"gemm", "--trace", kTrimmed, "--attach", "--store", store, "--job", "llm-pretrain-worker-0", "--namespace", "foundation"};
  const Answer attached = run_program(attach);
  ASSERT_EQ(attached.exit_code, 0) << attached.err;
  EXPECT_NE(attached.out.find("attached to llm-pretrain-worker-0 in foundation"), std::string::npos) << attached.out;
  const std::vector<std::string> report = {"report", "--store", store, "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T01:00:00Z"};
  auto as_json = report;
  as_json.insert(as_json.end(), {"--format", "json"});
  const auto json = base::json::parse(run_program(as_json).out);
  ASSERT_TRUE(json.ok());
  std::size_t corrected = 0;
  for (const auto& group : *json->find("groups")->as_array()) {
    if (group.find("ofu_adjusted_ratio") == nullptr) continue;
    ++corrected;
    EXPECT_EQ(text(group, "key.job"), "llm-pretrain-worker-0");
    EXPECT_NEAR(number(group, "ofu_adjusted_ratio") * number(group, "tile_overhead_ratio"), number(group, "ofu_ratio"), 1e-12);
    EXPECT_NEAR(number(group, "tile_overhead_ratio"), 1.1849, 0.0001);
    EXPECT_NE(text(group, "tile_overhead_source").find("100.0 % of the tensor kernels' time"), std::string::npos);
  }
  EXPECT_EQ(corrected, 1u);
  const Answer table = run_program(report);
  EXPECT_NE(table.out.find("OFU adj**"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("llm-pretrain-worker-0, foundation: 1.1849, trace "), std::string::npos) << table.out;
  // A job that reports do not have, or have in another namespace, is refused.
  for (const std::size_t changed : {7U, 9U}) {
    auto other = attach;
    other[changed] = "other";
    const Answer refused = run_program(other);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find(": no job "), std::string::npos) << refused.err;
  }
  auto nowhere = attach;
  nowhere[5] = folder.path() + "/none";
  EXPECT_EQ(run_program(nowhere).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/none"));
}

TEST(Gemm, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  const std::string config = kConfigs + "meta-llama--Meta-Llama-3.1-8B_config.json";
  const auto with = [](std::vector<std::string> base, std::vector<std::string> more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
  };
  const auto good = product("64", "64", "64", "bf16", "H100-SXM5-80GB");
  const std::string gz = *base::read_file(kTraces + "hta-amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "expected one of --m, --n and --k, --config, --trace or --measured"},
      {product("0", "64", "64", "bf16", "H100-SXM5-80GB"), "--m 0: expected 1 to 2147483647"},
      {product("64", "-3", "64", "bf16", "H100-SXM5-80GB"), "--n -3: expected 1 to"},
      {product("64", "64", "2147483648", "bf16", "H100-SXM5-80GB"), "--k 2147483648: expected 1 to"},
      {product("64", "64", "99999999999999999999", "bf16", "H100-SXM5-80GB"), "--k"},
      {product("x", "64", "64", "bf16", "H100-SXM5-80GB"), "--m"},
      {product("64", "64", "64", "fp4", "A100-SXM4-80GB"), "--precision fp4: A100-SXM4-80GB has tensor peaks for fp64_tc, tf32, fp16, bf16, int8"},
      {product("64", "64", "64", "bf16", "V100-SXM2"), "--precision bf16: V100-SXM2 has tensor peaks for fp16"},
      {product("64", "64", "64", "fp32", "H100-SXM5-80GB"), "--precision fp32: expected a format of tensor cores"},
      {product("64", "64", "64", "half", "H100-SXM5-80GB"), "--precision half: expected"},
      {product("64", "64", "64", "bf16", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "--gpu NVIDIA H100 80GB HBM3 MIG 1g.10gb: a MIG instance"},
      {product("64", "64", "64", "bf16", "RTX 9999"), "--gpu RTX 9999: not in the catalogue"},
      {{"--m", "64", "--n", "64", "--precision", "bf16", "--gpu", "x"}, "--m, --n and --k go together"},
      {{"--m", "64", "--n", "64", "--k", "64", "--precision", "bf16"}, "--gpu: expected the name of a GPU; there is no default"},
      {{"--m", "64", "--n", "64", "--k", "64", "--gpu", "H100-SXM5-80GB"}, "--precision: expected"},
      {with(good, {"--tile", "0x64"}), "--tile: tile 0x64: expected MxN or MxNxK"},
      {with(good, {"--tile", "64x64", "--kernel", "x"}), "exclude each other"},
      {with(good, {"--kernel", "triton_mm_3"}), "--kernel triton_mm_3: no tile can be read from this name"},
      {with(good, {"--kernel", "ampere_sgemm_128x64_nn"}), "does not run on tensor cores"},
      {with(good, {"--tokens", "5"}), "need --config"},
      {with(good, {"--format", "xml"}), "--format xml: expected table or json"},
      {with(good, {"--attach"}), "--attach needs --trace or --config"},
      {with(good, {"--trace", kTrimmed}), "expected one of"},
      {{"--config", config, "--precision", "bf16", "--gpu", "H100-SXM5-80GB"}, "--config needs --tokens"},
      {{"--config", config, "--tokens", "0", "--precision", "bf16", "--gpu", "H100-SXM5-80GB"}, "--tokens 0"},
      {{"--config", config, "--tokens", "64", "--tp", "3", "--precision", "bf16", "--gpu", "H100-SXM5-80GB"}, "3"},
      {{"--trace", folder.path() + "/none.json"}, "none.json"},
      {{"--trace", folder.write("empty.json", "")}, "empty.json: empty, expected JSON"},
      {{"--trace", folder.write("list.json", "{\"traceEvents\": 3}")}, "list.json: no list traceEvents"},
      {{"--trace", folder.write("cut.json.gz", gz.substr(0, gz.size() / 2))}, "cut.json.gz"},
      {{"--trace", folder.write("nested.json.gz", wire::gzip(gz))}, "nested.json.gz: JSON near byte 0: expected '{' or '['"},
      {{"--trace", folder.write("bomb.json.gz", wire::gzip("{\"traceEvents\": [\"" + std::string(8 << 20, 'a')))}, "an entry of traceEvents over 4194304 bytes"},
      {{"--trace", folder.write("blank.json.gz", wire::gzip("{" + std::string(8 << 20, ' ')))}, "over 4194304 bytes outside the list"},
      {{"--trace", kTrimmed, "--precision", "bf16"}, "a kernel's name says it"},
      {{"--trace", kTrimmed, "--attach"}, "--attach needs --store and --job"},
      {{"--trace", kTrimmed, "--job", "1"}, "need --attach"},
      {{"--measured", folder.write("r.csv", "a,b\n1,2\n"), "--gpu", "H100-SXM5-80GB"}, "r.csv: line 1: no column m"},
  };
  for (const auto& [options, said] : cases) {
    std::vector<std::string> arguments = options;
    arguments.insert(arguments.begin(), "gemm");
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_EQ(answer.out, "") << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

}  // namespace
}  // namespace flopsight::app
