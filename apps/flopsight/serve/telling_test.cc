#include "serve/telling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "schedulers/job_json.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Tellings : public testing::Test, public test::IngestHarness {
 protected:
  // What is noted once there is something, or nothing after a while.
  static std::vector<std::string> notes_of(Telling& telling) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::vector<std::string> notes;
    while (notes.empty() && std::chrono::steady_clock::now() < give_up) {
      notes = telling.take_notes();
      std::this_thread::yield();
    }
    return notes;
  }
};

TEST_F(Tellings, a_run_that_may_be_of_several_clusters_is_said_in_the_log) {
  auto jobs = JobService::open(folder_.path() + "/" + name_, false);
  ASSERT_TRUE(jobs.ok());
  const auto known = schedulers::parse_told_jobs(
      R"([{"id": 7, "cluster": "c1", "hosts": "n1", "start": "2025-07-01T10:00:00Z"}, {"id": 7, "cluster": "c2", "hosts": "n2", "start": "2025-07-01T10:00:00Z"}])");
  ASSERT_TRUE(known.ok());
  ASSERT_TRUE((*jobs)->tell(*known, now_).ok());
  const std::string scontrol = folder_.write("scontrol",
                                             "#!/bin/sh\n[ $2 = job ] || exec echo No nodes in the system\n"
                                             "echo JobId=7 JobName=train\necho UserId=ann JobState=RUNNING StartTime=2025-07-01T10:00:00+0000 EndTime=Unknown NumNodes=1 TRES=gres/gpu=2\n");
  std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
  ServeConfig config;
  config.slurm_commands = true;
  config.slurm_command_folder = folder_.path();
  config.slurm_accounting = false;
  config.slurm_interval = units::Seconds(3'600);
  auto telling = Telling::start(config, *ingest_, **jobs, [] { return test::after(0); });
  ASSERT_TRUE(telling.ok()) << telling.error().message;
  EXPECT_THAT(notes_of(**telling), ElementsAre(HasSubstr("1 runs without a cluster are counted apart, since several clusters have that id and start (job 7: c1 and c2 both have it); "
                                                         "slurm.cluster says whose they are")));
}

}  // namespace
}  // namespace flopsight::app
