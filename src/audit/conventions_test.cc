#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "audit/hypothesis.h"
#include "audit/test_runs.h"
#include "flops/conventions.h"

namespace flopsight::audit {
namespace {

using namespace test;

// A framework's count, told to as many digits as a log has: it is named, and what it leaves out and adds is all there is.
TEST(AuditConventions, every_count_of_the_table_is_named) {
  int named = 0;
  for (const std::string& config : configs()) {
    for (const std::uint64_t tokens : kSequences) {
      const audit::Run run = run_of(config, tokens);
      const double right = flops_per_token(run);
      for (const flops::Convention& convention : flops::conventions()) {
        const auto figure = convention.cost(run.model, workload_of(run)).flops_train;
        if (!figure || std::abs(std::log(*figure / right)) <= kLogAgrees || convention.name.starts_with("audit_")) continue;
        Claim claim;
        claim.tokens_per_second_per_gpu = std::round(1e5 * 0.3 * run.device->peak(Precision::kBf16)->value / std::max(right, *figure)) / 1e5;
        claim.flops_per_second_per_gpu = std::round(*claim.tokens_per_second_per_gpu * *figure / 1e10) * 1e10;
        const Audit a = of(run, claim);
        const std::string name = config + " " + std::to_string(tokens) + " " + std::string(convention.name) + " " + all(a);
        EXPECT_NE(a.verdict, Verdict::kConsistent) << name;
        EXPECT_TRUE(std::any_of(a.hypotheses.begin(), a.hypotheses.end(), [&](const Ranked& r) {
          const auto& names = r.hypothesis.conventions;
          return std::find(names.begin(), names.end(), convention.name) != names.end();
        })) << name;
        ++named;
      }
    }
  }
  EXPECT_GT(named, 1500);
}

// Exactly the figure of a framework's count, or of a mistake.
Audit rate_of(const audit::Run& run, double flops_per_token) {
  Claim claim;
  claim.tokens_per_second_per_gpu = 1000;
  claim.flops_per_second_per_gpu = 1000 * flops_per_token;
  return of(run, claim);
}
double counted_by(const char* convention, const audit::Run& run) { return *flops::find_convention(convention)->cost(run.model, workload_of(run)).flops_train; }

TEST(AuditConventions, what_a_count_leaves_out_and_adds_is_told) {
  const audit::Run tied = run_of("made--Qwen3-0.6B", 4096);
  const Audit hf = rate_of(tied, counted_by("hf_trainer", tied));
  ASSERT_FALSE(hf.hypotheses.empty());
  EXPECT_EQ(first(hf), "attention_ignored+vocab_ignored") << all(hf);
  EXPECT_NE(hf.hypotheses.front().hypothesis.explanation.find("counted as 6n_non_embedding and hf_trainer do: "), std::string::npos) << hf.hypotheses.front().hypothesis.explanation;
  EXPECT_NE(hf.summary.find("as 6n_non_embedding and hf_trainer count"), std::string::npos) << hf.summary;
  const audit::Run experts = run_of("Qwen--Qwen3-30B-A3B", 4096);
  const Audit nano = rate_of(experts, counted_by("nanogpt", experts));
  EXPECT_EQ(first(nano), "all_experts_counted+causal_counted_full+embedding_counted") << all(nano);
  EXPECT_EQ(nano.hypotheses.front().hypothesis.explanation.find("window"), std::string::npos) << "it has no windows";
  const audit::Run plain = run_of("made--Llama-3-8B", 65536);
  EXPECT_NE(first(rate_of(plain, counted_by("litgpt", plain))).find("attention_counted_twice"), std::string::npos) << all(rate_of(plain, counted_by("litgpt", plain)));
  // What is left out raises no count.
  const audit::Run oss = run_of("openai--gpt-oss-20b", 8192);
  const Audit six_n = rate_of(oss, counted_by("6n_active", oss));
  EXPECT_EQ(six_n.verdict, Verdict::kOverReported);
  EXPECT_EQ(first(six_n).rfind("embedding_counted", 0), 0U) << all(six_n);
  EXPECT_FALSE(lists(six_n, "attention_ignored")) << all(six_n);
}

// An FP8 run's MFU is of its own peak or of the BF16 one: a count of the table to its digits goes before a peak that only comes near.
TEST(AuditConventions, a_count_is_named_whichever_peak_its_mfu_is_of) {
  audit::Run run = run_of("Qwen--Qwen3-30B-A3B", 8192);
  run.precision = Precision::kFp8;
  const double own = run.device->peak(Precision::kFp8)->value;
  Claim claim = mfu(0.87);
  claim.tokens_per_second_per_gpu = 0.87 * own / counted_by("hf_trainer", run);
  const Audit a = of(run, claim);
  EXPECT_EQ(a.verdict, Verdict::kOverReported) << all(a);
  EXPECT_EQ(first(a).find("all_experts_counted"), 0U) << all(a);
  EXPECT_EQ(a.reference_peak_flops_per_second, own);
}

// A program that knows nothing of packed documents prints for them what it prints for one as long as the sequence.
TEST(AuditConventions, documents_are_those_of_programs_that_know_them) {
  const audit::Run whole = run_of("made--Llama-3-8B", 32768);
  audit::Run packed = whole;
  packed.document_tokens = 1024;
  const Audit before = rate_of(whole, flops_per_token(whole)), after = rate_of(packed, flops_per_token(packed));
  ASSERT_EQ(before.conventions.size(), after.conventions.size());
  for (std::size_t i = 0; i < after.conventions.size(); ++i) {
    const ConventionRow &one = before.conventions[i], &several = after.conventions[i];
    const bool knows = flops::knows_documents(*flops::find_convention(several.name));
    const bool attends = several.name != "hf_trainer" && !several.name.starts_with("6n_");
    EXPECT_FALSE(one.one_document) << one.name;
    EXPECT_EQ(several.one_document, !knows && attends) << several.name;
    EXPECT_EQ(one.flops_per_token_train != several.flops_per_token_train, knows) << several.name;
  }
  // So what such a program reports of packed documents is found again, with what it leaves out.
  const Audit nano = rate_of(packed, *flops::convention_cost(*flops::find_convention("nanogpt"), packed.model, workload_of(packed)).flops_train);
  EXPECT_EQ(nano.verdict, Verdict::kOverReported) << all(nano);
  EXPECT_TRUE(std::any_of(nano.hypotheses.begin(), nano.hypotheses.end(), [](const Ranked& r) {
    return r.hypothesis.explanation.starts_with("counted as ") && r.hypothesis.explanation.find("packed documents charged as one sequence (+") != std::string::npos;
  })) << all(nano);
}

TEST(AuditConventions, a_count_that_only_comes_near_is_not_named) {
  const audit::Run run = run_of("made--Llama-3-8B", 4096);
  for (const char* name : {"palm", "6n_active", "hf_trainer", "verl"}) {
    const Audit a = rate_of(run, 1.012 * counted_by(name, run));
    for (const Ranked& r : a.hypotheses) EXPECT_LE(r.hypothesis.conventions.empty() ? 0 : std::abs(std::log(r.observed_ratio / r.hypothesis.ratio)), 0.006) << name << " " << all(a);
  }
}

TEST(AuditConventions, parts_add_up) {
  const audit::Run run = run_of("Qwen--Qwen3.5-397B-A17B", 32768);
  for (const Hypothesis& h : convention_hypotheses(run)) {
    double sum = 0;
    for (std::size_t at = h.explanation.find(" ("); at != std::string::npos; at = h.explanation.find(" (", at + 1)) {
      if (h.explanation[at + 2] == '+' || h.explanation[at + 2] == '-') sum += std::stod(h.explanation.substr(at + 2));
    }
    EXPECT_NEAR(sum * 1e9, (h.ratio - 1) * flops_per_token(run), 0.02 * flops_per_token(run)) << h.explanation;
  }
}

TEST(AuditPrediction, a_known_count_without_steps_goes_before_steps_that_come_near) {
  audit::Run run = run_of("Qwen--Qwen3.5-397B-A17B", 32768);
  const double without = counted_by("torchtitan", run), right = flops_per_token(run);
  run.prediction_steps.reset();
  const Audit full = rate_of(run, without);
  EXPECT_EQ(full.verdict, Verdict::kOverReported) << all(full);
  EXPECT_EQ(first(full), "causal_counted_full");
  EXPECT_EQ(rate_of(run, right).verdict, Verdict::kConsistent);
  run.prediction_steps = 1;
  const double with_one = flops_per_token(run);
  run.prediction_steps = 2;
  const double with_two = flops_per_token(run);
  run.prediction_steps.reset();
  EXPECT_EQ(rate_of(run, with_one).verdict, Verdict::kConsistent);
  EXPECT_EQ(rate_of(run, with_one).flops_per_token, with_one);
  EXPECT_NE(rate_of(run, with_two).flops_per_token, with_two) << "the model has one step";
  // MFU and token rate alone say as much.
  Claim claim = mfu(0.3);
  claim.tokens_per_second_per_gpu = 0.3 * run.device->peak(Precision::kBf16)->value / with_one;
  EXPECT_EQ(of(run, claim).verdict, Verdict::kConsistent) << all(of(run, claim));
}

// 1 step of DeepSeek-V3 costs so much: at the length at which full attention does as well, nobody can tell.
TEST(AuditPrediction, what_fits_alike_is_undecided) {
  audit::Run run = run_of("deepseek-ai--DeepSeek-V3", 2048);
  const auto gap = [&](std::uint64_t tokens) {
    run.sequence_tokens = tokens;
    run.prediction_steps = 1;
    const double with_one = flops_per_token(run);
    run.prediction_steps = 0;
    return counted_by("torchtitan", run) / with_one;
  };
  std::uint64_t alike = 256;
  while (alike < 65536 && gap(alike) < 1) alike += 16;
  ASSERT_NEAR(gap(alike), 1, 0.001);
  run.prediction_steps = 1;
  const double with_one = flops_per_token(run);
  run.prediction_steps.reset();
  const Audit a = rate_of(run, with_one);
  EXPECT_EQ(a.verdict, Verdict::kUndecided) << all(a);
  EXPECT_EQ(first(a), "causal_counted_full") << all(a);
  EXPECT_NE(a.summary.find("with 1 step of multi-token prediction it is right"), std::string::npos) << a.summary;
  EXPECT_NE(std::find(a.missing.begin(), a.missing.end(), "how many steps of multi-token prediction are trained (--mtp)"), a.missing.end());
}

}  // namespace
}  // namespace flopsight::audit
