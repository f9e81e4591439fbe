#include "rollups/fleet.h"

#include <gtest/gtest.h>

#include "rollups/pushed.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::GpuTimeline;
using units::Instant;
using units::Seconds;

Instant at(double seconds) { return Instant{static_cast<std::int64_t>(seconds * 1000)}; }

GpuTimeline timeline(const std::string& uuid, double from, double to, const std::string& instance = "",
                     const std::string& profile = "") {
  GpuTimeline gpu;
  gpu.gpu.uuid = uuid;
  gpu.gpu.host = "n1";
  gpu.gpu.model_raw = "NVIDIA A100-SXM4-40GB";
  gpu.gpu.mig_instance = instance;
  gpu.gpu.mig_profile = profile;
  for (double t = from; t < to; t += 30) {
    GpuScrape s;
    s.time = at(t);
    s.reading(Metric::kTensorActive) = 0.5;
    s.reading(Metric::kSmClock) = 1.41e9;
    gpu.scrapes.push_back(s);
  }
  return gpu;
}

struct World {
  FleetOptions options;
  jobs::JobTable jobs;
  jobs::HolderTable holders;
  samples::QualityLog quality;
  Fleet roll(std::vector<GpuTimeline> timelines) {
    return roll_fleet(std::move(timelines), options, jobs, holders, quality);
  }
};

double allocated(const Fleet& fleet) {
  double seconds = 0;
  for (const auto* list : {&fleet.gpus, &fleet.rests}) {
    for (const GpuTime& gpu : *list) seconds += gpu.sum().allocated_seconds;
  }
  return seconds;
}

TEST(Fleet, a_mig_gpu_is_one_gpu_whatever_its_instances) {
  World world;
  world.options.integrate.window = {at(0), at(3600)};
  // Three slices all the time, two more in the first half, and a repartition in the second.
  const Fleet fleet = world.roll({timeline("GPU-a", 0, 3600, "1", "3g.20gb"),
                                  timeline("GPU-a", 0, 1800, "2", "2g.10gb"),
                                  timeline("GPU-a", 1800, 3600, "9", "4g.20gb")});
  EXPECT_NEAR(allocated(fleet), 3600, 1e-6);
  ASSERT_EQ(fleet.rests.size(), 1U);
  EXPECT_NEAR(fleet.rests[0].sum().allocated_seconds, 1800 * 2.0 / 7, 1e-6);
  EXPECT_NEAR(fleet.rests[0].sum().absent_seconds[static_cast<std::size_t>(AbsentReason::kUnsplitInstances)],
              1800 * 2.0 / 7, 1e-6);
}

TEST(Fleet, a_mig_gpu_without_uuid_is_one_gpu_and_its_neighbours_are_whole) {
  World world;
  world.options.integrate.window = {at(0), at(3600)};
  std::vector<GpuTimeline> gpus = {timeline("", 0, 3600, "1", "3g.20gb"), timeline("", 0, 1800, "2", "4g.20gb"), timeline("", 0, 1800)};
  gpus[0].gpu.index = gpus[1].gpu.index = "0";
  gpus[2].gpu.index = "1";
  const Fleet fleet = world.roll(std::move(gpus));
  EXPECT_NEAR(allocated(fleet), 2 * 3600, 1e-6);
  ASSERT_EQ(fleet.rests.size(), 1U);
  EXPECT_NEAR(fleet.rests[0].sum().allocated_seconds, 1800 * 4.0 / 7, 1e-6);
  EXPECT_NEAR(fleet.gpus[2].sum().allocated_seconds, 3600, 1e-6);
}

TEST(Fleet, an_instance_has_no_time_in_a_window_that_it_was_not_in) {
  World world;
  world.options.integrate.window = {at(7200), at(10800)};
  const Fleet fleet = world.roll({timeline("GPU-a", 0, 1800, "1", "3g.20gb"), timeline("GPU-a", 0, 10800, "2", "4g.20gb"),
                                  timeline("GPU-b", 14400, 18000, "1", "7g.40gb")});
  EXPECT_NEAR(allocated(fleet), 2 * 3600, 1e-6);
  EXPECT_EQ(fleet.gpus[0].sum().allocated_seconds, 0);
  EXPECT_NEAR(fleet.gpus[1].sum().measured_seconds, 3600 * 4.0 / 7, 1e-6);
  EXPECT_EQ(fleet.gpus[2].sum().allocated_seconds, 0);
  ASSERT_EQ(fleet.rests.size(), 2U);
  EXPECT_NEAR(fleet.rests[0].sum().allocated_seconds, 3600 * 3.0 / 7, 1e-6);
  EXPECT_NEAR(fleet.rests[1].sum().allocated_seconds, 3600, 1e-6);
}

TEST(Fleet, an_instance_of_unknown_profile_has_no_weight_and_is_named) {
  World world;
  const Fleet fleet = world.roll({timeline("GPU-a", 0, 600, "1", "")});
  EXPECT_EQ(world.quality.count("mig_profile_unknown"), 1U);
  EXPECT_EQ(fleet.gpus[0].sum().allocated_seconds, 0);
}

