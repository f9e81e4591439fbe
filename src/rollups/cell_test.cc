#include "rollups/cell.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace flopsight::rollups {
namespace {

Cell random_cell(std::mt19937_64& random) {
  Cell cell;
  for (std::size_t i = 0; i < kCellFieldCount; ++i) {
    // Now and then the identity stays: a cell without a clock, without OFU.
    if (random() % 4 == 0) continue;
    cell[static_cast<CellField>(i)] = static_cast<std::int64_t>(random() % 1'000'000'000'000);
  }
  return cell;
}

Spread random_spread(std::mt19937_64& random) {
  Spread spread;
  for (std::size_t n = random() % 20; n > 0; --n) {
    spread.add(static_cast<double>(random() % 1300) / 1000, static_cast<std::int64_t>(random() % 60'000'000));
  }
  return spread;
}

TEST(Cell, merging_is_associative_and_commutative_with_the_empty_cell_as_its_identity) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const Cell a = random_cell(random), b = random_cell(random), c = random_cell(random);
    Cell left = a;
    left.merge(b);
    left.merge(c);
    Cell right = b;
    right.merge(c);
    Cell a_then_right = a;
    a_then_right.merge(right);
    EXPECT_EQ(left, a_then_right);
    Cell ab = a, ba = b;
    ab.merge(b);
    ba.merge(a);
    EXPECT_EQ(ab, ba);
    Cell with_nothing = a;
    with_nothing.merge(Cell{});
    EXPECT_EQ(with_nothing, a);
  }
}

TEST(Cell, any_grouping_and_order_of_a_day_of_cells_gives_the_same_total) {
  std::mt19937_64 random(2);
  std::vector<Cell> cells;
  for (int i = 0; i < 1440; ++i) cells.push_back(random_cell(random));
  Cell straight;
  for (const Cell& cell : cells) straight.merge(cell);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(cells.begin(), cells.end(), random);
    Cell grouped;
    for (std::size_t i = 0; i < cells.size();) {
      Cell part;
      for (std::size_t n = 1 + random() % 60; n > 0 && i < cells.size(); --n) part.merge(cells[i++]);
      grouped.merge(part);
    }
    EXPECT_EQ(grouped, straight);
  }
}

TEST(Cell, allocated_is_measured_plus_every_reason_of_absence) {
  Totals totals;
  totals.allocated_seconds = 60;
  totals.measured_seconds = 41.5;
  totals.absent_seconds[static_cast<std::size_t>(samples::AbsentReason::kGap)] = 12.25;
  totals.absent_seconds[static_cast<std::size_t>(samples::AbsentReason::kBlank)] = 6.25;
  EXPECT_EQ(cell_of(totals, {}).allocated_microseconds(), 60'000'000);
}

TEST(Cell, totals_survive_the_way_through_a_cell_to_a_millionth) {
  Totals totals;
  totals.allocated_seconds = 60;
  totals.measured_seconds = 60;
  totals.delivered_seconds = 24.1234567;
  totals.tensor_measured_seconds = 25.7654321;
  totals.clock_hertz_seconds = 60 * 1.755e9;
  totals.clock_known_seconds = 60;
  totals.clock_sensitivity_seconds2_per_hertz2 = 4 * (15 * 0.43 / 1.83e9) * (15 * 0.43 / 1.83e9);
  totals.surroundings.energy_joules = 38'123.4;
  totals.surroundings.event_seconds[2] = 45;
  totals.extremes.see_ofu(0.35, units::Instant{1000});
  totals.extremes.see_ofu(0.45, units::Instant{2000});
  totals.extremes.see_clock(1.7e9);
  const Totals back = totals_of(cell_of(totals, {}));
  EXPECT_NEAR(back.delivered_seconds, totals.delivered_seconds, 60e-6);
  EXPECT_NEAR(back.tensor_measured_seconds, totals.tensor_measured_seconds, 60e-6);
  EXPECT_NEAR(back.clock_hertz_seconds / totals.clock_hertz_seconds, 1, 1e-6);
  EXPECT_NEAR(back.clock_sensitivity_seconds2_per_hertz2 / totals.clock_sensitivity_seconds2_per_hertz2, 1, 1e-3);
  EXPECT_NEAR(back.surroundings.energy_joules, 38'123, 0.5);
  EXPECT_EQ(back.surroundings.event_seconds[2], 45);
  EXPECT_EQ(back.extremes.ofu_min_ratio, 0.35);
  EXPECT_EQ(back.extremes.ofu_last_ratio, 0.45);
  EXPECT_EQ(back.extremes.ofu_last_time.unix_milliseconds, 2000);
}

TEST(Cell, a_cell_without_ofu_has_no_lowest_ofu_rather_than_zero) {
  Totals totals;
  totals.allocated_seconds = 60;
  const Cell cell = cell_of(totals, {});
  EXPECT_FALSE(cell.has(CellField::kOfuMin));
  EXPECT_FALSE(extremes_of(cell).any_ofu);
}

TEST(Cell, column_names_are_distinct_and_carry_their_unit) {
  std::vector<std::string_view> names;
  for (const CellFieldInfo& field : cell_fields()) {
    EXPECT_FALSE(field.name.empty());
    EXPECT_GE(field.quantum, 1);
    names.push_back(field.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Spread, merging_is_associative_and_commutative) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const Spread a = random_spread(random), b = random_spread(random), c = random_spread(random);
    Spread left = a;
    left.merge(b);
    left.merge(c);
    Spread right = c;
    right.merge(b);
    right.merge(a);
    EXPECT_EQ(left, right);
    EXPECT_EQ(left.microseconds(), a.microseconds() + b.microseconds() + c.microseconds());
  }
}

TEST(Spread, percentiles_lie_within_half_a_bin_of_the_sorted_values) {
  std::mt19937_64 random(4);
  std::vector<double> values;
  Spread spread;
  for (int i = 0; i < 1000; ++i) {
    values.push_back(static_cast<double>(random() % 1'000'000) / 1e6);
    spread.add(values.back(), 1'000'000);
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.05, 0.5, 0.95}) {
    const double exact = values[static_cast<std::size_t>(share * 1000) - 1];
    EXPECT_NEAR(spread.percentile(share).value(), exact, 0.5 / Spread::kBinsPerUnit + 1e-9);
  }
  EXPECT_FALSE(Spread{}.percentile(0.5).has_value());
}

TEST(Spread, what_storage_hands_back_is_checked) {
  Spread spread;
  using Bin = Spread::Bin;
  const Bin descending[] = {{5, 10}, {4, 10}}, too_high[] = {{Spread::kBins, 1}}, zero[] = {{1, 0}},
            good[] = {{0, 3}, {240, 4}};
  EXPECT_FALSE(spread.assign(descending));
  EXPECT_FALSE(spread.assign(too_high));
  EXPECT_FALSE(spread.assign(zero));
  EXPECT_TRUE(spread.assign(good));
  EXPECT_EQ(spread.microseconds(), 7);
}

}  // namespace
}  // namespace flopsight::rollups
