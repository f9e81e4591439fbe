#include "schedulers/job.h"

#include <gtest/gtest.h>

namespace flopsight::schedulers {
namespace {

Job some_job() {
  Job job;
  job.cluster = "c1";
  job.id = "14508";
  job.start = units::Instant{1'700'000'000'000};
  return job;
}

TEST(Job, is_named_by_cluster_id_and_start) {
  Job job = some_job();
  EXPECT_EQ(job.key(), "c1/14508/2023-11-14T22:13:20Z");
  job.start.reset();
  EXPECT_EQ(job.key(), "c1/14508/-");
}

TEST(Job, holds_its_gpus_from_the_start_to_before_the_end) {
  Job job = some_job();
  EXPECT_TRUE(job.is_running());
  job.end = *job.start + units::Seconds(10);
  EXPECT_TRUE(job.held_at(*job.start));
  EXPECT_FALSE(job.held_at(*job.end));
  EXPECT_FALSE(job.is_running());
}

}  // namespace
}  // namespace flopsight::schedulers
