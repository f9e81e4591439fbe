#include "jobs/cgroup.h"

#include <gtest/gtest.h>

namespace flopsight::jobs {
namespace {

const std::string kId(64, 'a');

struct Shape {
  const char* what;
  std::string text;
  std::string job;
  std::string step;
  std::string pod_uid;
  std::string container_id;
};

// Shapes as documented and as users showed them, with other numbers and ids.
const std::vector<Shape> kShapes = {
    {"Slurm, version 1",
     "11:memory:/slurm/uid_1000/job_123456/step_0/task_0\n9:cpuset:/slurm/uid_1000/job_123456/step_0\n1:name=systemd:/system.slice/slurmd.service\n",
     "123456", "0", "", ""},
    {"Slurm, several slurmd on a host, version 1", "4:devices:/slurm_gpu01/uid_20/job_7/step_batch\n", "7", "batch", "", ""},
    {"Slurm, version 2", "0::/system.slice/slurmstepd.scope/job_998877/step_0/user/task_3\n", "998877", "0", "", ""},
    {"Slurm, several slurmd, version 2", "0::/system.slice/gpu01_slurmstepd.scope/job_5/step_extern/user/task_special\n", "5", "extern", "", ""},
    {"Slurm 26.05", "0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0\n", "s5K1KKYAYG5D00", "0", "", ""},
    {"a container in a Slurm job", "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/docker/" + kId + "\n", "12", "0", "", kId},
    {"Slurm's own daemons", "0::/system.slice/slurmstepd.scope/system\n", "", "", "", ""},
    {"slurmd", "0::/system.slice/slurmd.service\n", "", "", "", ""},
    {"Kubernetes, cgroupfs",
     "5:memory:/kubepods/burstable/pod3b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e/" + kId + "\n", "", "", "3b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e", kId},
    {"Kubernetes, guaranteed", "0::/kubepods/pod3b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e/" + kId + "\n", "", "",
     "3b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e", kId},
    {"Kubernetes, systemd, containerd",
     "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice/cri-containerd-" + kId + ".scope\n",
     "", "", "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"Kubernetes, systemd, CRI-O",
     "0::/kubepods.slice/kubepods-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice/crio-" + kId + ".scope/container\n", "", "",
     "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"Kubernetes in Docker",
     "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
     "kubelet-kubepods-burstable-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice/cri-containerd-" + kId + ".scope\n",
     "", "", "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"containerd given systemd's form as a path",
     "0::/system.slice/containerd.service/kubepods-burstable-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice:cri-containerd:" + kId + "\n", "", "",
     "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"a pod from a file has no '-'", "0::/kubepods/burstable/podd38dd5d3d6a4d4b5d5e6f7a8b9c0d1e2/" + kId + "\n", "", "",
     "d38dd5d3d6a4d4b5d5e6f7a8b9c0d1e2", kId},
    {"as seen from another name space",
     "0::/../../kubepods-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice/cri-containerd-" + kId + ".scope\n", "", "",
     "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"Slurm in a pod",
     "0::/kubepods.slice/kubepods-poda101c1c8_1589_4313_acf5_02e3ca8d3994.slice/cri-containerd-" + kId +
         ".scope/system.slice/slurmstepd.scope/job_44/step_0/user/task_0\n",
     "44", "0", "a101c1c8-1589-4313-acf5-02e3ca8d3994", kId},
    {"Docker alone", "0::/system.slice/docker-" + kId + ".scope\n", "", "", "", kId},
    {"a desktop", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-job_12.scope\n", "", "", "", ""},
    {"a service that is called like a job", "0::/system.slice/job_12/step_0\n", "", "", "", ""},
    {"nothing", "", "", "", "", ""},
    {"no cgroup file", "slurm/job_1\n:::\n0:\n", "", "", "", ""},
};

TEST(Cgroup, the_shapes_that_schedulers_make_are_read) {
  for (const Shape& shape : kShapes) {
    const CgroupOwner owner = parse_cgroup(shape.text);
    EXPECT_EQ(owner.slurm_job, shape.job) << shape.what;
    EXPECT_EQ(owner.slurm_step, shape.step) << shape.what;
    EXPECT_EQ(owner.pod_uid, shape.pod_uid) << shape.what;
    EXPECT_EQ(owner.container_id, shape.container_id) << shape.what;
  }
  EXPECT_EQ(parse_cgroup(kShapes.front().text).user_id, 1000U);
}

TEST(Cgroup, no_more_than_the_limit_is_looked_at) {
  const std::string job = "0::/slurm/uid_1/job_1\n";
  const std::string blank(kCgroupBytesMax - job.size(), '\n');
  EXPECT_EQ(parse_cgroup(blank + job).slurm_job, "1");
  EXPECT_EQ(parse_cgroup(blank + std::string(job.size(), '\n') + job).slurm_job, "");
}

TEST(Cgroup, the_environment_is_read_by_whole_names) {
  const std::string environ("XSLURM_JOB_ID=1\0SLURM_JOB_ID=77\0SLURM_JOB_USER=\0HOME=/root12", 60);
  EXPECT_EQ(environment_value(environ, "SLURM_JOB_ID"), "77");
  EXPECT_EQ(environment_value(environ, "SLURM_JOB_USER"), std::nullopt);
  EXPECT_EQ(environment_value(environ, "SLURM_JOB"), std::nullopt);
  EXPECT_EQ(environment_value("", "HOME"), std::nullopt);
}

TEST(Cgroup, the_folders_of_logs_name_the_pods) {
  const auto container = pod_of_container_log("train-0_team-a_main-" + kId + ".log", kId);
  ASSERT_TRUE(container);
  EXPECT_EQ(container->pod, "train-0");
  EXPECT_EQ(container->name_space, "team-a");
  EXPECT_EQ(container->container, "main");
  EXPECT_FALSE(pod_of_container_log("train-0_team-a_main-" + kId + ".log", std::string(64, 'b')));
  EXPECT_FALSE(pod_of_container_log("train-0_main-" + kId + ".log", kId));
  const auto pod = pod_of_log_folder("team-a_train-0_a101c1c8-1589-4313-acf5-02e3ca8d3994", "a101c1c8-1589-4313-acf5-02e3ca8d3994");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->pod, "train-0");
  EXPECT_EQ(pod->name_space, "team-a");
  EXPECT_FALSE(pod_of_log_folder("team-a_train-0_b", "a101c1c8-1589-4313-acf5-02e3ca8d3994"));
}

}  // namespace
}  // namespace flopsight::jobs
