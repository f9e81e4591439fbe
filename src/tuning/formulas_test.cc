#include "tuning/formulas.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flopsight::tuning {
namespace {

const std::vector<std::pair<std::uint64_t, double>> kLengths = {{256, .25}, {512, .25}, {1024, .25}, {2048, .15}, {4096, .10}};

TEST(Formulas, padding_of_a_histogram) {
  EXPECT_NEAR(padded_to_longest_ratio(kLengths), 3.5, 0.05);
  EXPECT_NEAR(1 - 1 / padded_to_longest_ratio(kLengths), 0.716, 0.002);
  EXPECT_NEAR(padded_in_batch_ratio(kLengths, 2), 1.47, 0.01);
  EXPECT_NEAR(padded_in_batch_ratio(kLengths, 4), 2.06, 0.01);
  EXPECT_NEAR(padded_in_batch_ratio(kLengths, 8), 2.67, 0.01);
  EXPECT_NEAR(padded_in_batch_ratio(kLengths, 16), 3.18, 0.01);
  EXPECT_NEAR(padded_in_batch_ratio(kLengths, 1), 1, 1e-12);
}

TEST(Formulas, first_fit_decreasing_fills_nearly_all) {
  EXPECT_GT(packing_efficiency_ratio(kLengths, 4096), 0.95);
  EXPECT_LE(packing_efficiency_ratio(kLengths, 4096), 1);
  EXPECT_NEAR(packing_efficiency_ratio({{3000, 1}}, 4096), 3000.0 / 4096, 1e-3) << "two do not go into one";
  std::vector<std::pair<std::uint64_t, double>> spread;
  for (std::uint64_t length = 1; length <= 100'000; ++length) spread.emplace_back(length % 2000 + 1, 1);
  EXPECT_GT(packing_efficiency_ratio(spread, 4096), 0.95) << "however many lengths there are";
  EXPECT_NEAR(packing_efficiency_ratio({{9000, 1}}, 4096), 1, 1e-3) << "longer ones are cut";
}

TEST(Formulas, bubble) {
  EXPECT_NEAR(bubble_ratio(8, 1, 8), 0.467, 0.001);
  EXPECT_NEAR(bubble_ratio(8, 1, 32), 0.179, 0.001);
  EXPECT_NEAR(bubble_ratio(8, 4, 32), 0.052, 0.001);
}

TEST(Formulas, checkpoints_of_llama_3) {
  const double failure = 3.09 * 3600;
  EXPECT_NEAR(young_interval_seconds(5, failure), 334, 1);
  EXPECT_NEAR(daly_interval_seconds(5, failure), 330, 1);
  EXPECT_NEAR(daly_interval_seconds(30, failure), 797, 1);
  EXPECT_NEAR(daly_interval_seconds(60, failure), 1116, 2);
  EXPECT_NEAR(young_interval_seconds(300, failure), 2585, 3);
  EXPECT_NEAR(daly_interval_seconds(300, failure), 2389, 3);
  EXPECT_NEAR(productive_ratio(60, 1156, 600, failure), 0.852, 0.001) << "0.842 in first order, 1 - c/T - (T/2 + R)/M";
}

TEST(Formulas, checkpoints_that_are_far_apart_leave_little_and_never_less_than_nothing) {
  const double failure = 8 * 3600, cost = 30;
  EXPECT_NEAR(productive_ratio(cost, 60, 0, failure), 60.0 / 90, 1e-2);
  EXPECT_NEAR(productive_ratio(cost, 2 * failure, 0, failure), 2 / (std::exp(2.0) - 1), 1e-3) << "0 in first order";
  double before = 1;
  for (const double times : {0.1, 0.5, 1.0, 2.0, 4.0, 20.0, 300.0}) {
    const double ratio = productive_ratio(cost, times * failure, 600, failure);
    EXPECT_GT(ratio, 0) << times;
    EXPECT_LT(ratio, before) << times;
    before = ratio;
  }
  EXPECT_EQ(productive_ratio(cost, 1e6 * failure, 600, failure), 0);
}

TEST(Formulas, the_best_interval_is_the_ratios_maximum) {
  for (const double failure : {600.0, 11124.0, 1e6}) {
    for (const double cost : {0.1, 30.0, 300.0, 3000.0}) {
      const double best = daly_interval_seconds(cost, failure), ratio = productive_ratio(cost, best, 600, failure);
      EXPECT_GT(best, 0);
      EXPECT_LT(best, failure);
      for (const double off : {0.9, 1.1}) EXPECT_GT(ratio, productive_ratio(cost, off * best, 600, failure)) << cost << " s, " << failure << " s";
    }
  }
}

TEST(Formulas, speculative_decoding_counts_the_bonus_token) {
  EXPECT_NEAR(speculative_speedup_ratio(0.8, 3, 0.05, 1), 2.57, 0.01);
  EXPECT_NEAR(speculative_speedup_ratio(0.8, 5, 0.05, 1), 2.95, 0.01);
  EXPECT_NEAR(speculative_speedup_ratio(0.8, 5, 0.2, 1), 1.84, 0.01);
  EXPECT_NEAR(speculative_speedup_ratio(0.6, 5, 0.2, 1), 1.19, 0.01);
  EXPECT_NEAR(speculative_speedup_ratio(0.8, 4, 0.1, 1), 2.40, 0.01);
  EXPECT_LT(speculative_speedup_ratio(0.8, 5, 0.2, 6), 1) << "compute-bound: verifying costs as much as decoding";
  EXPECT_EQ(speculative_tokens_total(1, 4), 5);
}

TEST(Formulas, experts_that_a_batch_touches) {
  EXPECT_NEAR(experts_touched_total(128, 8, 1), 8, 1e-9);
  EXPECT_NEAR(experts_touched_total(128, 8, 8), 52, 1);
  EXPECT_NEAR(experts_touched_total(128, 8, 32), 112, 1);
  EXPECT_NEAR(experts_touched_total(256, 8, 128), 252, 1);
}

TEST(Formulas, groups_that_a_token_touches) {
  EXPECT_NEAR(groups_touched_total(8, 1, 4), 1, 1e-12);
  EXPECT_NEAR(groups_touched_total(8, 8, 4), 4, 1e-12) << "all experts are in all groups";
  EXPECT_NEAR(groups_touched_total(4, 2, 2), 2 * (1 - 1.0 / 6), 1e-12) << "one pair of six avoids a group";
  EXPECT_NEAR(groups_touched_total(256, 8, 1), 1, 1e-12);
}

TEST(Formulas, traffic_of_top_k) {
  EXPECT_NEAR(top_k_traffic_ratio(1.0 / 64, 64, 4), 1, 1e-9) << "break-even at 1/n with FP32";
  EXPECT_GT(top_k_traffic_ratio(0.05, 64, 2), 1);
}

}  // namespace
}  // namespace flopsight::tuning
