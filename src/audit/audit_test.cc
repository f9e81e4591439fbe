#include "audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/test_models.h"

namespace flopsight::audit {
namespace {

using catalog::DeviceCatalog;
using catalog::Precision;

Run run_of(const std::string& config, std::uint64_t sequence_tokens = 8192) {
  Run run;
  run.model = flops::test::model_of(config);
  run.sequence_tokens = sequence_tokens;
  run.prediction_steps = 0;
  run.recompute = flops::Recompute::kNone;
  run.device = DeviceCatalog::builtin().find("H100 SXM");
  run.precision = Precision::kBf16;
  run.layout.gpus = 64;
  return run;
}

const std::string kSuper = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8";

Audit of(const Run& run, const Claim& claim, std::optional<double> ofu = std::nullopt) {
  return audit(run, claim, {ofu, true}, DeviceCatalog::builtin());
}
Claim mfu(double ratio) {
  Claim claim;
  claim.mfu_ratio = ratio;
  return claim;
}
bool lists(const Audit& audit, const std::string& id) {
  return std::any_of(audit.hypotheses.begin(), audit.hypotheses.end(), [&](const Ranked& r) { return r.hypothesis.id == id; });
}
std::string first(const Audit& audit) { return audit.hypotheses.empty() ? "none" : audit.hypotheses.front().hypothesis.id; }
std::string all(const Audit& audit) {
  std::string ids = std::string(verdict_name(audit.verdict)) + ":";
  for (const Ranked& r : audit.hypotheses) ids += " " + r.hypothesis.id + "=" + std::to_string(r.hypothesis.ratio);
  return ids;
}

TEST(Audit, published_latent_case) {
  const Audit a = of(run_of(kSuper), mfu(0.5427), 0.2558);
  EXPECT_EQ(a.verdict, Verdict::kOverReported);
  EXPECT_EQ(first(a), "latent_ignored") << all(a);
  EXPECT_NEAR(a.hypotheses.front().hypothesis.ratio, 2.124, 1e-3);
  EXPECT_NEAR(*a.hypotheses.front().corrected_mfu_ratio, 0.5427 / 2.124, 1e-3);
  EXPECT_TRUE(lists(a, "gpu_count"));
  EXPECT_TRUE(lists(a, "gradient_accumulation"));
  EXPECT_NEAR(*a.reported_over_ofu_ratio, 2.1216, 1e-3);
}

TEST(Audit, published_hybrid_case) {
  for (const std::uint64_t tokens : {std::uint64_t{4096}, std::uint64_t{8192}}) {
    const Audit a = of(run_of(kSuper, tokens), mfu(0.2451), 0.1556);
    EXPECT_EQ(a.verdict, Verdict::kOverReported);
    EXPECT_EQ(first(a), "hybrid_as_attention") << all(a);
  }
  const Audit a = of(run_of("made--Nemotron-3-Nano-30B-A3B", 32768), mfu(0.2451), 0.1556);
  EXPECT_EQ(first(a), "hybrid_as_attention") << all(a);
}

TEST(Audit, a_tower_without_text_is_not_judged) {
  const Audit a = of(run_of("made--ViT-B-16"), mfu(0.9), 0.2);
  EXPECT_EQ(a.verdict, Verdict::kUndecided);
  EXPECT_TRUE(a.hypotheses.empty());
}

std::vector<std::string> configs() {
  std::vector<std::string> names;
  const std::string folder = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("_config.json")) names.push_back(name.substr(0, name.size() - std::string("_config.json").size()));
    if (!names.empty() && names.back().find("ViT") != std::string::npos) names.pop_back();  // a tower without text
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr std::uint64_t kSequences[] = {4096, 32768, 131072};

// Every mistake that a model's count can have, told as FLOP rate and token rate, and as MFU beside OFU.
TEST(Audit, every_wrong_count_is_named_from_the_log_and_from_ofu) {
  std::map<std::string, int> seen_in_log, seen_by_ofu;
  for (const std::string& config : configs()) {
    for (const std::uint64_t tokens : kSequences) {
      audit::Run run = run_of(config, tokens);
      if (run.model.prediction_steps > 0) run.prediction_steps = 2;
      const double right = flops_per_token(run);
      const double expected = expected_ofu_over_mfu(run, flops::Recompute::kNone, std::nullopt).ratio;
      for (const Hypothesis& mistake : flops_hypotheses(run)) {
        const std::string name = config + " " + std::to_string(tokens) + " " + mistake.id + " " + std::to_string(mistake.ratio);
        Claim claim;
        claim.tokens_per_second_per_gpu = 0.3 * run.device->peak(Precision::kBf16)->value / right;
        claim.flops_per_second_per_gpu = *claim.tokens_per_second_per_gpu * right * mistake.ratio;
        const Audit from_log = of(run, claim);
        const double size = std::abs(std::log(mistake.ratio));
        if (size > kLogAgrees) {
          EXPECT_TRUE(lists(from_log, mistake.id)) << name << " " << all(from_log);
          EXPECT_EQ(from_log.verdict, mistake.ratio > 1 ? Verdict::kOverReported : Verdict::kUnderReported) << name;
          EXPECT_LT(from_log.hypotheses.front().distance_ratio, 1e-6) << name;
          ++seen_in_log[mistake.id];
        } else {
          EXPECT_EQ(from_log.verdict, Verdict::kConsistent) << name;
        }
        const Audit by_ofu = of(run, mfu(0.3 * mistake.ratio), 0.3 * expected);
        if (size > kOfuAgrees) {
          EXPECT_TRUE(lists(by_ofu, mistake.id)) << name << " " << all(by_ofu);
          EXPECT_NE(by_ofu.verdict, Verdict::kConsistent) << name;
          ++seen_by_ofu[mistake.id];
        } else if (mistake.ratio * 0.3 < 1) {
          EXPECT_EQ(by_ofu.verdict, Verdict::kConsistent) << name;
        }
      }
    }
  }
  for (const char* id : {"latent_ignored", "moe_layers_ignored", "all_experts_counted", "experts_top1", "experts_full_width", "shared_expert_ignored",
                         "hybrid_as_attention", "recurrent_width", "recurrent_core_ignored", "gate_assumed", "gate_ignored", "intermediate_size_ignored",
                         "gqa_ignored", "head_dim", "causal_counted_full", "window_ignored", "attention_ignored", "mla_as_mha", "embedding_counted",
                         "vocab_ignored", "indexer_ignored", "mtp_ignored", "recompute_counted", "attention_backward_counted", "attention_counted_twice"}) {
    EXPECT_GT(seen_in_log[id], 0) << id;
  }
  for (const char* id : {"latent_ignored", "moe_layers_ignored", "all_experts_counted", "experts_top1", "experts_full_width", "hybrid_as_attention",
                         "gate_assumed", "gate_ignored", "head_dim", "causal_counted_full", "window_ignored", "attention_ignored", "mla_as_mha",
                         "recompute_counted", "attention_counted_twice"}) {
    EXPECT_GT(seen_by_ofu[id], 0) << id;
  }
}

// What the run does, what the GPUs execute for it, and noise of 10 %: no accusation.
TEST(Audit, the_innocent_are_consistent) {
  int audits = 0;
  for (const std::string& config : configs()) {
    for (const std::uint64_t tokens : kSequences) {
      for (const flops::Recompute recompute : {flops::Recompute::kNone, flops::Recompute::kSelective, flops::Recompute::kFull}) {
        for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
          for (const bool adapters : {false, true}) {
            audit::Run run = run_of(config, tokens);
            run.recompute = recompute;
            run.precision = precision;
            if (adapters) {
              auto trained = flops::with_adapters(run.model, {16, {"all"}});
              if (!trained.ok()) continue;
              run.model = std::move(trained).value();
              run.has_adapters = true;
            }
            const double right = flops_per_token(run), peak = run.device->peak(precision)->value;
            const double bf16 = run.device->peak(Precision::kBf16)->value;
            const double executed = expected_ofu_over_mfu(run, recompute, peak).ratio;
            for (const double noise : {0.9, 1.0, 1.1}) {
              const std::string name = config + " " + std::to_string(tokens) + " noise " + std::to_string(noise);
              const double ofu = 0.3 * executed * noise;
              EXPECT_EQ(of(run, mfu(0.3), ofu).verdict, Verdict::kConsistent) << name << all(of(run, mfu(0.3), ofu));
              EXPECT_EQ(of(run, mfu(0.3 * peak / bf16), ofu).verdict, Verdict::kConsistent) << name << " of the BF16 peak";
              Claim claim;
              claim.flops_per_second_per_gpu = 0.3 * peak;
              EXPECT_EQ(of(run, claim, ofu).verdict, Verdict::kConsistent) << name << " by rate";
              claim.tokens_per_second_per_gpu = 0.3 * peak / right;
              claim.mfu_ratio = 0.3;
              claim.peak_flops_per_second = peak;
              const Audit whole = of(run, claim, ofu);
              EXPECT_EQ(whole.verdict, Verdict::kConsistent) << name << all(whole);
              EXPECT_TRUE(whole.hypotheses.empty());
              EXPECT_NEAR(*whole.mfu_recomputed_ratio, 0.3, 1e-9);
              audits += 4;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(audits, 10'000);
}

}  // namespace
}  // namespace flopsight::audit
