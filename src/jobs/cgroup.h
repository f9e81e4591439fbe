#pragma once
// To which job or pod a process belongs, read off the control group that its scheduler put it into: the text of /proc/PID/cgroup,
// version 1 (a line for each hierarchy) or 2 (one line). Also what else a host says of them by names alone: a process's
// environment, the folders of container logs.
//
// A path is read by its components, wherever they stand, as hosts prepend what they like (a container's own slice, "/../..").
// Slurm: "slurm[_NODE]/uid_U/job_N/step_S" (version 1), "[NODE_]slurmstepd.scope/job_N/step_S" (2), and since 26.05 its SLUID
// instead of "job_N". Kubernetes: "kubepods/…/podUID/CONTAINER" (cgroupfs) and "…-podUID.slice/RUNTIME-CONTAINER.scope"
// (systemd, where '-' of the UID is '_'), under whatever slice a kubelet was given.
// Sources: docs of Slurm (cgroups, cgroup_v2), Kubernetes' pkg/kubelet/cm, and paths that users showed in
// github.com/guilbaults/slurm-job-exporter 66, treydock/cgroup_exporter 30, plazonic/cgroup_exporter 5.
// Threads: pure. Bad input: what is no such path gives nothing.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopsight::jobs {

// More of a file is not looked at.
inline constexpr std::size_t kCgroupBytesMax = std::size_t{64} << 10;

struct CgroupOwner {
  std::string slurm_job;   // the number of the job, or its SLUID; empty: not Slurm's
  std::string slurm_step;  // "0", "batch", "extern"; empty where the path does not say
  std::optional<std::uint32_t> user_id;
  std::string pod_uid;       // with '-', as Kubernetes prints it; empty: no pod
  std::string container_id;  // hexadecimal

  bool empty() const { return slurm_job.empty() && pod_uid.empty() && container_id.empty(); }
};

// The first line that names a job, and the first that names a pod.
CgroupOwner parse_cgroup(std::string_view text);

// True of "s5K1KKYAYG5D00": what Slurm calls a SLUID.
bool is_sluid(std::string_view text);

// The value of NAME in the text of /proc/PID/environ; nothing where it is not set or empty.
std::optional<std::string> environment_value(std::string_view environ, std::string_view name);

struct PodName {
  std::string pod;
  std::string name_space;
  std::string container;  // empty where it is not said
};
// Of "POD_NAMESPACE_CONTAINER-ID.log", a name in /var/log/containers; nothing for a file of another container.
std::optional<PodName> pod_of_container_log(std::string_view file_name, std::string_view container_id);
// Of "NAMESPACE_POD_UID", a name in /var/log/pods; nothing for a folder of another pod.
std::optional<PodName> pod_of_log_folder(std::string_view folder_name, std::string_view pod_uid);

}  // namespace flopsight::jobs
