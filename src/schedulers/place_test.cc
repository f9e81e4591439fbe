#include "schedulers/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/holder_table.h"

namespace flopsight::schedulers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const units::Instant kStart{1'700'000'000'000};

Job job_on(std::vector<Allocation> allocations, std::uint32_t gpu_count) {
  Job job;
  job.cluster = "c1";
  job.id = "14508";
  job.user = "ann";
  job.account = "physics";
  job.start = kStart;
  job.gpu_count = gpu_count;
  job.allocations = std::move(allocations);
  return job;
}

samples::GpuIdentity gpu(const std::string& host, const std::string& index, const std::string& instance = "") {
  samples::GpuIdentity identity;
  identity.host = host;
  identity.index = index;
  identity.mig_instance = instance;
  return identity;
}

TEST(Placement, a_job_of_many_hosts_costs_as_much_as_it_has_hosts) {
  // A copy of the job's list of hosts for each of its hosts would be 230 GB.
  Allocation all{{}, {"0"}, 1};
  for (int i = 0; i < 60'000; ++i) all.hosts.push_back("a-host-with-a-name-of-some-length-" + std::to_string(i));
  const auto placed = place_jobs(std::vector<Job>{job_on({all}, 60'000)}, {}, nullptr);
  EXPECT_EQ(placed[0].gpus_unplaced, 0U);
  ASSERT_THAT(placed[0].records, SizeIs(1));
  EXPECT_THAT(placed[0].records[0].hosts, SizeIs(60'000));
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
  const Placement placement = to_records(job, {{"n1", 8}, {"n2", 16}});
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

// ---- MIG

TEST(PlacedInstances, are_those_that_an_index_map_names) {
  const auto rules = jobs::LabelRules::parse(R"({"index_map": {"n1": {"0/7": 4, "0/9": "5"}}})");
  ASSERT_TRUE(rules.ok());
  Job job = job_on({{{"n1"}, {"5"}, 1}}, 1);
  job.gpus = {{"a100_1g.5gb", 1, true}};
  const Placement placement = to_records(job, {}, &*rules);
  EXPECT_EQ(placement.gpus_unplaced, 0U);
  const std::vector<jobs::LabelView> seven = {{"Hostname", "n1"}, {"gpu", "0"}, {"GPU_I_ID", "7"}},
                                     nine = {{"Hostname", "n1"}, {"gpu", "0"}, {"GPU_I_ID", "9"}};
  const jobs::JobTable table(placement.records);
  EXPECT_THAT(table.holding(rules->apply(nine).gpu), SizeIs(1));
  EXPECT_THAT(table.holding(rules->apply(seven).gpu), IsEmpty());
  EXPECT_THAT(table.holding(gpu("n1", "5")), IsEmpty()) << "a whole GPU that happens to have the number";
}

TEST(PlacedInstances, beside_whole_gpus_leave_those_the_other_indices) {
  const auto rules = jobs::LabelRules::parse(R"({"index_map": {"n1.example": {"0/7": 4}}})");
  Job job = job_on({{{"n1"}, {"1", "2", "4"}, 3}}, 3);
  job.gpus = {{"a100", 2, false}, {"a100_1g.5gb", 1, true}};
  const Placement placement = to_records(job, {}, &*rules);
  ASSERT_THAT(placement.records, SizeIs(2));
  EXPECT_TRUE(placement.records[0].is_of_instances);
  EXPECT_THAT(placement.records[0].gpu_indices, ElementsAre("4"));
  EXPECT_THAT(placement.records[1].gpu_indices, ElementsAre("1", "2"));
  EXPECT_EQ(placement.gpus_unplaced, 0U);
}

TEST(PlacedInstances, of_which_the_map_misses_one_are_left_and_say_why) {
  const auto rules = jobs::LabelRules::parse(R"({"index_map": {"n1": {"0/7": 4}}})");
  Job job = job_on({{{"n1"}, {"4", "5"}, 2}}, 2);
  job.gpus = {{"a100_1g.5gb", 2, true}};
  const Placement placement = to_records(job, {}, &*rules);
  EXPECT_THAT(placement.records, IsEmpty());
  EXPECT_EQ(placement.reason, "no index_map says which MIG instances they are");
}

// ---- By elimination

Job named(const std::string& id, std::vector<Allocation> allocations, std::uint32_t gpu_count, double start = 0, std::optional<double> end = {}) {
  Job job = job_on(std::move(allocations), gpu_count);
  job.id = id;
  job.start = kStart + units::Seconds(start);
  if (end) job.end = kStart + units::Seconds(*end);
  return job;
}

std::vector<std::string> indices_of(const Placement& placement) {
  std::vector<std::string> out;
  for (const jobs::JobRecord& record : placement.records) {
    for (const std::string& index : record.gpu_indices) out.push_back(record.hosts.at(0) + "/" + index);
  }
  return out;
}

TEST(Elimination, what_nobody_else_held_is_the_jobs_where_it_is_as_much) {
  const std::vector<Job> jobs = {named("1", {{{"n1"}, {"0", "1"}, 2}}, 2), named("2", {{{"n1"}, {}, 2}}, 2, 10, 40)};
  const auto placed = place_jobs(jobs, {{"n1", 4}}, nullptr);
  EXPECT_THAT(indices_of(placed[1]), ElementsAre("n1/2", "n1/3"));
  EXPECT_EQ(placed[1].gpus_unplaced, 0U);
  EXPECT_TRUE(placed[1].is_by_elimination);
  EXPECT_FALSE(placed[0].is_by_elimination);
  EXPECT_EQ(placed[1].records[0].end, kStart + units::Seconds(40));
}

TEST(Elimination, a_gpu_that_was_held_at_any_time_of_the_job_is_not_its) {
  // The first ends while the third runs; the second was over before.
  const std::vector<Job> jobs = {named("1", {{{"n1"}, {"0"}, 1}}, 1, 0, 20), named("2", {{{"n1"}, {"1"}, 1}}, 1, 0, 10),
                                 named("3", {{{"n1"}, {}, 1}}, 1, 10, 40)};
  EXPECT_THAT(indices_of(place_jobs(jobs, {{"n1", 2}}, nullptr)[2]), ElementsAre("n1/1"));
  EXPECT_THAT(indices_of(place_jobs(jobs, {{"n1", 3}}, nullptr)[2]), IsEmpty()) << "it may be either of two";
}

TEST(Elimination, one_that_was_found_leaves_less_to_others) {
  const std::vector<Job> jobs = {named("1", {{{"n1"}, {}, 1}}, 1, 0, 100), named("2", {{{"n1"}, {}, 2}}, 2, 0, 50),
                                 named("3", {{{"n1"}, {"3"}, 1}}, 1, 0, 50), named("4", {{{"n1"}, {"1", "2"}, 2}}, 2, 50, 100)};
  // The first shares its second half with the fourth, which leaves 0 or 3, and its first with the third: so 0. Then the second has 1 and 2.
  const auto placed = place_jobs(jobs, {{"n1", 4}}, nullptr);
  EXPECT_THAT(indices_of(placed[0]), ElementsAre("n1/0"));
  EXPECT_THAT(indices_of(placed[1]), ElementsAre("n1/1", "n1/2"));
}

TEST(Elimination, hosts_of_which_only_the_total_was_said_are_the_jobs_where_all_of_them_is_as_much) {
  const std::vector<Job> jobs = {named("1", {{{"n1", "n2"}, {}, {}}}, 12), named("2", {{{"n2"}, {"0", "1", "2", "3"}, 4}}, 4)};
  const auto placed = place_jobs(jobs, {{"n1", 8}, {"n2", 8}}, nullptr);
  EXPECT_THAT(indices_of(placed[0]), SizeIs(12));
  EXPECT_THAT(indices_of(place_jobs(jobs, {{"n1", 8}}, nullptr)[0]), IsEmpty()) << "of n2 nobody said how many it has";
}

TEST(Elimination, nothing_is_guessed_where_an_index_cannot_be_told) {
  const Job unknown = named("2", {{{"n1"}, {}, 1}}, 1);
  Job by_uuid = named("1", {{{"n1"}, {}, 1, {"GPU-a"}}}, 1);
  EXPECT_THAT(indices_of(place_jobs(std::vector<Job>{by_uuid, unknown}, {{"n1", 2}}, nullptr)[1]), IsEmpty());
  const Job odd = named("1", {{{"n1"}, {"7"}, 1}}, 1);
  EXPECT_THAT(indices_of(place_jobs(std::vector<Job>{odd, unknown}, {{"n1", 2}}, nullptr)[1]), IsEmpty()) << "more than the host has";
  const Job whole = named("1", {{{"n1"}, {}, 2}}, 2);
  EXPECT_THAT(indices_of(place_jobs(std::vector<Job>{whole, unknown}, {{"n1", 2}}, nullptr)[1]), IsEmpty());
}

}  // namespace
}  // namespace flopsight::schedulers
