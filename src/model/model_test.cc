#include <gtest/gtest.h>

#include <cmath>

#include "model/error_band.h"
#include "model/ofu.h"
#include "model/reference_error.h"

namespace flopsight::model {
namespace {

using units::Hertz;
using units::megahertz;
using units::Ratio;
using units::Seconds;

TEST(Ofu, published_checks_hold) {
  EXPECT_NEAR(ofu(Ratio(0.50), megahertz(1980), megahertz(1830)).value, 0.54098, 5e-6);
  EXPECT_DOUBLE_EQ(ofu(Ratio(0.50), megahertz(1830), megahertz(1830)).value, 0.50);
  EXPECT_DOUBLE_EQ(ofu(Ratio(0.40), megahertz(1410), megahertz(1410)).value, 0.40);
  EXPECT_NEAR(ofu(Ratio(0.93), megahertz(1500), megahertz(1830)).value, 0.76230, 5e-6);
}

TEST(Ofu, values_above_one_are_kept) {
  EXPECT_NEAR(ofu(Ratio(1.0), megahertz(1980), megahertz(1830)).value, 1.08197, 5e-6);
}

TEST(Ofu, cycles_averaged_or_summed_over_sms_give_the_same) {
  const double cycles = 0.5 * 1.5e9 * 30;
  EXPECT_DOUBLE_EQ(ofu_from_cycles(cycles, 1, megahertz(1830), Seconds(30)).value,
                   ofu_from_cycles(cycles * 132, 132, megahertz(1830), Seconds(30)).value);
  EXPECT_NEAR(ofu_from_cycles(cycles, 1, megahertz(1830), Seconds(30)).value, 0.5 * 1500 / 1830, 1e-12);
}

TEST(Multiplicity, is_one_or_the_sm_count_and_nothing_when_neither_fits) {
  const double one = 1.5e9 * 30;
  EXPECT_EQ(sm_multiplicity(one, Seconds(30), megahertz(1500), 132, std::nullopt), 1.0);
  EXPECT_EQ(sm_multiplicity(one * 132, Seconds(30), megahertz(1500), 132, std::nullopt), 132.0);
  EXPECT_EQ(sm_multiplicity(one * 20, Seconds(30), megahertz(1500), 132, std::nullopt), std::nullopt);
  EXPECT_EQ(sm_multiplicity(one, Seconds(30), std::nullopt, 132, megahertz(1980)), 1.0);
  EXPECT_EQ(sm_multiplicity(one * 132, Seconds(30), std::nullopt, 132, megahertz(1980)), 132.0);
  EXPECT_EQ(sm_multiplicity(one * 132, Seconds(30), std::nullopt, std::nullopt, megahertz(1980)),
            std::nullopt);
  EXPECT_EQ(sm_multiplicity(0, Seconds(30), std::nullopt, 132, megahertz(1980)), std::nullopt);
}

TEST(ReferenceClock, policy_prefers_override_then_tensor_peak_then_nvml) {
  const catalog::Device* h100 = catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3");
  const auto pick = [&](auto policy, auto override_clock, auto device, auto scraped) {
    return reference_clock(policy, override_clock, device, scraped);
  };
  const std::optional<Hertz> none, max = megahertz(1980), mine = megahertz(1700);
  EXPECT_EQ(pick(ReferencePolicy::kAuto, none, h100, max)->clock, megahertz(1830));
  EXPECT_EQ(pick(ReferencePolicy::kAuto, mine, h100, max)->source, ReferenceSource::kOverride);
  EXPECT_EQ(pick(ReferencePolicy::kNvmlMax, none, h100, max)->clock, megahertz(1980));
  EXPECT_EQ(pick(ReferencePolicy::kNvmlMax, none, h100, none)->source, ReferenceSource::kCatalogNvmlMax);
  const catalog::Device* nobody = nullptr;
  EXPECT_EQ(pick(ReferencePolicy::kAuto, none, nobody, max)->source, ReferenceSource::kScrapedNvmlMax);
  EXPECT_FALSE(pick(ReferencePolicy::kAuto, none, nobody, none).has_value());
}

TEST(ErrorBand, without_error_sources_it_is_the_value) {
  const auto band = error_band({100, 100, 40});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0.4);
  EXPECT_DOUBLE_EQ(band->high_ratio, 0.4);
}

TEST(ErrorBand, unmeasured_time_counts_from_idle_to_peak) {
  const auto band = error_band({100, 80, 40});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0.4);
  EXPECT_DOUBLE_EQ(band->high_ratio, 0.6);
}

BandInputs measured(double allocated, double measured_seconds, double delivered) {
  BandInputs in;
  in.allocated_seconds = allocated;
  in.measured_seconds = measured_seconds;
  in.delivered_seconds = delivered;
  return in;
}

TEST(ErrorBand, sampling_is_the_90_percent_quantile_and_the_low_end_stops_at_nothing) {
  BandInputs in = measured(100, 100, 1);
  in.sampling_variance_seconds2 = 4;
  const auto band = error_band(in);
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0);
  EXPECT_NEAR(band->high_ratio, (1 + 1.645 * 2) / 100, 1e-9);
}

TEST(ErrorBand, a_spread_of_two_readings_is_known_worse_than_one_of_many) {
  BandInputs in = measured(100, 100, 50);
  in.sampling_variance_seconds2 = 4;
  in.sampling_variance_error_ratio_seconds4 = 16;  // one degree of freedom
  EXPECT_NEAR(error_band(in)->high_ratio, (50 + 6.314 * 2) / 100, 1e-9);
  in.sampling_variance_error_ratio_seconds4 = 16.0 / 10;
  EXPECT_NEAR(error_band(in)->high_ratio, (50 + 1.812 * 2) / 100, 1e-9);
}

