#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "samples/gpu.h"
#include "samples/judge.h"
#include "samples/quality.h"

namespace flopsight::samples {
namespace {

using catalog::Metric;

AbsentReason why(Metric metric, double scale, double raw) {
  const Reading reading = judge(catalog::info(metric), scale, raw);
  EXPECT_FALSE(reading.present()) << raw;
  return reading.present() ? AbsentReason::kNotSeen : reading.reason();
}

TEST(Judge, dcgm_blank_doubles_are_unknown) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(why(Metric::kTensorActive, 1, 140737488355328.0 + i), AbsentReason::kBlank);
  }
}

TEST(Judge, what_is_infinite_is_out_of_range_and_no_blank) {
  for (const double raw : {HUGE_VAL, -HUGE_VAL}) EXPECT_EQ(why(Metric::kTensorActive, 1, raw), AbsentReason::kOutOfRange);
}

TEST(Judge, blanks_that_an_exporter_scaled_are_unknown) {
  EXPECT_EQ(why(Metric::kGpuUtil, 0.01, 1.40737488355328e+16), AbsentReason::kBlank);
}

TEST(Judge, blank_integers_are_found_though_doubles_lose_their_last_digits) {
  EXPECT_EQ(why(Metric::kTemperature, 1, 9223372036854775794.0), AbsentReason::kBlank);
  EXPECT_EQ(why(Metric::kPcieTx, 1, 9223372036854775792.0), AbsentReason::kBlank);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(why(Metric::kGpuUtil, 0.01, 2147483632.0 + i), AbsentReason::kBlank);
  }
}

TEST(Judge, utilisation_far_above_100_is_invalid_not_clamped) {
  EXPECT_EQ(why(Metric::kGpuUtil, 0.01, 4294967295.0), AbsentReason::kOutOfRange);
  EXPECT_EQ(why(Metric::kGpuUtil, 0.01, 187342.0), AbsentReason::kOutOfRange);
  EXPECT_EQ(judge(catalog::info(Metric::kGpuUtil), 0.01, 100).value(), 1.0);
}

TEST(Judge, the_range_of_tensor_activity_ends_at_1_02) {
  EXPECT_TRUE(judge(catalog::info(Metric::kTensorActive), 1, 1.02).present());
  EXPECT_EQ(why(Metric::kTensorActive, 1, 1.0201), AbsentReason::kOutOfRange);
  EXPECT_EQ(why(Metric::kTensorActive, 1, -0.0001), AbsentReason::kOutOfRange);
}

TEST(Judge, stale_markers_and_ordinary_nan_differ) {
  EXPECT_EQ(why(Metric::kTensorActive, 1, std::bit_cast<double>(0x7ff0000000000002ULL)),
            AbsentReason::kStale);
  EXPECT_EQ(why(Metric::kTensorActive, 1, std::nan("")), AbsentReason::kNotANumber);
}

TEST(Judge, cumulative_counters_pass_2_to_the_47) {
  const auto& cycles = catalog::info(Metric::kMmaCyclesActive);
  EXPECT_TRUE(judge(cycles, 1, 140737488355327.0).present());
  EXPECT_EQ(why(Metric::kMmaCyclesActive, 1, 140737488355328.0), AbsentReason::kBlank);
  EXPECT_TRUE(judge(cycles, 1, 140737488355332.0).present());
  EXPECT_TRUE(judge(cycles, 1, 3e15).present());
  EXPECT_EQ(why(Metric::kMmaCyclesActive, 1, 9223372036854775792.0), AbsentReason::kBlank);
}

TEST(Judge, power_of_a_32_bit_blank_is_unknown_but_a_byte_rate_of_that_size_is_a_value) {
  EXPECT_EQ(why(Metric::kPower, 1, 2147483632.0), AbsentReason::kBlank);
  EXPECT_TRUE(judge(catalog::info(Metric::kPcieTx), 1, 2147483632.0).present());
}

TEST(Alias, units_come_from_the_name) {
  const auto scale = [](std::string_view name) {
    const catalog::MetricAlias* alias = catalog::find_alias(name, std::nullopt);
    return alias == nullptr ? 0.0 : alias->scale;
  };
  EXPECT_EQ(scale("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), 1);
  EXPECT_EQ(scale("DCGM_FI_PROF_TENSOR_UTIL_RATIO"), 1);
  EXPECT_EQ(scale("DCGM_FI_DEV_GPU_UTIL_RATIO"), 0.01);
  EXPECT_EQ(scale("nvidia_gpu_any_tensor_util_percent"), 0.01);
  EXPECT_EQ(scale("nvidia_smi_clocks_current_sm_clock_hz"), 1);
  EXPECT_EQ(scale("DCGM_FI_DEV_SM_CLOCK"), 1e6);
  EXPECT_EQ(scale("uuid:ceems_gpu_sm_active:ratio"), 0.01);
  EXPECT_EQ(scale("DCGM_FI_DEV_SM_CLOC"), 0);
}

TEST(Alias, a_sub_pipe_is_not_the_tensor_activity) {
  EXPECT_NE(catalog::find_alias("gpu_tensor_utilization", "any"), nullptr);
  EXPECT_EQ(catalog::find_alias("gpu_tensor_utilization", "hmma"), nullptr);
}

TEST(Gpu, the_slices_of_a_mig_profile_are_read) {
  const auto slices = [](const char* profile) {
    GpuIdentity gpu;
    gpu.mig_profile = profile;
    return gpu.mig_slices();
  };
  EXPECT_EQ(slices("1g.5gb"), 1);
  EXPECT_EQ(slices("3g.40gb"), 3);
  EXPECT_EQ(slices("1c.3g.20gb"), 3);
  EXPECT_EQ(slices("1g.10gb+me"), 1);
  EXPECT_EQ(slices(""), std::nullopt);
  EXPECT_EQ(slices("xg.5gb"), std::nullopt);
  EXPECT_EQ(slices("99g.5gb"), std::nullopt);
}

TEST(Quality, every_reason_of_absence_has_a_name_and_a_sentence) {
  for (std::size_t i = 0; i < kAbsentReasonCount; ++i) {
    EXPECT_FALSE(absent_reason_name(static_cast<AbsentReason>(i)).empty());
    EXPECT_FALSE(quality_meaning(absent_reason_name(static_cast<AbsentReason>(i))).empty());
  }
}

TEST(Quality, a_log_counts_all_and_names_three_places) {
  QualityLog log;
  for (const char* where : {"a", "a", "b", "c", "d"}) log.add("blank", where);
  QualityLog other;
  other.add("blank", "e", 10);
  log.merge(other);
  ASSERT_EQ(log.entries().size(), 1U);
  EXPECT_EQ(log.entries()[0].count, 15U);
  EXPECT_EQ(log.entries()[0].where, "a; b; c; ...");
}

}  // namespace
}  // namespace flopsight::samples
