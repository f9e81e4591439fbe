#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::at;
using test::find;
using test::number;
using test::run_program;
using test::TempFolder;
using test::text;
using Arguments = std::vector<std::string>;

std::string config(const std::string& name) { return FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json"; }
std::string log(const std::string& name) { return FLOPSIGHT_SOURCE_DIR "/tests/fixtures/training_logs/" + name; }
const std::string kSuper = config("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8");
const std::string kSuperCard = log("megatron-bridge-verification-card-nemotron-3-super-120b-a12b.yaml");

base::json::Value audit_of(const Arguments& options, int exit_code) {
  Arguments arguments = {"audit", "--format", "json"};
  if (std::find(options.begin(), options.end(), "--gpu") == options.end()) arguments.insert(arguments.end(), {"--gpu", "H100-SXM5-80GB"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Answer answer = run_program(arguments);
  EXPECT_EQ(answer.exit_code, exit_code) << answer.err << answer.out;
  auto parsed = base::json::parse(answer.out);
  return parsed.ok() ? std::move(parsed).value() : base::json::Value();
}

bool lists(const base::json::Value& audit, const std::string& id) { return find(audit, "hypotheses", "id", id).as_object() != nullptr; }
bool says(const base::json::Value& audit, const char* list, std::string_view part) {
  const auto value = at(audit, list);
  if (value.as_array() == nullptr) return false;
  return std::any_of(value.as_array()->begin(), value.as_array()->end(), [&](const auto& line) { return line.as_string()->find(part) != std::string::npos; });
}

TEST(AuditCommand, conventions_that_know_nothing_of_documents_are_marked) {
  const Arguments options = {"--config", config("made--Llama-3-8B"), "--precision", "bf16", "--seq-len", "32768", "--tflops-per-gpu", "400", "--document-tokens", "1024"};
  const auto out = audit_of(options, 0);
  EXPECT_EQ(text(find(out, "conventions", "name", "palm"), "one_document"), "true");
  EXPECT_EQ(text(find(out, "conventions", "name", "verl"), "one_document"), "false");
  Arguments table = {"audit", "--gpu", "H100-SXM5-80GB"};
  table.insert(table.end(), options.begin(), options.end());
  const std::string shown = run_program(table).out;
  const auto row = [&](const std::string& name) { return shown.substr(shown.find("\n" + name + " ") + 1, shown.find('\n', shown.find("\n" + name + " ") + 1) - shown.find("\n" + name + " ") - 1); };
  EXPECT_NE(row("palm").find("documents as one"), std::string::npos) << shown;
  EXPECT_EQ(row("megatron").find("documents as one"), std::string::npos) << shown;
}

TEST(AuditCommand, published_latent_case_with_the_keys_of_the_contract) {
  const auto out = audit_of({"--config", kSuper, "--mfu", "54.27%", "--ofu", "0.2558", "--gpus", "288", "--precision", "bf16", "--seq-len", "8192"}, 1);
  EXPECT_EQ(text(out, "verdict"), "over_reported");
  EXPECT_EQ(text(out, "hypotheses.0.id"), "latent_ignored");
  EXPECT_NEAR(number(out, "hypotheses.0.predicted_ratio"), 2.124, 1e-3);
  EXPECT_NEAR(number(out, "hypotheses.0.observed_ratio"), 2.129, 2e-3);
  EXPECT_NEAR(number(out, "hypotheses.0.corrected_mfu_ratio"), 0.2555, 1e-3);
  EXPECT_TRUE(lists(out, "gpu_count"));
  EXPECT_NEAR(number(out, "reported.mfu_ratio"), 0.5427, 1e-9);
  for (const char* key : {"flops_per_second_per_gpu", "tokens_per_second_per_gpu", "step_seconds", "peak_flops_per_second_implied"}) {
    EXPECT_EQ(text(out, std::string("reported.") + key), "null") << key;
  }
  EXPECT_EQ(number(out, "reported.steps_used"), 0);
  EXPECT_NEAR(number(out, "reported_over_ofu_ratio"), 2.1216, 1e-3);
  EXPECT_NEAR(number(out, "expected_ofu_over_mfu_ratio"), 1.0035, 1e-3);
  EXPECT_EQ(text(out, "recomputed.convention"), "audit_causal");
  EXPECT_LT(number(out, "recomputed.band_low"), number(out, "recomputed.mfu_ratio"));
  EXPECT_GT(number(out, "recomputed.band_high"), number(out, "recomputed.mfu_ratio"));
  EXPECT_TRUE(says(out, "further_evidence", "161.0 GFLOP if latent_ignored"));
}

TEST(AuditCommand, published_hybrid_case_with_little_known) {
  const auto out = audit_of({"--config", kSuper, "--mfu", "0.2451", "--ofu", "0.1556"}, 1);
  EXPECT_EQ(text(out, "hypotheses.0.id"), "hybrid_as_attention");
  EXPECT_TRUE(says(out, "missing", "--seq-len"));
  EXPECT_TRUE(says(out, "missing", "--precision"));
}

TEST(AuditCommand, vendor_cards_charge_what_is_counted_here) {
  struct Card {
    std::string config, card, run, sequence, gpu;
    double flops_ratio;
  };
  const std::vector<Card> cards = {
      {kSuper, kSuperCard, "pretrain_performance H100", "8192", "H100-SXM5-80GB", 0.979},
      {kSuper, kSuperCard, "pretrain_performance GB300", "8192", "GB300", 0.990},
      {config("deepseek-ai--DeepSeek-V3"), log("megatron-bridge-verification-card-deepseek-v3.yaml"), "H100", "4096", "H100-SXM5-80GB", 0.998},
      {config("deepseek-ai--DeepSeek-V3"), log("megatron-bridge-verification-card-deepseek-v3.yaml"), "GB200", "4096", "GB200", 0.9975},
      {config("Qwen--Qwen3-8B"), log("megatron-bridge-verification-card-qwen3-8b.yaml"), "pretrain", "4096", "H100-SXM5-80GB", 1.0},
      {config("Qwen--Qwen3-8B"), log("megatron-bridge-verification-card-qwen3-8b.yaml"), "sft_long_context", "32768", "H100-SXM5-80GB", 1.002},
  };
  for (const Card& card : cards) {
    const auto out = audit_of({"--config", card.config, "--log", card.card, "--run", card.run, "--seq-len", card.sequence, "--gpu", card.gpu, "--gpus", "64"}, 0);
    EXPECT_EQ(text(out, "verdict"), "consistent") << card.run;
    EXPECT_NEAR(number(out, "flops_ratio"), card.flops_ratio, 2e-3) << card.run;
    EXPECT_EQ(number(out, "reported.steps_used"), 1);
  }
}

// Adapters charged as full training; a token rate that is half of what the FLOP rate and the step time of the sister runs say.
TEST(AuditCommand, vendor_cards_with_a_mistake) {
  const auto adapters = audit_of({"--config", config("Qwen--Qwen3-8B"), "--log", log("megatron-bridge-verification-card-qwen3-8b.yaml"), "--run", "peft", "--lora-rank", "32", "--seq-len", "2048"}, 1);
  EXPECT_EQ(text(adapters, "hypotheses.0.ids.0"), "lora_as_full");
  const auto hybrid = audit_of({"--config", kSuper, "--log", kSuperCard, "--run", "peft GB200", "--lora-rank", "32", "--seq-len", "8192", "--gpu", "GB200"}, 1);
  EXPECT_TRUE(lists(hybrid, "lora_as_full"));
  const auto halved = audit_of({"--config", kSuper, "--log", kSuperCard, "--run", "pretrain_performance GB200", "--seq-len", "8192", "--gpu", "GB200"}, 1);
  EXPECT_EQ(text(halved, "verdict"), "over_reported");
  EXPECT_TRUE(lists(halved, "gpu_count"));
  EXPECT_TRUE(lists(halved, "latent_ignored"));
}

// Two hours: in the first the tensor pipes are busy 20 % of the time, in the second 40 %, at the reference clock; of the second is the log.
TEST(AuditCommand, the_ofu_beside_a_log_is_that_of_the_time_of_its_steps) {
  const TempFolder folder;
  const std::string labels = test::h100("GPU-a", "n1", "0", "hpc_job=\"7\"");
  std::vector<std::string> activity = test::times(240, "0.20"), second = test::times(240, "0.40");
  activity.insert(activity.end(), second.begin(), second.end());
  const std::string prom = folder.write("fleet.prom", test::series(test::kTensor, labels, 15, activity) + test::series(test::kClock, labels, 15, test::times(480, "1830")));
  const std::string store = folder.path() + "/store";
  ASSERT_EQ(run_program({"import", "--store", store, "--file", prom}).exit_code, 0);
  std::string steps;
  for (int step = 1; step <= 20; ++step) {
    const units::Instant time{test::kStartMilliseconds + 3'600'000 + step * 170'000};
    steps += "[" + units::to_rfc3339(time) + "] iteration " + std::to_string(step) + "/ 20 | elapsed time per iteration (ms): 170000.0 | MFU: 40.0% |\n";
  }
  const std::string log_of_second_hour = folder.write("train.log", steps);
  const Arguments common = {"--config", config("made--Llama-3-8B"), "--precision", "bf16", "--seq-len", "4096", "--recompute", "none", "--store", store, "--job", "7"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const auto of_log = audit_of(with({"--log", log_of_second_hour}), 0);
  EXPECT_NEAR(number(of_log, "ofu_ratio"), 0.4, 0.004);
  EXPECT_EQ(text(of_log, "verdict"), "consistent");
  // Also where the window that is asked for is another.
  EXPECT_NEAR(number(audit_of(with({"--log", log_of_second_hour, "--since", "90m"}), 0), "ofu_ratio"), 0.4, 0.004);
  // The same claim beside both hours is over-reported.
  const auto of_both = audit_of(with({"--mfu", "40%"}), 1);
  EXPECT_NEAR(number(of_both, "ofu_ratio"), 0.3, 0.003);
  EXPECT_EQ(text(of_both, "verdict"), "over_reported");
  // Without times it is the window's, which is said.
  std::string undated = steps;
  for (std::size_t at = undated.find('['); at != std::string::npos; at = undated.find('[')) undated.erase(at, undated.find(']', at) - at + 1);
  const auto of_undated = audit_of(with({"--log", folder.write("undated.log", undated)}), 1);
  EXPECT_NEAR(number(of_undated, "ofu_ratio"), 0.3, 0.003);
  EXPECT_TRUE(says(of_undated, "assumptions", "OFU is that of the whole window"));
}

// 6 x all parameters of a mixture of experts: above 100 % in every step.
TEST(AuditCommand, a_log_that_claims_the_impossible_throughout_is_judged) {
  const TempFolder folder;
  std::string steps;
  for (int step = 1; step <= 20; ++step) steps += "step: " + std::to_string(step) + "  loss: 7.6  tps: 10,630  tflops: 1947.30  mfu: 196.90%\n";
  const auto audit = audit_of({"--config", config("Qwen--Qwen3-30B-A3B"), "--precision", "bf16", "--seq-len", "8192", "--gpus", "64", "--recompute", "none", "--log",
                               folder.write("train.log", steps)}, 1);
  EXPECT_EQ(text(audit, "verdict"), "over_reported");
  EXPECT_NEAR(number(audit, "reported.mfu_ratio"), 1.969, 1e-3);
  EXPECT_EQ(text(audit, "hypotheses.0.ids.0"), "all_experts_counted");
  EXPECT_TRUE(says(audit, "assumptions", "all steps of the log are above the peak"));
}

// A batch that is ramped up: each step's tokens are of its own batch, and a log whose every line is right is not accused.
TEST(AuditCommand, a_batch_that_ramps_up_is_that_of_each_step) {
  const TempFolder folder;
  const auto ramp = [](double tflops_factor, std::size_t at_the_end) {
    std::string lines;
    int step = 0;
    const auto add = [&](int batch, std::size_t steps) {
      // 2.3406 s for 128 sequences of 8192 tokens on 64 GPUs, of 51.4 GFLOP a token.
      for (std::size_t i = 0; i < steps; ++i) {
        lines += " iteration " + std::to_string(++step) + "/ 500000 | elapsed time per iteration (ms): " + std::to_string(2340.6 * batch / 128) +
                 " | throughput per GPU (TFLOP/s/GPU): " + std::to_string(360.3 * tflops_factor) + " | global batch size: " + std::to_string(batch) + " | lm loss: 2.0E+00 |\n";
      }
    };
    for (int batch = 128; batch < 1024; batch += 128) add(batch, 3);
    add(1024, at_the_end);
    return lines;
  };
  const auto of = [&](const std::string& text_of_log, int exit_code, Arguments more = {}) {
    more.insert(more.end(), {"--config", config("made--Llama-3-8B"), "--log", folder.write("ramp.log", text_of_log), "--gpus", "64", "--seq-len", "8192", "--precision", "bf16"});
    return audit_of(more, exit_code);
  };
  const auto right = of(ramp(1, 200), 0);
  EXPECT_EQ(text(right, "verdict"), "consistent") << text(right, "summary");
  EXPECT_NEAR(number(right, "flops_ratio"), 1, 0.02);
  EXPECT_TRUE(says(right, "assumptions", "each step's global batch x sequence length / its time / GPUs"));
  // No one batch is of most steps.
  EXPECT_EQ(text(of(ramp(1, 2), 0), "verdict"), "consistent");
  const auto doubled = of(ramp(2, 200), 1);
  EXPECT_EQ(text(doubled, "verdict"), "over_reported");
  EXPECT_NEAR(number(doubled, "flops_ratio"), 2, 0.04);
  EXPECT_TRUE(lists(doubled, "gpu_count"));
  // What was given goes before what the steps print.
  EXPECT_NEAR(number(of(ramp(1, 200), 0, {"--global-batch", "1024"}), "flops_ratio"), 1, 0.02);
  const Answer shown = run_program({"logs", folder.write("ramp.log", ramp(1, 200))});
  EXPECT_NE(shown.out.find("128 … 1024"), std::string::npos) << shown.out;
  // NeMo's own wording.
  std::string nemo;
  for (int step = 0; step < 50; ++step) {
    const bool first = step < 10;
    nemo += "Training epoch 0, iteration " + std::to_string(step) + "/999 | lr: 1.5e-07 | global_batch_size: " + (first ? "64" : "128") + " | global_step: " + std::to_string(step) +
            " | reduced_train_loss: 10.9 | train_step_timing in s: " + (first ? "1.170" : "2.340") + " | TFLOPS_per_GPU: 360.3\n";
  }
  EXPECT_EQ(text(of(nemo, 0), "verdict"), "consistent");
}

TEST(AuditCommand, a_log_without_a_claim_still_gives_its_mfu) {
  const auto out = audit_of({"--config", config("made--Llama-3.1-405B"), "--log", log("mlperf-v5.0-nvidia-eos-64xH100node-llama31_405b.txt"), "--gpus", "512", "--precision", "fp8"}, 0);
  EXPECT_EQ(text(out, "verdict"), "undecided");
  EXPECT_TRUE(says(out, "missing", "a claim"));
  // 1152 sequences of 8192 tokens in 55.2 s on 512 GPUs at 2.524 TFLOP a token.
  EXPECT_NEAR(number(out, "recomputed.mfu_ratio"), 1152 * 8192 / 55.2 / 512 * 2.52397e12 / 1978.9e12, 5e-3);
}

TEST(AuditCommand, a_log_of_another_model_is_not_compared) {
  const TempFolder folder;
  const std::string megatron = folder.write("log",
                                            "  num_layers ...................................... 61\n"
                                            "  hidden_size ..................................... 7168\n"
                                            "  seq_length ...................................... 4096\n"
                                            "  global_batch_size ............................... 64\n"
                                            " iteration 2/ 10 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 64 |\n"
                                            " iteration 3/ 10 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 64 |\n");
  const auto out = audit_of({"--config", config("made--Llama-3-8B"), "--log", megatron, "--gpus", "8", "--precision", "bf16", "--ofu", "0.4"}, 0);
  EXPECT_EQ(text(out, "verdict"), "undecided");
  EXPECT_TRUE(says(out, "missing", "the log prints 61 layers, the configuration has 32"));
  EXPECT_TRUE(says(out, "missing", "7168 hidden_size"));
  EXPECT_EQ(test::count(out, "hypotheses"), 0U);
}

TEST(AuditCommand, what_is_missing_is_said_and_not_guessed) {
  const auto nothing = audit_of({"--config", kSuper, "--mfu", "0.4"}, 0);
  EXPECT_EQ(text(nothing, "verdict"), "undecided");
  EXPECT_TRUE(says(nothing, "missing", "OFU"));
  const auto no_fp8 = audit_of({"--config", kSuper, "--tflops-per-gpu", "200", "--gpu", "A100-SXM4-80GB", "--precision", "fp8", "--ofu", "0.4"}, 0);
  EXPECT_TRUE(says(no_fp8, "missing", "dense peak of A100-SXM4-80GB for fp8"));
  const auto dead = audit_of({"--config", kSuper, "--mfu", "0.4", "--ofu", "0", "--precision", "bf16"}, 0);
  EXPECT_EQ(text(dead, "verdict"), "undecided");
  EXPECT_TRUE(says(dead, "missing", "counters failed"));
}

TEST(AuditCommand, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--config", kSuper, "--mfu", "54", "--gpu", "H100-SXM5-80GB"}, "--mfu 54: expected a ratio from 0 to 10; a percentage is written 54%"},
      {{"--config", kSuper, "--mfu", "nan", "--gpu", "H100-SXM5-80GB"}, "--mfu nan: expected a ratio"},
      {{"--config", kSuper, "--mfu", "-1", "--gpu", "H100-SXM5-80GB"}, "--mfu -1: expected a ratio"},
      {{"--config", kSuper, "--mfu", "0.4", "--ofu", "25.58", "--gpu", "H100-SXM5-80GB"}, "--ofu 25.58: expected a ratio from 0 to 1; a percentage is written 25.58%"},
      {{"--config", kSuper, "--tflops-per-gpu", "nan", "--gpu", "H100-SXM5-80GB"}, "--tflops-per-gpu"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--gpus", "0"}, "--gpus"},
      {{"--config", kSuper, "--gpu", "H100-SXM5-80GB"}, "expected a claim"},
      {{"--config", kSuper, "--mfu", "0.4"}, "--gpu is required"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "Z900"}, "--gpu Z900: not in the catalogue (flopsight docs gpus lists it); --gpu-catalog adds one"},
      {{"--config", kSuper, "--mfu", "0.4", "--ofu", "0.4", "--gpu", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"},
       "--gpu NVIDIA H100 80GB HBM3 MIG 1g.10gb: a MIG instance, which has a part of its GPU's peak and memory; expected a whole GPU, such as H100-SXM5-80GB"},
      {{"--config", kSuper, "--mfu", "0.4", "--ofu", "0.4", "--gpu", "H100"}, "--gpu H100: not in the catalogue, which has H100"},
      {{"--mfu", "0.4", "--gpu", "H100-SXM5-80GB"}, "--config is required"},
      {{"--config", folder.path() + "/none.json", "--mfu", "0.4", "--gpu", "H100-SXM5-80GB"}, "none.json: cannot open"},
      {{"--config", kSuper, "--log", folder.path() + "/none.log", "--gpu", "H100-SXM5-80GB"}, "none.log"},
      {{"--config", kSuper, "--log", folder.write("empty.log", "hello\n"), "--gpu", "H100-SXM5-80GB"}, "nothing matched in 1 lines"},
      {{"--config", kSuper, "--log", kSuperCard, "--gpu", "H100-SXM5-80GB"}, "has several runs, choose one with --run: pretrain H100 bf16"},
      {{"--config", kSuper, "--log", kSuperCard, "--run", "x", "--gpu", "H100-SXM5-80GB"}, "--run x fits 0 runs"},
      {{"--config", kSuper, "--log", kSuperCard, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB"}, "--log excludes --mfu"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--store", folder.path()}, "--store and --job go together"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--store", folder.path() + "/none", "--job", "a"}, "none"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--precision", "half"}, "--precision half: expected bf16"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--precision", "int8"}, "--precision int8: expected bf16"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--gpus", "4", "--tp", "8"}, "--gpus 4: fewer than --tp 8 need"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--gpus", "8", "--tp", "4", "--pp", "4"}, "--gpus 8: fewer than --tp 4, --pp 4 need"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--gpus", "4", "--ep", "8"}, "--gpus 4: fewer than --ep 8 need"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--recompute", "some"}, "--recompute some: expected none"},
      {{"--config", kSuper, "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--format", "csv"}, "--format csv: expected table or json"},
      {{"--config", kSuper, "--step-seconds", "2", "--mfu", "0.4", "--gpu", "H100-SXM5-80GB"}, "--step-seconds needs --global-batch and --gpus"},
      {{"--config", config("made--Llama-3-8B"), "--mfu", "0.4", "--gpu", "H100-SXM5-80GB", "--mtp", "1"}, "has no multi-token prediction layers"},
  };
  for (const auto& [options, said] : cases) {
    Arguments arguments = {"audit"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_EQ(answer.out, "") << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << said << " / " << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

TEST(AuditCommand, the_table_says_the_same) {
  const Answer answer = run_program({"audit", "--config", kSuper, "--mfu", "0.5427", "--ofu", "0.2558", "--gpu", "H100-SXM5-80GB", "--gpus", "288", "--precision", "bf16", "--seq-len", "8192"});
  EXPECT_EQ(answer.exit_code, 1);
  for (const char* part : {"verdict               over_reported", "2.12 x OFU 25.58 %", "nearest explanation: latent_ignored (2.12)", "Megatron-LM #2977", "would decide: "}) {
    EXPECT_NE(answer.out.find(part), std::string::npos) << part << "\n" << answer.out;
  }
}

std::string megatron_run(int gpus, double milliseconds) {
  std::string out = "using world size: " + std::to_string(gpus) + ", data-parallel size: 1\n";
  for (int step = 1; step <= 10; ++step) {
    out += " iteration " + std::to_string(step) + "/ 100 | elapsed time per iteration (ms): " + std::to_string(milliseconds) +
           " | throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 128 |\n";
  }
  return out;
}

TEST(AuditCommand, logs_of_different_runs_are_refused_in_either_order) {
  const TempFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::string small = file("a.log", megatron_run(64, 1000)), large = file("b.log", megatron_run(256, 1000)), again = file("c.log", megatron_run(64, 1010)),
                    slow = file("d.log", megatron_run(64, 3000)), titan = file("e.log", "step: 1  loss: 5.1  tps: 7,000  tflops: 300.00  mfu: 30.00%\n");
  const auto both = [&](const std::string& one, const std::string& other) {
    return run_program({"audit", "--config", kSuper, "--gpu", "H100-SXM5-80GB", "--precision", "bf16", "--seq-len", "8192", "--log", one, "--log", other});
  };
  for (const auto& [other, why] : {std::pair(large, "world_size is "), std::pair(slow, "both begin with the same step"), std::pair(titan, "the frameworks are ")}) {
    for (const Answer& answer : {both(small, other), both(other, small)}) {
      EXPECT_EQ(answer.exit_code, 2) << answer.out;
      EXPECT_NE(answer.err.find(std::string("are of different runs: ") + why), std::string::npos) << answer.err;
    }
  }
  EXPECT_NE(both(small, again).exit_code, 2);
}

TEST(AuditCommand, a_label_for_a_log_that_has_none_is_said) {
  const TempFolder folder;
  const Answer answer = run_program({"audit", "--config", kSuper, "--gpu", "H100-SXM5-80GB", "--log", folder.write("a.log", megatron_run(64, 1000)), "--run", "nope"});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.err.find("--run nope was given, and it has one run, without a label; expected no --run"), std::string::npos) << answer.err;
}

// Steps of 1,000 tokens a second and GPU at the rate that so many FLOPs of a token make.
std::string steps_with(const std::string& settings, double flops_per_token) {
  std::string out = settings;
  for (int step = 1; step <= 10; ++step) {
    out += " iteration " + std::to_string(step) + "/ 100 | elapsed time per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): " +
           std::to_string(flops_per_token * 1000 / 1e12) + " | tokens/s/GPU inst/harmonic mean: 1000.0/1000.0 |\n";
  }
  return out;
}

TEST(AuditCommand, steps_of_multi_token_prediction_are_those_that_the_log_prints) {
  const TempFolder folder;
  const std::string v3 = config("deepseek-ai--DeepSeek-V3");
  const auto audit = [&](const std::string& settings, double flops_per_token, int exit_code) {
    return audit_of({"--config", v3, "--precision", "bf16", "--seq-len", "4096", "--recompute", "none", "--log", folder.write("a.log", steps_with(settings, flops_per_token))}, exit_code);
  };
  const double without = number(audit("  mtp_num_layers ........... None\n", 2.4e11, 1), "recomputed.flops_per_token_train");
  ASSERT_GT(without, 1e11);
  const auto ignored = audit("  mtp_num_layers ........... 1\n", without, 1);
  EXPECT_EQ(text(ignored, "hypotheses.0.id"), "mtp_ignored");
  EXPECT_GT(number(ignored, "recomputed.flops_per_token_train"), without * 1.01);
  const auto none = audit("  mtp_num_layers ........... None\n", without * 1.04, 1);
  EXPECT_FALSE(says(none, "assumptions", "multi-token prediction with"));
  EXPECT_NEAR(number(none, "recomputed.flops_per_token_train"), without, without * 1e-9);
}

TEST(AuditCommand, logs_of_two_ranks_count_a_step_once) {
  const TempFolder folder;
  const auto log_of = [&](const char* name, int first, double tflops) {
    std::string steps;
    for (int step = first; step < first + 20; ++step) steps += "step: " + std::to_string(step) + "  loss: 7.6  tps: 8,000  tflops: " + std::to_string(tflops) + "  mfu: 40.00%\n";
    return folder.write(name, steps);
  };
  const auto used = [&](const std::string& one, const std::string& other) {
    return number(audit_of({"--config", config("made--Llama-3-8B"), "--precision", "bf16", "--seq-len", "4096", "--recompute", "none", "--log", one, "--log", other}, 0), "reported.steps_used");
  };
  EXPECT_EQ(used(log_of("r0.log", 1, 386), log_of("r127.log", 1, 387)), 20);
  // The second part of a run that went on.
  EXPECT_EQ(used(log_of("a.log", 1, 386), log_of("b.log", 21, 387)), 40);
}

TEST(AuditCommand, a_log_of_other_experts_of_a_token_or_heads_of_keys_is_not_compared) {
  const TempFolder folder;
  const auto audit = [&](const char* model, const std::string& settings) {
    return audit_of({"--config", config(model), "--precision", "bf16", "--seq-len", "4096", "--recompute", "none", "--log", folder.write("a.log", steps_with(settings, 4e10))}, 0);
  };
  const auto dense = audit("made--Llama-3-8B", "  num_experts ........... 8\n");
  EXPECT_TRUE(says(dense, "missing", "the log prints 8 experts, the configuration has none"));
  EXPECT_EQ(text(dense, "verdict"), "undecided");
  EXPECT_TRUE(says(audit("made--Llama-3-8B", "  num_moe_experts ........... 8\n"), "missing", "8 experts, the configuration has none"));
  for (const char* none : {"  num_experts ........... None\n", "  num_experts ........... 1\n", "  moe_router_topk ........... 2\n"}) {
    const auto right = audit_of({"--config", config("made--Llama-3-8B"), "--precision", "bf16", "--seq-len", "4096", "--log", folder.write("a.log", steps_with(none, 48.25e9))}, 0);
    EXPECT_EQ(text(right, "verdict"), "consistent") << none;
  }
  const auto top_k = audit("deepseek-ai--DeepSeek-V3", "  num_experts ........... 256\n  moe_router_topk ........... 1\n");
  EXPECT_EQ(text(top_k, "verdict"), "undecided");
  EXPECT_TRUE(says(top_k, "missing", "the log prints 1 experts of a token, the configuration has 8"));
  const auto groups = audit("made--Llama-3-8B", "  num_attention_heads ........... 32\n  group_query_attention ........... False\n  num_query_groups ........... 1\n");
  EXPECT_EQ(text(groups, "verdict"), "undecided");
  EXPECT_TRUE(says(groups, "missing", "the log prints 32 heads of keys and values, the configuration has 8"));
}

}  // namespace
}  // namespace flopsight::app
