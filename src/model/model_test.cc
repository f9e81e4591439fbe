#include <gtest/gtest.h>

#include "model/error_band.h"
#include "model/ofu.h"

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
  const auto band = error_band({100, 100, 40, 0, 0, 0});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0.4);
  EXPECT_DOUBLE_EQ(band->high_ratio, 0.4);
}

TEST(ErrorBand, unmeasured_time_counts_from_idle_to_peak) {
  const auto band = error_band({100, 80, 40, 0, 0, 0});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0.4);
  EXPECT_DOUBLE_EQ(band->high_ratio, 0.6);
}

TEST(ErrorBand, sampling_is_1_96_standard_deviations_and_the_low_end_stops_at_nothing) {
  const auto band = error_band({100, 100, 1, 4, 0, 0});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->low_ratio, 0);
  EXPECT_DOUBLE_EQ(band->high_ratio, (1 + 1.96 * 2) / 100);
}

TEST(ErrorBand, the_band_holds_the_value_above_one_too) {
  const auto band = error_band({100, 50, 54, 0, 0, 0});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->high_ratio, 1.08);
}

TEST(ErrorBand, nothing_measured_has_no_band) { EXPECT_FALSE(error_band({100, 0, 0, 0, 0, 0})); }

}  // namespace
}  // namespace flopsight::model
