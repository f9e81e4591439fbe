#include <gtest/gtest.h>

#include "rollups/integrate.h"
#include "rollups/test_integrate.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::GpuTimeline;
using units::Instant;
using units::megahertz;
using units::Seconds;
using test::at;
using test::scrape;
using test::World;

TEST(Holders, a_shared_gpu_is_one_gpu_hour_an_hour) {
  World world;
  GpuTimeline gpu;
  const auto p1 = world.job("p1"), p2 = world.job("p2");
  for (int i = 0; i < 4; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0.4));
    gpu.scrapes.back().holders = {p1, p2};
  }
  const GpuTime result = world.run(gpu);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "p1"), 60);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "p2"), 60);
  EXPECT_DOUBLE_EQ(result.sum().allocated_seconds, 120);
  EXPECT_EQ(result.holders_at_once_max, 2U);
}

TEST(Holders, a_short_label_gap_is_bridged_and_a_long_one_is_not) {
  for (const int missing : {2, 3}) {
    World world;
    GpuTimeline gpu;
    const auto pod = world.job("train-0");
    for (int i = 0; i < 10; ++i) {
      gpu.scrapes.push_back(scrape(i * 30, 0.4));
      if (i < 4 || i >= 4 + missing) gpu.scrapes.back().holders = {pod};
    }
    const GpuTime result = world.run(gpu);
    EXPECT_DOUBLE_EQ(world.hours_of(result, "train-0"), missing == 2 ? 300 : 210);
    EXPECT_EQ(world.quality.count("label_gap_bridged"), missing == 2 ? 2U : 0U);
  }
}

TEST(Holders, missing_scrapes_within_a_job_are_the_jobs_unmeasured_time) {
  World world;
  GpuTimeline gpu;
  const auto pod = world.job("train-0");
  for (const int i : {0, 1, 2, 3, 20, 21, 22, 23}) {
    gpu.scrapes.push_back(scrape(i * 30, 0.4));
    gpu.scrapes.back().holders = {pod};
  }
  const GpuTime result = world.run(gpu);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "train-0"), 24 * 30);
  EXPECT_DOUBLE_EQ(result.sum().measured_seconds, 8 * 30);
}

TEST(Holders, an_ended_job_keeps_no_samples_though_its_label_stays) {
  World world;
  auto jobs = jobs::parse_jobs("job,hosts,gpus,start,end\ntrain-0,n1,0,0,60\n");
  ASSERT_TRUE(jobs.ok());
  world.jobs = jobs::JobTable(*jobs);
  GpuTimeline gpu;
  gpu.gpu.host = "n1";
  gpu.gpu.index = "0";
  for (int i = 0; i < 4; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0.4));
    gpu.scrapes.back().holders = {world.job("train-0")};
  }
  const GpuTime result = world.run(gpu);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "train-0"), 60);
  EXPECT_DOUBLE_EQ(result.sum().allocated_seconds, 120);
  EXPECT_GT(world.quality.count("holder_after_end"), 0U);
}

TEST(Holders, a_pod_that_ended_in_one_namespace_goes_on_in_another) {
  World world;
  jobs::JobRecord record;
  record.job = "train-0";
  record.name_space = "a";
  record.end = at(60);
  world.jobs = jobs::JobTable({record});
  for (const char* name_space : {"a", "b", ""}) {
    GpuTimeline gpu;
    gpu.gpu.host = "n1";
    gpu.gpu.index = "0";
    samples::Holder holder;
    holder.job = "train-0";
    holder.name_space = name_space;
    holder.user = std::string("of ") + name_space;
    const samples::HolderId id = world.holders.intern(holder);
    for (int i = 0; i < 4; ++i) {
      gpu.scrapes.push_back(scrape(i * 30, 0.4));
      gpu.scrapes.back().holders = {id};
    }
    const GpuTime result = world.run(gpu);
    EXPECT_DOUBLE_EQ(world.hours_of(result, "train-0"), *name_space == 'b' ? 120 : 60) << name_space;
  }
}

TEST(Holders, a_scheduler_that_agrees_with_the_label_fills_in_user_team_and_cluster) {
  World world;
  auto jobs = jobs::parse_jobs("job,hosts,gpus,user,team,namespace\n101,n1,0,ada,nlp,c1\n");
  ASSERT_TRUE(jobs.ok());
  world.jobs = jobs::JobTable(*jobs);
  GpuTimeline gpu;
  gpu.gpu.host = "n1";
  gpu.gpu.index = "0";
  for (int i = 0; i < 4; ++i) {
    gpu.scrapes.push_back(scrape(i * 30, 0.4));
    gpu.scrapes.back().holders = {world.job("101")};
  }
  const GpuTime result = world.run(gpu);
  ASSERT_EQ(result.portions.size(), 1U);
  const samples::Holder& holder = world.holders.at(*result.portions[0].holder);
  EXPECT_EQ(holder.user, "ada");
  EXPECT_EQ(holder.team, "nlp");
  EXPECT_EQ(holder.name_space, "c1");
  EXPECT_EQ(world.quality.count("label_conflict"), 0U);
}

TEST(Holders, a_jobs_file_attributes_to_the_second_where_labels_do_not) {
  World world;
  auto jobs = jobs::parse_jobs("job,hosts,gpus,start,end\na,n1,0,10,50\nb,n1,0,70,\n");
  ASSERT_TRUE(jobs.ok());
  world.jobs = jobs::JobTable(*jobs);
  GpuTimeline gpu;
  gpu.gpu.host = "n1.example";
  gpu.gpu.index = "0";
  for (int i = 0; i < 4; ++i) gpu.scrapes.push_back(scrape(i * 30, 0.4));
  const GpuTime result = world.run(gpu);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "a"), 40);
  EXPECT_DOUBLE_EQ(world.hours_of(result, "b"), 50);
  EXPECT_DOUBLE_EQ(result.sum().allocated_seconds, 120);
}

TEST(Holders, an_instant_of_unknown_time_goes_to_the_only_job_or_to_those_without_end) {
  const auto job_of = [](const char* csv) {
    World world;
    auto jobs = jobs::parse_jobs(csv);
    EXPECT_TRUE(jobs.ok());
    world.jobs = jobs::JobTable(*jobs);
    GpuTimeline gpu;
    gpu.has_times = false;
    gpu.gpu.host = "n1";
    gpu.gpu.index = "0";
    gpu.scrapes = {scrape(0, 0.5)};
    const GpuTime result = world.run(gpu);
    const auto holder = result.portions.at(0).holder;
    return holder ? world.holders.at(*holder).job : std::string("nobody");
  };
  EXPECT_EQ(job_of("job,hosts,gpus,start,end\na,n1,0,10,50\n"), "a");
  EXPECT_EQ(job_of("job,hosts,gpus,start,end\na,n1,0,10,50\nb,n1,0,50,\n"), "b");
  EXPECT_EQ(job_of("job,hosts,gpus,start,end\na,n1,0,10,50\nb,n1,0,50,60\n"), "nobody");
}

}  // namespace
}  // namespace flopsight::rollups
