#include "sources/process_owners.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace flopsight::sources {
namespace {

namespace fs = std::filesystem;

const std::string kContainer(64, 'c');
const std::string kPodUid = "a101c1c8-1589-4313-acf5-02e3ca8d3994";
const std::string kPodGroup = "0::/kubepods/burstable/pod" + kPodUid + "/" + kContainer + "\n";
constexpr units::Instant kNow{1'790'000'000'000};

class ProcessOwnersTest : public testing::Test {
 protected:
  ProcessOwnersTest() {
    std::string name = (fs::temp_directory_path() / "owners_XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~ProcessOwnersTest() override { fs::remove_all(root_); }

  void process(std::uint32_t pid, const std::string& cgroup, const std::string& environ = "", int start = 100) const {
    const fs::path folder = root_ / "proc" / std::to_string(pid);
    fs::create_directories(folder);
    std::ofstream(folder / "stat") << pid << " (a) b (c) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 " << start << " 1000 10\n";
    std::ofstream(folder / "cgroup") << cgroup;
    std::ofstream(folder / "environ") << environ;
  }
  ProcessOwners owners() const {
    ProcessOwnersOptions options;
    options.root = root_.string();
    return ProcessOwners(options);
  }

  fs::path root_;
};

std::string environ_of(const std::string& job) {
  return "SLURM_JOB_ID=" + job + std::string("\0SLURM_JOB_USER=ada\0SLURM_JOB_ACCOUNT=physics", 45) + '\0';
}

TEST_F(ProcessOwnersTest, a_process_of_a_slurm_job_is_the_jobs_and_its_users) {
  process(10, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n", environ_of("77"));
  const ProcessOwner owner = owners().owner(10, kNow);
  EXPECT_EQ(owner.slurm_job, "77");
  EXPECT_EQ(owner.slurm_user, "ada");
  EXPECT_EQ(owner.slurm_account, "physics");
}

TEST_F(ProcessOwnersTest, a_sluid_becomes_the_number_where_the_environment_tells_it) {
  process(10, "0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0\n", environ_of("78"));
  process(11, "0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0\n");
  EXPECT_EQ(owners().owner(10, kNow).slurm_job, "78");
  EXPECT_EQ(owners().owner(11, kNow).slurm_job, "s5K1KKYAYG5D00");
}

TEST_F(ProcessOwnersTest, the_control_group_is_believed_before_the_environment) {
  process(10, "0::/system.slice/slurmstepd.scope/job_77/step_extern\n", environ_of("12"));
  const ProcessOwner owner = owners().owner(10, kNow);
  EXPECT_EQ(owner.slurm_job, "77");
  EXPECT_EQ(owner.slurm_user, "");
  process(11, kPodGroup, environ_of("12"));
  EXPECT_EQ(owners().owner(11, kNow).slurm_job, "");
  // Where Slurm uses no control groups, its environment is all there is.
  process(12, "0::/user.slice\n", environ_of("13"));
  EXPECT_EQ(owners().owner(12, kNow).slurm_job, "13");
  process(13, "0::/user.slice\n", "SLURM_JOB_ID=1;rm");
  EXPECT_TRUE(owners().owner(13, kNow).empty());
}

TEST_F(ProcessOwnersTest, an_environment_past_the_limit_is_not_read) {
  const std::string job = environ_of("77");
  const std::string padding = "A=" + std::string((4 << 20) - job.size() - 3, 'x') + '\0';
  process(10, "0::/user.slice\n", padding + job);
  EXPECT_EQ(owners().owner(10, kNow).slurm_job, "77");
  process(10, "0::/user.slice\n", "A" + padding + job);
  EXPECT_TRUE(owners().owner(10, kNow).empty());
}

TEST_F(ProcessOwnersTest, a_pod_is_named_by_the_logs_of_its_container_or_its_own) {
  process(10, kPodGroup);
  EXPECT_EQ(owners().owner(10, kNow).pod_uid, kPodUid);
  EXPECT_EQ(owners().owner(10, kNow).pod, "");
  fs::create_directories(root_ / "var/log/pods" / ("team-a_train-0_" + kPodUid));
  EXPECT_EQ(owners().owner(10, kNow).pod, "train-0");
  EXPECT_EQ(owners().owner(10, kNow).name_space, "team-a");
  fs::create_directories(root_ / "var/log/containers");
  std::ofstream(root_ / "var/log/containers" / ("train-0_team-a_main-" + kContainer + ".log")) << "";
  EXPECT_EQ(owners().owner(10, kNow).container, "main");
}

TEST_F(ProcessOwnersTest, another_process_of_the_same_number_is_read_anew_and_a_moved_one_after_a_while) {
  process(10, "0::/slurm/uid_1/job_1\n");
  ProcessOwners all = owners();
  EXPECT_EQ(all.owner(10, kNow).slurm_job, "1");
  process(10, "0::/slurm/uid_1/job_2\n");
  EXPECT_EQ(all.owner(10, kNow + units::Seconds(29)).slurm_job, "1");
  EXPECT_EQ(all.owner(10, kNow + units::Seconds(30)).slurm_job, "2");
  process(10, "0::/slurm/uid_1/job_3\n", "", 200);
  EXPECT_EQ(all.owner(10, kNow + units::Seconds(31)).slurm_job, "3");
  fs::remove_all(root_ / "proc/10");
  EXPECT_TRUE(all.owner(10, kNow + units::Seconds(32)).empty());
}

TEST_F(ProcessOwnersTest, more_processes_than_the_limit_are_still_told_apart) {
  ProcessOwnersOptions options;
  options.root = root_.string();
  options.processes_max = 2;
  ProcessOwners all(options);
  for (std::uint32_t pid = 1; pid <= 3; ++pid) process(pid, "0::/slurm/uid_1/job_" + std::to_string(pid) + "\n");
  for (std::uint32_t pid = 1; pid <= 3; ++pid) EXPECT_EQ(all.owner(pid, kNow).slurm_job, std::to_string(pid));
  EXPECT_EQ(all.owner(1, kNow).slurm_job, "1");
}

}  // namespace
}  // namespace flopsight::sources