TEST(Student, the_quantile_falls_from_few_to_many_and_meets_the_normal_one) {
  // Tables of Student's distribution, 95th percentile.
  EXPECT_NEAR(student_quantile(1), 6.314, 1e-9);
  EXPECT_NEAR(student_quantile(5), 2.015, 1e-9);
  EXPECT_NEAR(student_quantile(20), 1.725, 0.004);
  EXPECT_NEAR(student_quantile(120), 1.658, 0.004);
  EXPECT_NEAR(student_quantile(1e9), 1.645, 1e-6);
  EXPECT_GT(student_quantile(0.2), 6);
}

TEST(EndActivity, has_the_variance_of_the_cut_exponential_distribution) {
  for (const double rate : {-8.0, -2.67, -0.5, 0.5, 2.67, 8.0}) {
    // Of the density proportional to exp(-rate x) on [0, 1].
    const double e = std::expm1(rate);
    const double mean = 1 / rate - 1 / e, variance = 1 / (rate * rate) - (e + 1) / (e * e);
    EXPECT_NEAR(end_activity_variance(mean) / variance, 1, 0.07) << mean;
  }
  EXPECT_DOUBLE_EQ(end_activity_variance(0.5), 1.0 / 12);
  EXPECT_EQ(end_activity_variance(1.02), 0);
}

TEST(ErrorBudget, parts_in_the_band_add_up_to_it) {
  BandInputs in = measured(100, 80, 40);
  in.sampling_variance_seconds2 = 0.01;
  in.ends_seconds = 0.5;
  in.domain_more_seconds = 1;
  in.cycle_seconds = 3;
  const auto budget = error_budget(in);
  ASSERT_TRUE(budget);
  const ErrorPart sampling = budget->part(ErrorSource::kClockSampling), ends = budget->part(ErrorSource::kJobEnds);
  EXPECT_NEAR(sampling.high_ratio, 1.645 * 0.1 / 100, 1e-9);
  // Two ends, of which a uniform part of the sample has an activity of variance 1/12 about one half.
  EXPECT_NEAR(ends.high_ratio, 1.645 * 0.5 * std::sqrt(2.0 / 12 / 3) / 100, 1e-9);
  EXPECT_NEAR(budget->band.high_ratio, 0.5 + 0.1 + 0.01 + 0.4 * 0.002 / 0.998 + std::hypot(sampling.high_ratio, ends.high_ratio), 1e-9);
  EXPECT_NEAR(budget->band.low_ratio, 0.5 - 0.1 - std::hypot(sampling.high_ratio, ends.high_ratio), 1e-9);
  EXPECT_NEAR(budget->part(ErrorSource::kCoverage).low_ratio, -0.1, 1e-12);
  EXPECT_NEAR(budget->part(ErrorSource::kCoverage).high_ratio, 0.1, 1e-12);
  EXPECT_NEAR(budget->part(ErrorSource::kNonTensor).high_ratio, 0.4 * 0.002 / 0.998, 1e-12);
  EXPECT_EQ(budget->part(ErrorSource::kCycleRatio).sum, ErrorSum::kNot);
  EXPECT_EQ(budget->part(ErrorSource::kTile).basis, ErrorBasis::kUnknown);
}

TEST(ErrorBudget, ends_of_unknown_length_are_unknown_and_not_nothing) {
  BandInputs in = measured(100, 100, 40);
  in.ends_seconds.reset();
  EXPECT_EQ(error_budget(in)->part(ErrorSource::kJobEnds).basis, ErrorBasis::kUnknown);
}

TEST(ErrorBudget, a_tile_that_was_told_shifts_the_band_to_the_useful_share) {
  const auto budget = error_budget(measured(100, 100, 60));
  const ErrorBudget with = with_tile(*budget, 0.6, 4.0 / 3, ErrorBasis::kMeasured);
  EXPECT_NEAR(with.band.low_ratio, 0.45, 1e-12);
  EXPECT_NEAR(with.band.high_ratio, 0.45 + 0.6 * 0.002 / 0.998, 1e-12);
  EXPECT_EQ(with.part(ErrorSource::kTile).basis, ErrorBasis::kMeasured);
}

TEST(DomainError, depends_on_where_the_clock_is_from) {
  const auto& catalog = catalog::DeviceCatalog::builtin();
  const auto of = [&](const char* name, ReferencePolicy policy) {
    const catalog::Device* device = catalog.find(name);
    return domain_error(*reference_clock(policy, std::nullopt, device, std::nullopt), device);
  };
  EXPECT_EQ(of("NVIDIA H100 80GB HBM3", ReferencePolicy::kAuto).less_ratio, 0);
  EXPECT_EQ(of("NVIDIA H100 80GB HBM3", ReferencePolicy::kAuto).more_ratio, 0);
  // The RTX A6000 has the least: 1800 of 2100 MHz.
  EXPECT_NEAR(of("NVIDIA H100 80GB HBM3", ReferencePolicy::kNvmlMax).more_ratio, 2100.0 / 1800 - 1, 1e-9);
  const DomainError gb200 = of("NVIDIA GB200", ReferencePolicy::kAuto);
  EXPECT_NEAR(gb200.less_ratio, 1 - 2008.0 / 2062, 1e-9);
  EXPECT_NEAR(gb200.more_ratio, 0.027, 0.0001);
}

TEST(ErrorBand, the_band_holds_the_value_above_one_too) {
  const auto band = error_band({100, 50, 54});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->high_ratio, 1.08);
}

TEST(ErrorBand, nothing_measured_has_no_band) { EXPECT_FALSE(error_band({100, 0, 0})); }

}  // namespace
}  // namespace flopsight::model
