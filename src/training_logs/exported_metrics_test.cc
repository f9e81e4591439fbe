#include "training_logs/exported_metrics.h"

#include <gtest/gtest.h>

#include <limits>

namespace flopsight::training_logs {
namespace {

constexpr units::Instant kTime{1'790'000'000'000};

TEST(ExportedMetrics, megatron_core_s_names_are_known) {
  const ExportedMetrics metrics = ExportedMetrics::builtin();
  const auto step = metrics.read("megatron_training_throughput_tflops", 512.5, kTime);
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(*step->flops_per_second_per_gpu, 512.5e12);
  EXPECT_EQ(step->time, kTime);
  EXPECT_TRUE(metrics.known("megatron.training.tokens_per_sec"));
  EXPECT_FALSE(metrics.known("megatron_training_step_duration_ms_sum"));
  EXPECT_FALSE(metrics.read("node_load1", 1, kTime));
}

TEST(ExportedMetrics, what_is_no_measurement_is_nothing) {
  const ExportedMetrics metrics = ExportedMetrics::builtin();
  for (const double value : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(metrics.read("megatron_training_tokens_per_sec", value, kTime)) << value;
  }
}

TEST(ExportedMetrics, a_user_says_the_meaning_and_the_unit) {
  const auto metrics = ExportedMetrics::parse("training-metrics:\n- {name: ours_mfu, means: mfu, unit: '%'}\n- {name: ours_step, means: step}\n");
  ASSERT_TRUE(metrics.ok()) << metrics.error().message;
  EXPECT_DOUBLE_EQ(*metrics->read("ours_mfu", 41.5, kTime)->mfu_ratio, 0.415);
  EXPECT_EQ(metrics->read("ours_step", 12, kTime)->step, 12);
  EXPECT_TRUE(metrics->known("megatron_training_loss"));
  const auto mfu = metrics->named("mfu");
  ASSERT_EQ(mfu.size(), 2U);
  EXPECT_EQ(mfu[0].name, "ours_mfu");
  EXPECT_EQ(mfu[1].name, "flopsight_training_mfu_ratio");  // known to whoever says nothing
  EXPECT_DOUBLE_EQ(mfu[0].base_unit_scale, 0.01);
}

TEST(ExportedMetrics, mistakes_name_their_line) {
  const auto error_of = [](std::string_view text) {
    const auto parsed = ExportedMetrics::parse(text);
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(error_of("training-metrics:\n- {name: a, means: mfu, unit: ms}"), "line 2: unit: found \"ms\", expected \"%\" or ratio");
  EXPECT_EQ(error_of("training-metrics:\n- {name: a, means: speed}").substr(0, 45), "line 2: means: found \"speed\", expected step, ");
  EXPECT_EQ(error_of("training-metrics:\n- {name: a, is: mfu}"), "line 2: 'is': expected name, means or unit, each with a text");
  EXPECT_EQ(error_of("training-metrics:\n- {name: 'a\"}', means: mfu, unit: '%'}"), "line 2: name: found \"a\"}\", expected the name of a metric");
  EXPECT_EQ(error_of("x: []"), "line 1: expected a list under the key training-metrics, and no other key");
}

TEST(ExportedMetrics, limits) {
  std::string text = "training-metrics:\n";
  for (std::size_t i = 0; i < ExportedMetrics::metrics_max; ++i) text += "- {name: a, means: loss}\n";
  EXPECT_TRUE(ExportedMetrics::parse(text).ok());
  EXPECT_FALSE(ExportedMetrics::parse(text + "- {name: a, means: loss}\n").ok());
}

}  // namespace
}  // namespace flopsight::training_logs
