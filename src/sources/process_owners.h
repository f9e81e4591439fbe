#pragma once
// Which job or pod each process of this host belongs to: its control group says so to everybody (jobs/cgroup.h); names are added where
// they can be found. Those of a Slurm job (its number behind a SLUID, user, account) are in the process's environment, which root and
// the owner of the process may read; those of a pod in the names of its log files, which the kubelet makes.
//
// What was found holds for ProcessOwnersOptions::keep, unless another process has taken the number; then it is read again, so that a process
// that is moved, and a name that comes late, are seen. Threads: one.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "jobs/cgroup.h"
#include "units/time.h"

namespace flopsight::sources {

struct ProcessOwner {
  std::string slurm_job;  // number; its SLUID where nothing tells the number; empty: not a Slurm job's
  std::string slurm_user;
  std::string slurm_account;
  std::string pod_uid;  // empty: not a pod's
  std::string pod;
  std::string name_space;
  std::string container;

  bool empty() const { return slurm_job.empty() && pod_uid.empty(); }
  auto operator<=>(const ProcessOwner&) const = default;
};

struct ProcessOwnersOptions {
  std::string root;  // folder that has proc and var/log; empty: "/"
  units::Seconds keep{30};
  std::size_t processes_max = 16'384;  // remembered; past it, all are read anew
};

class ProcessOwners {
 public:
  explicit ProcessOwners(ProcessOwnersOptions options = {}) : options_(std::move(options)) {}

  // Of a process that is gone, or is nobody's: empty.
  ProcessOwner owner(std::uint32_t pid, units::Instant now);

 private:
  struct Known {
    std::string start;  // of the process, in ticks since boot: tells it from a later one of the same number
    units::Instant read;
    ProcessOwner owner;
  };
  ProcessOwner read(std::uint32_t pid) const;
  void name_pod(const jobs::CgroupOwner& group, ProcessOwner& owner) const;
  std::optional<std::string> start_of(std::uint32_t pid) const;

  ProcessOwnersOptions options_;
  std::map<std::uint32_t, Known> known_;
};

}  // namespace flopsight::sources
