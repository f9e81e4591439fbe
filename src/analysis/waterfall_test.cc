#include "analysis/waterfall.h"

#include <gtest/gtest.h>

#include "rollups/causes.h"

namespace flopsight::analysis {
namespace {

double sum(const Waterfall& w) {
  return w.ofu_ratio.value_or(0) + w.clock_loss_ratio.value_or(0) + w.tensor_idle_sm_busy_ratio.value_or(0) + w.sm_idle_ratio.value_or(0) +
         w.tensor_idle_unsplit_ratio.value_or(0) + w.unmeasured_ratio;
}

rollups::Totals some() {
  rollups::Totals t;
  t.allocated_seconds = 100;
  t.measured_seconds = 80;
  t.delivered_seconds = 30;
  t.tensor_measured_seconds = 36;
  t.sm_known_seconds = 60;
  t.sm_active_seconds = 45;
  t.tensor_within_sm_known_seconds = 30;
  t.causes.clock_power_seconds = 5;
  t.causes.clock_thermal_seconds = 2;
  t.causes.clock_gain_seconds = 1;
  t.causes.memory_bound_seconds = 4;
  t.causes.other_kernels_seconds = 9;
  t.causes.stalled_seconds = 1;
  t.causes.communication_seconds = 6;
  t.causes.host_seconds = 3;
  return t;
}

TEST(Waterfall, what_lies_below_ofu_adds_up_to_it_and_a_step_that_is_not_known_is_absent) {
  Waterfall w = waterfall_of(some());
  set_below_ofu(w, std::nullopt, std::nullopt);
  EXPECT_FALSE(w.below_ofu);
  set_below_ofu(w, 1.25, 4.0 / 3);
  EXPECT_NEAR(*w.below_ofu->tile_ratio, 0.3 - 0.24, 1e-12);
  EXPECT_NEAR(*w.below_ofu->recompute_ratio, 0.24 - 0.18, 1e-12);
  EXPECT_NEAR(w.below_ofu->model_ratio, 0.18, 1e-12);
  set_below_ofu(w, std::nullopt, 1.0);
  EXPECT_FALSE(w.below_ofu->tile_ratio);
  EXPECT_EQ(*w.below_ofu->recompute_ratio, 0);
  Waterfall unmeasured;
  set_below_ofu(unmeasured, 1.25, 1.3);
  EXPECT_FALSE(unmeasured.below_ofu);
}

TEST(Waterfall, terms_add_up_to_the_allocated_time_and_parts_to_their_terms) {
  const Waterfall w = waterfall_of(some());
  EXPECT_NEAR(sum(w), 1, 1e-12);
  EXPECT_NEAR(*w.clock_loss_ratio, 0.06, 1e-12);
  EXPECT_NEAR(w.clock->power_cap_ratio + w.clock->thermal_ratio + w.clock->setting_ratio + w.clock->unexplained_ratio + w.clock->gain_ratio,
              *w.clock_loss_ratio, 1e-12);
  EXPECT_EQ(w.clock->unexplained_ratio, 0);
  EXPECT_NEAR(w.clock->gain_ratio, -0.01, 1e-12);
  EXPECT_NEAR(w.sm_busy->unsplit_ratio, 0.02, 1e-12);
  EXPECT_NEAR(w.sm_idle->unsplit_ratio, 0.05, 1e-12);
  // Tensor idle in time without SM activity: 20 s less the 6 s of tensor activity in it.
  EXPECT_NEAR(*w.tensor_idle_unsplit_ratio, 0.14, 1e-12);
  EXPECT_NEAR(w.unmeasured_ratio, 0.2, 1e-12);
}

TEST(Waterfall, sums_without_samples_give_no_cause_and_say_so) {
  rollups::Totals t = some();
  t.causes = {};
  const Waterfall w = waterfall_of(t);
  EXPECT_NEAR(sum(w), 1, 1e-12);
  EXPECT_NEAR(w.clock->unexplained_ratio, *w.clock_loss_ratio, 1e-12);
  EXPECT_NEAR(w.sm_busy->unsplit_ratio, *w.tensor_idle_sm_busy_ratio, 1e-12);
  EXPECT_NEAR(w.sm_idle->unsplit_ratio, *w.sm_idle_ratio, 1e-12);
  EXPECT_NE(cause_rules(w).find("not split by cause"), std::string_view::npos);
  EXPECT_EQ(cause_rules(waterfall_of(some())), rollups::kCauseRules);
}

TEST(Waterfall, a_gain_that_only_the_sum_shows_is_a_gain) {
  rollups::Totals t = some();
  t.causes = {};
  t.delivered_seconds = 40;
  const Waterfall w = waterfall_of(t);
  EXPECT_NEAR(w.clock->gain_ratio, -0.04, 1e-12);
  EXPECT_EQ(w.clock->unexplained_ratio, 0);
}

TEST(Waterfall, nothing_is_concluded_from_what_was_not_measured) {
  rollups::Totals t;
  t.allocated_seconds = 100;
  const Waterfall w = waterfall_of(t);
  EXPECT_EQ(w.unmeasured_ratio, 1);
  EXPECT_FALSE(w.ofu_ratio || w.clock_loss_ratio || w.sm_idle_ratio || w.clock || w.sm_busy || w.sm_idle);
}

}  // namespace
}  // namespace flopsight::analysis
