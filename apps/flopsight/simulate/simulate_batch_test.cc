// A batch that is kept from round to round has what one that is made anew for the round has.
#include "simulate/simulate_batch.h"

#include <gtest/gtest.h>

namespace flopsight::app {
namespace {

// Jobs of this scenario begin to report their MFU some time after their labels are there, and stop before those are gone.
TEST(SimulatedBatch, a_kept_message_has_the_series_of_its_round) {
  simulation::Options asked;
  asked.scenario = simulation::Scenario::kDebugFlagRegression;
  asked.labels = simulation::LabelStyle::kSlurm;
  asked.interval = units::Seconds(60);
  asked.window.end = asked.window.start + units::Seconds(3 * 3600);
  const auto checked = simulation::check(asked);
  ASSERT_TRUE(checked.ok());
  const simulation::Options& options = *checked;
  const simulation::Timetable timetable(options);
  simulation::Meter meter(timetable);
  SimulatedBatch kept(0, options.hosts());
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (int i = 0; i < 180; ++i) {
    const std::int64_t round = options.start_milliseconds() + i * options.interval_milliseconds();
    const SimulatedBatch::How how{wire::RemoteWriteVersion::kV1, 0, i == 0};
    SimulatedBatch fresh(0, options.hosts());
    const auto expected = fresh.fill(timetable, meter, round, how);
    const auto found = kept.fill(timetable, meter, round, how);
    ASSERT_EQ(found.samples, expected.samples) << "round " << i;
    ASSERT_EQ(*found.body, *expected.body) << "round " << i;
    least = std::min(least, found.samples);
    most = std::max(most, found.samples);
  }
  EXPECT_LT(least, most) << "the series changed on the way";
}

}  // namespace
}  // namespace flopsight::app
