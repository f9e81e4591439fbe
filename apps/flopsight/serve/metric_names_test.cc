#include "serve/metric_names.h"

#include <gtest/gtest.h>

#include <random>

namespace flopsight::app {
namespace {

TEST(MetricNames, the_same_is_made_of_a_metric_in_whatever_order_they_come) {
  const training_logs::ExportedMetrics reported = training_logs::ExportedMetrics::builtin();
  const std::vector<std::string> metrics = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_SM_CLOCK", "node_load1", "kube_pod_owner",
                                            "megatron_training_throughput_tflops", "DCGM_FI_DEV_POWER_USAGE", "", "up"};
  MetricNames names(reported);
  std::mt19937 random(7);
  for (int i = 0; i < 2'000; ++i) {
    // Rounds in order, and now and then another one.
    const std::string& metric = metrics[random() % 5 == 0 ? random() % metrics.size() : static_cast<std::size_t>(i) % metrics.size()];
    MetricNames fresh(reported);
    const MetricNames::Use expected = fresh.use_of(metric), use = names.use_of(metric);
    EXPECT_EQ(use.metric.alias, expected.metric.alias) << metric;
    EXPECT_EQ(use.is_owner, expected.is_owner) << metric;
    EXPECT_EQ(use.is_reported, expected.is_reported) << metric;
    EXPECT_EQ(use.wanted(), expected.wanted()) << metric;
  }
  EXPECT_TRUE(names.use_of("DCGM_FI_DEV_SM_CLOCK").wanted());
  EXPECT_FALSE(names.use_of("up").wanted());
}

// Names without end are not kept, and what is known goes on being known.
TEST(MetricNames, past_the_limit_names_are_looked_up_again) {
  const training_logs::ExportedMetrics reported = training_logs::ExportedMetrics::builtin();
  MetricNames names(reported);
  EXPECT_TRUE(names.use_of("DCGM_FI_DEV_SM_CLOCK").wanted());
  for (std::size_t i = 0; i < MetricNames::kNamesMax + 10; ++i) EXPECT_FALSE(names.use_of("other_" + std::to_string(i)).wanted());
  EXPECT_TRUE(names.use_of("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE").wanted());
  EXPECT_TRUE(names.use_of("DCGM_FI_DEV_SM_CLOCK").wanted());
}

}  // namespace
}  // namespace flopsight::app
