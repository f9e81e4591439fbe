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
  EXPECT_NEAR(set_and_read(Metric::kEnergy, 1.29931554972e8), 1.29931554972e8, 0.5);
  EXPECT_NEAR(set_and_read(Metric::kEnergy, 1.0995e12), 1.0995e12, 0.5);
}

TEST(PendingRows, times_come_back_to_the_millisecond_in_order) {
  PendingRows rows;
  for (const std::int64_t time : {kStart + 3, std::int64_t{0}, (std::int64_t{1} << 47) - 1, kStart}) rows.touch(time, 1);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at(0).unix_milliseconds(), 0);
  EXPECT_EQ(rows.at(1).unix_milliseconds(), kStart);
  EXPECT_EQ(rows.at(2).unix_milliseconds(), kStart + 3);
  EXPECT_EQ(rows.at(3).unix_milliseconds(), (std::int64_t{1} << 47) - 1);
  EXPECT_EQ(rows.first_at_or_after(kStart + 1), 2U);
}

// What a row says of a counter depends on nothing else: after a restart, or a reset of the counter, the same reading is the same number.
TEST(PendingRows, energy_is_what_was_read_whatever_came_before_it) {
  PendingRows rows;
  int i = 0;
  for (const double joules : {9.9e11, 500.0, 500.4, 4.2e9, 4.2e9 + 10'500, 0.0}) {
    rows.set(rows.touch(kStart + 15'000 * i++, 1), slot(Metric::kEnergy), joules);
    EXPECT_EQ(rows.value(rows.size() - 1, slot(Metric::kEnergy)), std::round(joules));
    if (rows.size() > 3) rows.drop_before(1);
  }
}

TEST(PendingRows, energy_beyond_what_a_gpu_can_have_used_is_none) {
  PendingRows rows;
  rows.set(rows.touch(kStart, 1), slot(Metric::kEnergy), 1.2e12);
  EXPECT_FALSE(rows.has(0, slot(Metric::kEnergy)));
}

TEST(PendingRows, whose_utilisation_is_changes_no_time) {
  PendingRows rows;
  PendingRow& row = rows.at(rows.touch(kStart + 7, 1));
  EXPECT_FALSE(row.device_utilization());
  row.set_device_utilization(true);
  EXPECT_TRUE(row.device_utilization());
  EXPECT_EQ(row.unix_milliseconds(), kStart + 7);
  row.set_device_utilization(false);
  EXPECT_FALSE(row.device_utilization());
}

}  // namespace
}  // namespace flopsight::live