TEST(Fleet, instances_that_only_their_own_uuids_name_are_no_whole_gpus) {
  World world;
  world.options.integrate.window = {at(0), at(3600)};
  const Fleet fleet = world.roll({timeline("MIG-a", 0, 3600, "MIG-a", "3g.20gb"), timeline("MIG-b", 0, 3600, "MIG-b", "")});
  EXPECT_NEAR(allocated(fleet), 3600 * 3.0 / 7, 1e-6);
  EXPECT_EQ(world.quality.count("mig_profile_unknown"), 1U);
}

TEST(Fleet, a_gpu_that_came_late_was_not_seen_before) {
  World world;
  const Fleet fleet = world.roll({timeline("GPU-a", 0, 3600), timeline("GPU-b", 1800, 3600)});
  EXPECT_NEAR(allocated(fleet), 7200, 1e-6);
  EXPECT_NEAR(fleet.gpus[1].sum().absent_seconds[static_cast<std::size_t>(AbsentReason::kNotSeen)], 1800, 1e-6);
}

TEST(Fleet, one_point_in_time_per_gpu_is_an_instant) {
  World world;
  const Fleet fleet = world.roll({timeline("GPU-a", 0, 30), timeline("GPU-b", 60, 90)});
  EXPECT_FALSE(fleet.has_times);
  EXPECT_EQ(world.quality.count("timestamps_ignored"), 2U);
}

TEST(Fleet, gpus_that_only_the_jobs_file_knows_are_unmeasured) {
  World world;
  auto jobs = jobs::parse_jobs("job,hosts,gpus,start,end\na,n1;n9,0;1,600,1200\n");
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  world.jobs = jobs::JobTable(*jobs);
  world.options.integrate.window = {at(0), at(3600)};
  GpuTimeline seen = timeline("GPU-a", 0, 3600);
  seen.gpu.index = "0";
  Fleet fleet = world.roll({seen});
  add_unseen_gpus(fleet, world.options, world.jobs, world.holders, world.quality);
  ASSERT_EQ(fleet.gpus.size(), 4U);
  EXPECT_NEAR(allocated(fleet), 3600 + 3 * 600, 1e-6);
  EXPECT_EQ(world.quality.count("not_seen"), 3U);
}

samples::PushedSpan span(std::optional<samples::HolderId> holder, double first, double last,
                         std::uint64_t steps) {
  samples::PushedSpan s;
  s.gpu.uuid = "GPU-a";
  s.gpu.model_raw = "NVIDIA A100-SXM4-40GB";
  s.holder = holder;
  s.present_steps = s.measured_steps = s.clock_steps = steps;
  s.first = at(first);
  s.last = at(last);
  const double n = static_cast<double>(steps);
  s.tensor_ratio_sum = 0.5 * n;
  s.clock_hertz_sum = 1.41e9 * n;
  s.tensor_clock_hertz_sum = 0.5 * 1.41e9 * n;
  return s;
}

TEST(Pushed, spans_become_the_time_of_their_holders) {
  World world;
  world.options.integrate.window = {at(0), at(3600)};
  // 60 s steps: nobody for ten minutes, then a job with a hole of five steps; the job's series lingers one step.
  const Fleet fleet = fleet_of_spans({span(std::nullopt, 0, 600, 11), span(0, 600, 3540, 45)}, Seconds(60),
                                     world.options, world.quality);
  ASSERT_EQ(fleet.gpus.size(), 1U);
  EXPECT_NEAR(allocated(fleet), 3600, 1e-6);
  const Totals job = fleet.gpus[0].portions[0].totals;
  EXPECT_NEAR(job.allocated_seconds, 3000, 1e-6);
  EXPECT_NEAR(job.measured_seconds, 45 * 60, 1e-6);
  EXPECT_NEAR(job.absent_seconds[static_cast<std::size_t>(AbsentReason::kGap)], 300, 1e-6);
  EXPECT_NEAR(job.delivered_seconds, 0.5 * 45 * 60, 1e-6);
  const Totals nobody = fleet.gpus[0].portions[1].totals;
  EXPECT_NEAR(nobody.allocated_seconds, 600, 1e-6);
  EXPECT_NEAR(nobody.measured_seconds, 600, 1e-6);
}

TEST(Pushed, jobs_that_follow_each_other_do_not_count_twice) {
  World world;
  world.options.integrate.window = {at(0), at(3600)};
  const Fleet fleet = fleet_of_spans({span(0, 0, 1800, 31), span(1, 1800, 3540, 30)}, Seconds(60),
                                     world.options, world.quality);
  EXPECT_NEAR(allocated(fleet), 3600, 1e-6);
  EXPECT_NEAR(fleet.gpus[0].sum().measured_seconds, 3600, 1e-6);
}

}  // namespace
}  // namespace flopsight::rollups
