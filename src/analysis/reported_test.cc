#include "analysis/reported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/families.h"
#include "analysis/mfu_comparison.h"

namespace flopsight::analysis {
namespace {

using training_logs::Step;

Step step(double mfu, std::optional<double> flops = {}) {
  Step step;
  step.mfu_ratio = mfu;
  step.flops_per_second_per_gpu = flops;
  return step;
}

TEST(Reported, are_medians_over_the_steps_that_count) {
  std::vector<Step> steps = {step(0.40, 400e12), step(0.42, 420e12), step(0.50), step(7.0, 1)};
  steps[3].excluded = training_logs::Exclusion::kAbovePeak;
  steps[1].time = units::Instant{2000};
  steps[2].time = units::Instant{1000};
  const Reported reported = reported_of("api", "api", steps);
  EXPECT_EQ(reported.mfu_ratio, 0.42);
  EXPECT_EQ(reported.flops_per_second_per_gpu, 410e12);
  EXPECT_NEAR(*reported.peak_flops_per_second_implied, 1000e12, 1);
  EXPECT_FALSE(reported.step_seconds) << "never said is not zero";
  EXPECT_EQ(reported.steps_used, 3U);
  EXPECT_EQ(reported.steps_excluded, 1U);
  EXPECT_EQ(reported.first, units::Instant{1000});
  EXPECT_EQ(reported.last, units::Instant{2000});
}

TEST(Reported, above_the_peak_are_a_claim_where_all_are_and_not_where_a_few_begin_the_run) {
  std::vector<Step> steps(6, step(1.33, 1316e12));
  for (Step& one : steps) one.excluded = training_logs::Exclusion::kAbovePeak;
  steps[0].excluded = training_logs::Exclusion::kWarmUp;
  const Reported wrong = reported_of("log", "titan", steps);
  EXPECT_EQ(wrong.mfu_ratio, 1.33);
  EXPECT_EQ(wrong.steps_used, 5U);
  EXPECT_EQ(wrong.steps_excluded, 1U);
  steps[5].excluded.reset();
  steps[5].mfu_ratio = 0.4;
  EXPECT_EQ(reported_of("log", "titan", steps).mfu_ratio, 0.4);
  EXPECT_EQ(reported_of("log", "titan", std::span(steps).subspan(1, 3)).steps_used, 0U) << "three may be the start alone";
}

TEST(Reported, have_no_implied_peak_where_the_mfu_is_zero) {
  const std::vector<Step> steps = {step(0, 400e12)};
  EXPECT_FALSE(reported_of("api", "api", steps).peak_flops_per_second_implied);
}

MfuPoint point(double mfu, double ofu, std::uint64_t gpus = 8, bool wrong = false) {
  return {"j", "", gpus, mfu, ofu, wrong};
}

TEST(MfuComparison, of_a_line_is_perfect_and_of_the_published_cases_is_what_they_say) {
  const std::vector<MfuPoint> line = {point(0.1, 0.2), point(0.2, 0.3), point(0.4, 0.5)};
  const MfuAgreement agreement = mfu_agreement(line);
  EXPECT_NEAR(*agreement.pearson_ratio, 1, 1e-12);
  EXPECT_NEAR(*agreement.spearman_ratio, 1, 1e-12);
  EXPECT_NEAR(*agreement.error_mean_ratio, 0.1, 1e-12);
  EXPECT_EQ(agreement.within_5_points_ratio, 0);
  EXPECT_EQ(agreement.within_10_points_ratio, 1) << "ten points are within ten points";
  const std::vector<MfuPoint> published = {point(0.5427, 0.2558), point(0.2451, 0.1556)};
  EXPECT_NEAR(*mfu_agreement(published).error_mean_ratio, (0.2869 + 0.0895) / 2, 1e-12);
}

TEST(MfuComparison, spearman_sees_order_where_pearson_sees_an_outlier) {
  const std::vector<MfuPoint> points = {point(0.1, 0.10), point(0.2, 0.11), point(0.3, 0.12),
                                        point(0.9, 0.13)};
  EXPECT_NEAR(*mfu_agreement(points).spearman_ratio, 1, 1e-12);
  EXPECT_LT(*mfu_agreement(points).pearson_ratio, 0.95);
  // Ties share ranks: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  const std::vector<MfuPoint> ties = {point(0.1, 0.1), point(0.2, 0.2), point(0.2, 0.3),
                                      point(0.4, 0.4)};
  EXPECT_NEAR(*mfu_agreement(ties).spearman_ratio, 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(MfuComparison, says_nothing_where_nothing_can_be_said) {
  EXPECT_FALSE(mfu_agreement({}).error_mean_ratio);
  const std::vector<MfuPoint> one = {point(0.4, 0.4)};
  EXPECT_FALSE(mfu_agreement(one).pearson_ratio);
  EXPECT_EQ(mfu_agreement(one).within_5_points_ratio, 1);
  const std::vector<MfuPoint> flat = {point(0.4, 0.3), point(0.4, 0.2), point(0.4, 0.1)};
  EXPECT_FALSE(mfu_agreement(flat).pearson_ratio) << "no spread in MFU";
  EXPECT_EQ(mfu_agreement(flat).correlation_absent_reason, "no_spread");
}

TEST(MfuComparison, two_points_have_no_correlation) {
  const std::vector<MfuPoint> points = {point(0.1, 0.9), point(0.2, 0.8), point(0.3, 0.2)};
  for (std::size_t n = 0; n < 3; ++n) {
    const MfuAgreement agreement = mfu_agreement(std::span(points).first(n));
    EXPECT_FALSE(agreement.pearson_ratio) << n;
    EXPECT_FALSE(agreement.spearman_ratio) << n;
    EXPECT_EQ(agreement.correlation_absent_reason, "few_jobs") << n;
  }
  EXPECT_TRUE(mfu_agreement(points).pearson_ratio);
  EXPECT_EQ(mfu_agreement(points).correlation_absent_reason, "");
}

TEST(MfuComparison, leaves_out_what_is_known_to_be_wrong_and_goes_by_size) {
  const MfuComparison comparison =
      compare_mfu({point(0.4, 0.39, 8), point(0.3, 0.31, 9), point(0.5, 0.5, 768),
                   point(0.2, 0.2, 769), point(0.54, 0.25, 288, true)});
  EXPECT_EQ(comparison.all.job_count, 5U);
  EXPECT_EQ(comparison.without_known_wrong.job_count, 4U);
  EXPECT_GT(*comparison.without_known_wrong.pearson_ratio, *comparison.all.pearson_ratio);
  ASSERT_EQ(comparison.by_size.size(), 4U);
  EXPECT_EQ(comparison.by_size[1].gpu_count_min, 9U);
  EXPECT_EQ(comparison.by_size[1].gpu_count_max, 64U);
  EXPECT_EQ(comparison.by_size[2].agreement.job_count, 1U) << "the wrong one of 288 is not in it";
  EXPECT_FALSE(comparison.by_size[3].gpu_count_max);
}

FamilyFacts facts(std::string name) { return {std::move(name), "ada", {"H100-SXM"}, 64}; }

TEST(Families, are_names_without_numbers_dates_and_hashes) {
  const FamilyRule rule = FamilyRule::builtin();
  const std::string family = rule.family_of(facts("llama-pretrain-12"));
  EXPECT_EQ(family, "llama-pretrain# | ada | H100-SXM | 64 GPUs");
  EXPECT_EQ(rule.family_of(facts("llama-pretrain-13")), family);
  EXPECT_EQ(rule.family_of(facts("llama_2026-11-29_run3")),
            rule.family_of(facts("llama_2026-11-28_run4")));
  EXPECT_EQ(rule.family_of(facts("llama-20261129T101500")),
            rule.family_of(facts("llama-20261128T090000")));
  EXPECT_EQ(rule.family_of(facts("llama-4f9ac31")), rule.family_of(facts("llama-0be77d2")));
  EXPECT_EQ(rule.family_of(facts("eval-seed1")), rule.family_of(facts("eval-seed22")));
  EXPECT_NE(rule.family_of(facts("llama-8b")), rule.family_of(facts("llama-70b")))
      << "a size is no run";
  EXPECT_NE(rule.family_of(facts("llama")), rule.family_of(facts("mistral")));
  EXPECT_NE(rule.family_of(facts("defaced")), rule.family_of(facts("effaced")))
      << "words of hexadecimal letters are words";
}

TEST(Families, differ_by_user_model_and_count) {
  const FamilyRule rule = FamilyRule::builtin();
  const std::string family = rule.family_of(facts("llama"));
  FamilyFacts other = facts("llama");
  other.user = "bob";
  EXPECT_NE(rule.family_of(other), family);
  other = facts("llama");
  other.models = {"A100"};
  EXPECT_NE(rule.family_of(other), family);
  other = facts("llama");
  other.gpu_count = 8;
  EXPECT_NE(rule.family_of(other), family);
  EXPECT_EQ(rule.family_of(facts("")), "");
}

TEST(Families, can_be_told_otherwise) {
  const auto rule = FamilyRule::parse({"-[^-]+$"});
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ(rule->family_of(facts("llama-anything")), rule->family_of(facts("llama-else")));
  EXPECT_EQ(FamilyRule::parse({"("}).error().code, base::ErrorCode::kInvalid);
  EXPECT_TRUE(FamilyRule::parse(std::vector<std::string>(32, "a")).ok());
  EXPECT_EQ(FamilyRule::parse(std::vector<std::string>(33, "a")).error().code,
            base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::analysis
