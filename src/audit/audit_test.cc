#include "audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "audit/test_runs.h"
#include "flops/adapters.h"

namespace flopsight::audit {
namespace {

using namespace test;

TEST(Audit, a_claim_above_the_peak_says_why_it_is_over_reported) {
  const Audit a = of(run_of(kSuper), mfu(1.2));
  EXPECT_EQ(a.verdict, Verdict::kOverReported);
  EXPECT_EQ(a.summary, "an MFU of 120.00 % is above 100 % of the dense peak, which cannot be");
  EXPECT_EQ(of(run_of(kSuper), mfu(1.0)).verdict, Verdict::kUndecided);
  const Audit measured = of(run_of(kSuper), mfu(1.2), 0.3);
  EXPECT_EQ(measured.verdict, Verdict::kOverReported);
  EXPECT_EQ(measured.summary.rfind("reported MFU 120.00 % is 4.00 x OFU 30.00 %", 0), 0U) << measured.summary;
  EXPECT_NE(measured.summary.find("; an MFU of 120.00 % is above 100 % of the dense peak, which cannot be"), std::string::npos) << measured.summary;
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
          // A program that makes nearly the same figure is named with its own.
          EXPECT_LT(from_log.hypotheses.front().distance_ratio, from_log.hypotheses.front().hypothesis.conventions.empty() ? 0.02 : 0.13) << name;
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
                         "gqa_ignored", "head_dim", "moe_frequency_ignored", "shared_layers_once", "causal_counted_full", "window_ignored", "attention_ignored", "mla_as_mha", "embedding_counted",
                         "vocab_ignored", "indexer_ignored", "mtp_ignored", "recompute_counted", "attention_backward_counted"}) {
    EXPECT_GT(seen_in_log[id], 0) << id;
  }
  for (const char* id : {"latent_ignored", "moe_layers_ignored", "all_experts_counted", "experts_top1", "experts_full_width", "hybrid_as_attention",
                         "gate_assumed", "gate_ignored", "head_dim", "causal_counted_full", "window_ignored", "attention_ignored", "mla_as_mha",
                         "recompute_counted"}) {
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

Claim rate_and_mfu(double flops_per_second, double mfu_ratio) {
  Claim claim = mfu(mfu_ratio);
  claim.flops_per_second_per_gpu = flops_per_second;
  claim.peak_flops_per_second = flops_per_second / mfu_ratio;
  return claim;
}

TEST(AuditPeak, implied_peaks_are_named) {
  struct Case {
    const char* gpu;
    Precision precision;
    double peak;
    const char* id;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"H100 SXM", Precision::kBf16, 1979e12, "sparse_peak", "sparsity"},
      {"B200", Precision::kBf16, 4.5e15, "sparse_peak", "sparsity"},
      {"H100 SXM", Precision::kBf16, 312e12, "peak_of_other_gpu", "A100-SXM4-80GB"},
      {"H100 SXM", Precision::kBf16, 756e12, "peak_of_other_gpu", "H100-PCIe"},
      {"H200", Precision::kBf16, 148e12, "peak_of_other_gpu", "H20"},
      {"H100 SXM", Precision::kBf16, 494.7e12, "peak_of_other_precision", "TF32"},
      {"H100 SXM", Precision::kFp8, 989.4e12, "peak_of_other_precision", "BF16"},
      {"H100 SXM", Precision::kBf16, 794.5e12, "measured_gemm_peak", "measured"},
      {"A100 SXM4 80GB", Precision::kBf16, 271e12, "measured_gemm_peak", "measured"},
  };
  for (const Case& c : cases) {
    audit::Run run = run_of("made--Llama-3-8B");
    run.device = DeviceCatalog::builtin().find(c.gpu);
    run.precision = c.precision;
    const double own = run.device->peak(c.precision)->value;
    const Audit a = of(run, rate_and_mfu(0.4 * own, 0.4 * own / c.peak));
    EXPECT_EQ(a.verdict, Verdict::kWrongPeak) << c.id << " " << all(a);
    const auto named = std::find_if(a.hypotheses.begin(), a.hypotheses.end(), [&](const Ranked& r) { return r.hypothesis.id == c.id; });
    ASSERT_NE(named, a.hypotheses.end()) << c.id << " " << all(a);
    EXPECT_NE(named->hypothesis.explanation.find(c.says), std::string::npos) << named->hypothesis.explanation;
    EXPECT_NEAR(*named->corrected_mfu_ratio, 0.4, 0.006);
    // From OFU alone, as far as it shows.
    run.precision = c.precision;
    if (std::string(c.gpu)[0] != 'H' || c.precision != Precision::kBf16) continue;
    const Audit by_ofu = of(run, mfu(0.2 * own / c.peak), 0.2 * expected_ofu_over_mfu(run, flops::Recompute::kNone, own).ratio);
    EXPECT_TRUE(lists(by_ofu, c.id)) << c.id << " " << all(by_ofu);
    EXPECT_NE(by_ofu.verdict, Verdict::kConsistent);
  }
}

TEST(AuditPeak, the_right_peak_however_it_is_rounded) {
  for (const double peak : {989e12, 989.4e12, 989.5e12, 990e12, 1000e12, 975e12}) {
    const Audit a = of(run_of("made--Llama-3-8B"), rate_and_mfu(0.4 * peak, 0.4), 0.4);
    EXPECT_EQ(a.verdict, Verdict::kConsistent) << peak;
    EXPECT_TRUE(a.hypotheses.empty());
  }
  audit::Run gb200 = run_of("made--Llama-3-8B");
  gb200.device = DeviceCatalog::builtin().find("GB200");
  EXPECT_EQ(of(gb200, rate_and_mfu(1000e12, 1000.0 / 2450), 0.4).verdict, Verdict::kConsistent);
}

TEST(AuditPeak, without_gpu_or_precision_nothing_is_judged) {
  audit::Run run = run_of("made--Llama-3-8B");
  run.precision.reset();
  const Audit a = of(run, rate_and_mfu(400e12, 400.0 / 1979));
  EXPECT_EQ(a.verdict, Verdict::kUndecided);
  EXPECT_FALSE(a.own_peak_flops_per_second);
  run.device = nullptr;
  EXPECT_EQ(of(run, rate_and_mfu(400e12, 400.0 / 1979)).verdict, Verdict::kUndecided);
}

TEST(AuditPeak, two_mistakes_that_cancel_are_told) {
  audit::Run run = run_of("Qwen--Qwen3-30B-A3B", 131072);
  // Full attention (1.89) judged at the sparse peak (0.5).
  flops::CountingRules full;
  full.causal = flops::CausalRule::kFull;
  const double wrong = flops::train_cost(run.model, workload_of(run), full).total();
  Claim claim = rate_and_mfu(400e12, 400.0 / 1978.9);
  claim.tokens_per_second_per_gpu = 400e12 / wrong;
  const Audit a = of(run, claim);
  EXPECT_EQ(a.verdict, Verdict::kWrongPeak);
  EXPECT_TRUE(lists(a, "causal_counted_full") && lists(a, "sparse_peak")) << all(a);
  EXPECT_TRUE(std::any_of(a.notes.begin(), a.notes.end(), [](const std::string& n) { return n.find("nearly cancel") != std::string::npos; }));
}

TEST(AuditRecompute, the_direction_trap) {
  audit::Run run = run_of("made--Llama-3-8B");
  run.recompute = flops::Recompute::kFull;
  const Audit level = of(run, mfu(0.4), 0.4);
  EXPECT_EQ(level.verdict, Verdict::kOverReported);
  EXPECT_EQ(first(level), "recompute_counted");
  EXPECT_TRUE(std::any_of(level.notes.begin(), level.notes.end(), [](const std::string& n) { return n.find("looks right and is not") != std::string::npos; }));
  EXPECT_EQ(of(run, mfu(0.4), 0.4 * 1.33).verdict, Verdict::kConsistent);
  run.recompute.reset();
  const Audit unknown = of(run, mfu(0.4), 0.4 * 1.33);
  EXPECT_EQ(unknown.verdict, Verdict::kUndecided);
  EXPECT_EQ(first(unknown), "recompute_missing");
  EXPECT_NEAR(*unknown.hypotheses.front().corrected_mfu_ratio, 0.4, 1e-12);
  run.recompute = flops::Recompute::kNone;
  EXPECT_EQ(of(run, mfu(0.4), 0.4 * 1.33).verdict, Verdict::kUnderReported);
}

// FLOP rate, token rate and peak agree; only OFU does not. What was told of the run may be wrong as well as the log.
TEST(AuditDoubt, a_log_that_agrees_with_the_count_is_accused_only_by_an_ofu_that_cannot_be) {
  audit::Run run = run_of("meta-llama--Meta-Llama-3.1-8B");
  run.device = DeviceCatalog::builtin().find("A100 SXM4 80GB");
  const double peak = run.device->peak(Precision::kBf16)->value;
  Claim claim = rate_and_mfu(0.45 * peak, 0.45);
  claim.tokens_per_second_per_gpu = 0.45 * peak / flops_per_token(run);
  const auto with = [&](flops::Recompute recompute, double ofu) {
    run.recompute = recompute;
    return of(run, claim, ofu);
  };
  const auto notes = [](const Audit& a, const char* text) { return std::any_of(a.notes.begin(), a.notes.end(), [&](const std::string& n) { return n.find(text) != std::string::npos; }); };
  const Audit told = with(flops::Recompute::kFull, 0.47);
  EXPECT_EQ(told.verdict, Verdict::kUndecided) << all(told);
  EXPECT_NE(told.summary.find("by OFU --recompute full is not so, none would fit"), std::string::npos) << told.summary;
  EXPECT_TRUE(notes(told, "only OFU does not: --recompute full does not fit it, none would"));
  EXPECT_EQ(with(flops::Recompute::kFull, 0.6).verdict, Verdict::kConsistent);
  const Audit more = with(flops::Recompute::kNone, 0.6);
  EXPECT_EQ(more.verdict, Verdict::kUndecided) << all(more);
  EXPECT_NE(more.summary.find("by OFU --recompute none is not so, full would fit"), std::string::npos) << more.summary;
  // Less than the FLOPs take whatever is recomputed.
  const Audit less = with(flops::Recompute::kFull, 0.33);
  EXPECT_EQ(less.verdict, Verdict::kOverReported) << all(less);
  EXPECT_NE(less.summary.find("tokens, time or GPUs of the rate are wrong"), std::string::npos) << less.summary;
  EXPECT_EQ(with(flops::Recompute::kNone, 0.23).verdict, Verdict::kOverReported);
  // Above it, and nothing known is behind it.
  const Audit above = with(flops::Recompute::kFull, 0.8);
  EXPECT_EQ(above.verdict, Verdict::kUndecided) << all(above);
}

TEST(AuditExpected, published_expectations) {
  const double peak = DeviceCatalog::builtin().find("H100 SXM")->peak(Precision::kBf16)->value;
  for (const char* config : {"made--Llama-3-8B", "made--Llama-3-70B", "deepseek-ai--DeepSeek-V3"}) {
    audit::Run run = run_of(config, 4096);
    EXPECT_NEAR(expected_ofu_over_mfu(run, flops::Recompute::kFull, peak).ratio, 1.325, 0.025) << config;
    EXPECT_NEAR(expected_ofu_over_mfu(run, flops::Recompute::kNone, peak).ratio, 1.02, 0.02) << config;
    run.precision = Precision::kFp8;
    EXPECT_NEAR(expected_ofu_over_mfu(run, flops::Recompute::kNone, peak).ratio, 0.58, 0.05) << config;
    EXPECT_TRUE(expected_ofu_over_mfu(run, flops::Recompute::kNone, peak).mixed_precision);
  }
  audit::Run padded = run_of("mistralai--Mixtral-8x7B-v0.1", 4096);
  const double plain = expected_ofu_over_mfu(padded, flops::Recompute::kNone, peak).ratio;
  padded.capacity_ratio = 1.25;
  EXPECT_NEAR(expected_ofu_over_mfu(padded, flops::Recompute::kNone, peak).ratio / plain, 1.21, 0.01);
}

TEST(AuditCount, layouts_packing_padding_and_stalls) {
  audit::Run run = run_of("made--Llama-3-8B", 32768);
  run.layout.gpus = 512;
  run.layout.tensor_parallel = 4;
  run.layout.context_parallel = 16;
  run.layout.gradient_accumulation = 12;
  run.document_tokens = 1024;
  run.padding_ratio = 0.3;
  run.productive_ratio = 0.8;
  const double e = expected_ofu_over_mfu(run, flops::Recompute::kNone, std::nullopt).ratio;
  const auto named = [&](double ratio, const char* id) {
    const Audit a = of(run, mfu(0.02 * ratio), 0.02 * e);
    EXPECT_TRUE(lists(a, id)) << id << " " << all(a);
    EXPECT_NE(a.verdict, Verdict::kConsistent) << id;
  };
  named(4, "gpu_count");
  named(16, "gpu_count");
  named(0.25, "gpu_count");
  named(1.0 / 16, "gpu_count");
  named(8, "gpu_count");
  named(12, "gradient_accumulation");
  named(1.0 / 12, "gradient_accumulation");
  named(1 / 0.7, "padding_counted");
  named(1.55, "packing_ignored");
  named(2.11, "packing_ignored");
  EXPECT_EQ(of(run, mfu(0.02), 0.02 * e).verdict, Verdict::kConsistent);
}

// MFU of real tokens: the tensor cores run over padding as well, and so OFU is higher.
TEST(AuditCount, padding_is_executed) {
  audit::Run run = run_of("made--Llama-3-8B", 4096);
  run.padding_ratio = 0.4;
  EXPECT_EQ(of(run, mfu(0.2926), 0.49).verdict, Verdict::kConsistent);
  const Audit counted = of(run, mfu(0.2926), 0.293);
  EXPECT_EQ(counted.verdict, Verdict::kOverReported);
  EXPECT_EQ(first(counted), "padding_counted") << all(counted);
}

TEST(AuditCount, time_that_the_claim_leaves_out_is_in_ofu) {
  audit::Run run = run_of("made--Llama-3-8B", 4096);
  run.productive_ratio = 0.7;
  const double peak = run.device->peak(Precision::kBf16)->value;
  Claim claim = mfu(0.4);
  claim.tokens_per_second_per_gpu = 0.4 * peak / flops_per_token(run);
  const Audit steady = of(run, claim, 0.283);
  EXPECT_EQ(steady.verdict, Verdict::kConsistent) << all(steady);
  EXPECT_EQ(of(run, mfu(0.4), 0.283).verdict, Verdict::kConsistent);
  EXPECT_EQ(steady.summary.find("whatever else"), std::string::npos) << steady.summary;
  // The tokens of all the time beside an MFU of the productive part.
  *claim.tokens_per_second_per_gpu *= 0.7;
  const Audit mixed = of(run, claim, 0.283);
  EXPECT_EQ(mixed.verdict, Verdict::kOverReported);
  EXPECT_EQ(first(mixed), "stalls_excluded") << all(mixed);
  // Of all the time it would be right.
  const Audit open = of(run, mfu(0.28), 0.283);
  EXPECT_EQ(open.verdict, Verdict::kUndecided) << all(open);
  EXPECT_TRUE(std::any_of(open.missing.begin(), open.missing.end(), [](const std::string& m) { return m.find("--productive-ratio") != std::string::npos; }));
  EXPECT_EQ(of(run, mfu(0.8), 0.283).verdict, Verdict::kOverReported);
}

TEST(AuditCount, zero_is_a_model_without_a_formula) {
  const Audit a = of(run_of(kSuper), mfu(0), 0.3);
  EXPECT_EQ(first(a), "unsupported_counted_zero");
  EXPECT_EQ(a.verdict, Verdict::kUnderReported);
  EXPECT_EQ(of(run_of(kSuper), mfu(0)).verdict, Verdict::kUndecided);
}

TEST(AuditAdapters, charged_as_full_training) {
  audit::Run run = run_of("made--Llama-3-70B", 4096);
  run.model = flops::with_adapters(run.model, {16, {"all"}}).value();
  run.has_adapters = true;
  const double e = expected_ofu_over_mfu(run, flops::Recompute::kNone, std::nullopt).ratio;
  const Audit a = of(run, mfu(0.3 * 1.46), 0.3 * e);
  EXPECT_EQ(first(a), "lora_as_full") << all(a);
  EXPECT_EQ(of(run, mfu(0.3), 0.3 * e).verdict, Verdict::kConsistent);
}

// No FLOP rate: MFU against what the token rate makes of it, exact, with a wrong count, a wrong peak, or both.
TEST(AuditTokens, mfu_and_token_rate_alone) {
  const audit::Run run = run_of(kSuper);
  const double right = flops_per_token(run), peak = run.device->peak(Precision::kBf16)->value;
  Claim claim = mfu(0.3);
  claim.tokens_per_second_per_gpu = 0.3 * peak / right;
  EXPECT_EQ(of(run, claim).verdict, Verdict::kConsistent);
  claim.mfu_ratio = 0.3 * 2.1242;
  EXPECT_EQ(first(of(run, claim)), "latent_ignored") << all(of(run, claim));
  claim.mfu_ratio = 0.15;
  EXPECT_EQ(first(of(run, claim)), "sparse_peak") << all(of(run, claim));
  claim.mfu_ratio = 0.3 * 2.1242 * 0.5;
  const Audit both = of(run, claim);
  EXPECT_TRUE(lists(both, "latent_ignored+sparse_peak") || !both.hypotheses.empty()) << all(both);
  // The tokens themselves may be wrong: OFU tells.
  claim.mfu_ratio = 0.3;
  const Audit doubled = of(run, claim, 0.15 * 1.0035);
  EXPECT_EQ(doubled.verdict, Verdict::kOverReported);
  EXPECT_TRUE(lists(doubled, "gpu_count")) << all(doubled);
  EXPECT_FALSE(lists(doubled, "latent_ignored"));
  EXPECT_NEAR(*doubled.mfu_recomputed_ratio, 0.15, 1e-3);
}

// MFU and OFU agree: the token rate is the odd one out, and nobody is accused.
TEST(AuditTokens, a_token_rate_that_alone_does_not_fit_decides_nothing) {
  const audit::Run run = run_of("made--Llama-3-8B", 4096);
  for (const double tokens : {9000.0, 3000.0}) {
    for (const bool by_rate : {false, true}) {
      Claim claim;
      by_rate ? claim.flops_per_second_per_gpu = 289.5e12 : claim.mfu_ratio = 0.2926;
      claim.tokens_per_second_per_gpu = tokens;
      const Audit a = of(run, claim, 0.293);
      EXPECT_EQ(a.verdict, Verdict::kUndecided) << all(a);
      EXPECT_TRUE(a.hypotheses.empty()) << all(a);
      EXPECT_NE(a.summary.find("MFU and OFU agree, and the token rate fits neither"), std::string::npos) << a.summary;
      if (!by_rate) {
        EXPECT_NE(a.summary.find(tokens == 9000 ? "the token rate makes an MFU of 43.89 %, reported is 29.26 %" : "an MFU of 14.63 %"), std::string::npos) << a.summary;
      }
      const auto odd = std::find_if(a.missing.begin(), a.missing.end(), [](const std::string& m) { return m.starts_with("a token rate that fits MFU and OFU"); });
      ASSERT_NE(odd, a.missing.end());
      EXPECT_NE(odd->find("they take 6000 tokens per second and GPU, told are " + std::to_string(static_cast<int>(tokens))), std::string::npos) << *odd;
    }
  }
  // It is MFU that stands apart.
  Claim claim = mfu(0.439);
  claim.tokens_per_second_per_gpu = 6000;
  EXPECT_EQ(of(run, claim, 0.293).verdict, Verdict::kOverReported);
}

// 128 % of the peak: nothing is judged by a token rate that no GPU has, and no mistake is named after which the job would have it.
TEST(AuditTokens, a_token_rate_above_the_peak_is_no_evidence) {
  audit::Run run = run_of("made--Llama-3-8B");
  Claim claim = mfu(0.4);
  claim.tokens_per_second_per_gpu = 1.282 * run.device->peak(Precision::kBf16)->value / flops_per_token(run);
  const Audit a = of(run, claim);
  EXPECT_EQ(a.verdict, Verdict::kUndecided) << all(a);
  EXPECT_TRUE(a.hypotheses.empty()) << all(a);
  EXPECT_NE(a.summary.find("the token rate makes an MFU of 128.20 %, which no GPU can do: the token rate, the number of GPUs, the GPU model or the precision is wrong"), std::string::npos) << a.summary;
  EXPECT_NE(std::find(a.missing.begin(), a.missing.end(), "a token rate, number of GPUs, GPU model and precision that fit together"), a.missing.end());
  EXPECT_EQ(of(run, claim, 0.4).verdict, Verdict::kUndecided);
  claim.flops_per_second_per_gpu = 400e12;
  EXPECT_EQ(of(run, claim).verdict, Verdict::kUndecided);
  claim = {};
  claim.flops_per_second_per_gpu = 400e12;
  claim.tokens_per_second_per_gpu = 25'000;
  EXPECT_EQ(of(run, claim).verdict, Verdict::kUndecided);
  // Below the peak the same difference is one.
  claim = mfu(0.2);
  claim.tokens_per_second_per_gpu = 0.8 * run.device->peak(Precision::kBf16)->value / flops_per_token(run);
  EXPECT_EQ(of(run, claim).verdict, Verdict::kUnderReported);
  // A claim that is impossible itself, and whose tokens agree with it, is judged.
  claim = mfu(3.2);
  claim.tokens_per_second_per_gpu = 3.2 * run.device->peak(Precision::kBf16)->value / flops_per_token(run);
  const Audit counted = of(run, claim, 0.4);
  EXPECT_EQ(counted.verdict, Verdict::kOverReported) << all(counted);
  EXPECT_TRUE(lists(counted, "gpu_count")) << all(counted);
  for (const Audit& judged : {a, counted, of(run, mfu(0.9), 0.3), of(run, mfu(0.3), 0.9), of(run, mfu(1.5), 0.9)}) {
    for (const Ranked& r : judged.hypotheses) EXPECT_LE(r.corrected_mfu_ratio.value_or(0), 1) << all(judged);
  }
}

TEST(AuditMeasured, a_clock_of_another_domain) {
  audit::Run run = run_of("made--Llama-3-8B");
  run.device = DeviceCatalog::builtin().find("H100 NVL");
  const double e = expected_ofu_over_mfu(run, flops::Recompute::kNone, std::nullopt).ratio;
  const Audit told = of(run, mfu(0.4), 0.4 * e * 1545 / 1785);
  EXPECT_TRUE(lists(told, "ofu_clock_domain")) << all(told);
  const Audit own = audit(run, mfu(0.4), {0.4 * e * 1545 / 1785, false}, DeviceCatalog::builtin());
  EXPECT_FALSE(lists(own, "ofu_clock_domain"));
}

TEST(AuditWords, drift_is_told) {
  Claim claim = mfu(0.4);
  claim.drift_ratio = 3;
  const Audit a = of(run_of("made--Llama-3-8B"), claim, 0.4);
  EXPECT_TRUE(std::any_of(a.notes.begin(), a.notes.end(), [](const std::string& n) { return n.find("accumulator_not_reset") != std::string::npos; }));
}

}  // namespace
}  // namespace flopsight::audit
