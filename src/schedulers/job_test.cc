#include "schedulers/job.h"

#include <gtest/gtest.h>

#include "jobs/holder_table.h"

namespace flopsight::schedulers {
namespace {

Job job_on(std::vector<Allocation> allocations, std::uint32_t gpu_count) {
  Job job;
  job.cluster = "c1";
  job.id = "14508";
  job.user = "ann";
  job.account = "physics";
  job.start = units::Instant{1'700'000'000'000};
  job.gpu_count = gpu_count;
  job.allocations = std::move(allocations);
  return job;
}

samples::GpuIdentity gpu(const std::string& host, const std::string& index) {
  samples::GpuIdentity identity;
  identity.host = host;
  identity.index = index;
  return identity;
}

TEST(Job, is_named_by_cluster_id_and_start) {
  Job job = job_on({}, 0);
  EXPECT_EQ(job.key(), "c1/14508/2023-11-14T22:13:20Z");
  job.start.reset();
  EXPECT_EQ(job.key(), "c1/14508/-");
}

TEST(Job, holds_its_gpus_from_the_start_to_before_the_end) {
  Job job = job_on({}, 1);
  EXPECT_TRUE(job.is_running());
  job.end = *job.start + units::Seconds(10);
  EXPECT_TRUE(job.held_at(*job.start));
  EXPECT_FALSE(job.held_at(*job.end));
  EXPECT_FALSE(job.is_running());
}

TEST(Placement, indices_reach_the_gpus_of_each_host) {
  const Job job = job_on({{{"n1"}, {"0", "1"}, 2}, {{"n2", "n3"}, {"3"}, 1}}, 4);
  const Placement placement = to_records(job);
  EXPECT_EQ(placement.gpus_unplaced, 0U);
  const jobs::JobTable table(placement.records);
  EXPECT_EQ(table.holding(gpu("n1", "1")).size(), 1U);
  EXPECT_EQ(table.holding(gpu("n1", "3")).size(), 0U);
  EXPECT_EQ(table.holding(gpu("n3", "3")).size(), 1U);
  const samples::Holder holder = table.holding(gpu("n2", "3"))[0]->holder();
  EXPECT_EQ(holder.job, "14508");
  EXPECT_EQ(holder.team, "physics");
  EXPECT_EQ(holder.name_space, "c1");
}

TEST(Placement, without_indices_a_job_with_every_gpu_of_the_host_holds_the_host) {
  const Job job = job_on({{{"n1", "n2"}, {}, 8}}, 16);
  Node small{"n1", "", 8, {}, {}}, large{"n2", "", 16, {}, {}};
  const Placement placement = to_records(job, {small, large});
  ASSERT_EQ(placement.records.size(), 1U);
  EXPECT_EQ(placement.records[0].hosts, std::vector<std::string>{"n1"});
  EXPECT_TRUE(placement.records[0].gpu_indices.empty());
  EXPECT_EQ(placement.gpus_unplaced, 8U);
  EXPECT_EQ(placement.reason, "which GPUs of the host was not said");
  EXPECT_EQ(to_records(job).gpus_unplaced, 16U);
}

TEST(Placement, mig_instances_are_not_placed_by_an_index_that_means_something_else) {
  Job job = job_on({{{"n1"}, {"0"}, 1}}, 1);
  job.gpus = {{"a100_1g.5gb", 1, true}};
  const Placement placement = to_records(job);
  EXPECT_TRUE(placement.records.empty());
  EXPECT_EQ(placement.gpus_unplaced, 1U);
}

TEST(Placement, a_job_without_gpus_or_start_holds_nothing) {
  EXPECT_TRUE(to_records(job_on({{{"n1"}, {}, {}}}, 0)).records.empty());
  Job pending = job_on({{{"n1"}, {"0"}, 1}}, 1);
  pending.start.reset();
  EXPECT_TRUE(to_records(pending).records.empty());
  EXPECT_EQ(to_records(pending).gpus_unplaced, 0U);
}

}  // namespace
}  // namespace flopsight::schedulers
