#include "live/pending_rows.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flopsight::live {
namespace {

using catalog::Metric;

constexpr std::int64_t kStart = 1'796'000'000'000;

std::uint8_t slot(Metric metric) { return *row_slot(metric); }

double set_and_read(Metric metric, double value) {
  PendingRows rows;
  const std::size_t at = rows.touch(kStart, 1);
  rows.set(at, slot(metric), value);
  return rows.value(at, slot(metric));
}

TEST(PendingRows, values_come_back_to_the_precision_that_the_header_says) {
  EXPECT_NEAR(set_and_read(Metric::kTensorActive, 0.123457), 0.123457, 1e-8);
  EXPECT_NEAR(set_and_read(Metric::kSmClock, 1.755e9), 1.755e9, 100);
  EXPECT_NEAR(set_and_read(Metric::kPower, 687.42), 687.42, 0.051);
  EXPECT_NEAR(set_and_read(Metric::kPower, 5'000), 5'000, 0.051);  // the most that the catalogue takes
  EXPECT_NEAR(set_and_read(Metric::kSmActive, 0.87654), 0.87654, 1.0 / 100'000);
  EXPECT_NEAR(set_and_read(Metric::kNvlinkTx, 3.21e11), 3.21e11, 3.21e11 * 0.004);
  EXPECT_EQ(set_and_read(Metric::kEnergy, 1.29931554972e8), 1.29931554972e8);
}

TEST(PendingRows, times_come_back_to_the_millisecond_in_order) {
  PendingRows rows;
  for (const std::int64_t time : {kStart + 3, std::int64_t{0}, (std::int64_t{1} << 48) - 1, kStart}) rows.touch(time, 1);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at(0).unix_milliseconds(), 0);
  EXPECT_EQ(rows.at(1).unix_milliseconds(), kStart);
  EXPECT_EQ(rows.at(2).unix_milliseconds(), kStart + 3);
  EXPECT_EQ(rows.at(3).unix_milliseconds(), (std::int64_t{1} << 48) - 1);
  EXPECT_EQ(rows.first_at_or_after(kStart + 1), 2U);
}

// A counter that runs for a year, of which a few rows are here at a time: differences keep their digits.
TEST(PendingRows, energy_of_a_counter_that_runs_for_long_keeps_its_digits) {
  PendingRows rows;
  const auto energy_at = [](int i) { return 4.2e9 + 700.0 * 3'600 * i; };
  for (int i = 0; i < 24 * 365; ++i) {
    const std::size_t at = rows.touch(kStart + std::int64_t{3'600'000} * i, 1);
    rows.set(at, slot(Metric::kEnergy), energy_at(i));
    if (rows.size() > 5) rows.drop_before(2);
    ASSERT_NEAR(rows.value(rows.size() - 1, slot(Metric::kEnergy)), energy_at(i), 2.0);
  }
}

TEST(PendingRows, energy_of_a_counter_that_began_anew_is_the_new_one) {
  PendingRows rows;
  rows.set(rows.touch(kStart, 1), slot(Metric::kEnergy), 9.9e9);
  rows.set(rows.touch(kStart + 15'000, 1), slot(Metric::kEnergy), 500);
  EXPECT_NEAR(rows.value(1, slot(Metric::kEnergy)), 500, 1'000);
  rows.drop_before(1);
  for (int i = 2; i < 6; ++i) rows.set(rows.touch(kStart + 15'000 * i, 1), slot(Metric::kEnergy), 500 + 10'500.0 * i);
  rows.drop_before(1);
  EXPECT_NEAR(rows.value(3, slot(Metric::kEnergy)) - rows.value(0, slot(Metric::kEnergy)), 3 * 10'500, 0.1);
}

}  // namespace
}  // namespace flopsight::live
