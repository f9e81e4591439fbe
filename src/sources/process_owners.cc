#include "sources/process_owners.h"

#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::sources {
namespace {

constexpr std::size_t kStatBytesMax = 64 << 10;
constexpr std::size_t kEnvironBytesMax = 4 << 20;
constexpr std::size_t kLogNamesMax = 100'000;  // more files in a folder are not looked at

// The first answer that `find` has for a name in the folder.
template <typename Find>
std::optional<jobs::PodName> find_in(const std::string& folder, Find find) {
  std::error_code error;
  std::size_t looked = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end && looked < kLogNamesMax; at.increment(error), ++looked) {
    if (auto pod = find(at->path().filename().string())) return pod;
  }
  return std::nullopt;
}

}  // namespace

ProcessOwner ProcessOwners::owner(std::uint32_t pid, units::Instant now) {
  const auto start = start_of(pid);
  if (!start) {
    known_.erase(pid);
    return {};
  }
  if (known_.size() >= options_.processes_max && known_.count(pid) == 0) known_.clear();
  Known& known = known_[pid];
  if (known.start != *start || now - known.read >= options_.keep) known = {*start, now, read(pid)};
  return known.owner;
}

// Field 22 of /proc/PID/stat; the name, field 2, is in parentheses and may hold anything.
std::optional<std::string> ProcessOwners::start_of(std::uint32_t pid) const {
  constexpr std::size_t kAfterName = 22 - 3;
  const auto stat = base::read_file(options_.root + "/proc/" + std::to_string(pid) + "/stat", kStatBytesMax);
  if (!stat.ok() || stat->rfind(')') == std::string::npos) return std::nullopt;
  const auto fields = base::split(base::trim(std::string_view(*stat).substr(stat->rfind(')') + 1)), ' ');
  return fields.size() > kAfterName ? std::optional(fields[kAfterName]) : std::nullopt;
}

ProcessOwner ProcessOwners::read(std::uint32_t pid) const {
  const std::string process = options_.root + "/proc/" + std::to_string(pid);
  const auto text = base::read_file(process + "/cgroup", jobs::kCgroupBytesMax);
  const jobs::CgroupOwner group = text.ok() ? jobs::parse_cgroup(*text) : jobs::CgroupOwner();
  ProcessOwner owner;
  owner.slurm_job = group.slurm_job;
  owner.pod_uid = group.pod_uid;
  if (!owner.pod_uid.empty()) name_pod(group, owner);
  // In a pod that is not Slurm's, what Slurm once set means another job.
  if (owner.slurm_job.empty() && !owner.pod_uid.empty()) return owner;
  const auto environ = base::read_file(process + "/environ", kEnvironBytesMax);
  if (!environ.ok()) return owner;
  const std::string job = jobs::environment_value(*environ, "SLURM_JOB_ID").value_or("");
  // A login shell that was adopted into a job has the environment of another, or none.
  const bool same_job = owner.slurm_job.empty() || jobs::is_sluid(owner.slurm_job) || owner.slurm_job == job;
  if (!same_job || job.empty() || job.find_first_not_of("0123456789") != job.npos || job.size() > 20) return owner;
  owner.slurm_job = job;
  owner.slurm_user = base::printable(jobs::environment_value(*environ, "SLURM_JOB_USER").value_or(""));
  owner.slurm_account = base::printable(jobs::environment_value(*environ, "SLURM_JOB_ACCOUNT").value_or(""));
  return owner;
}

void ProcessOwners::name_pod(const jobs::CgroupOwner& group, ProcessOwner& owner) const {
  auto name = find_in(options_.root + "/var/log/containers",
                      [&](const std::string& file) { return jobs::pod_of_container_log(file, group.container_id); });
  if (!name) name = find_in(options_.root + "/var/log/pods", [&](const std::string& folder) { return jobs::pod_of_log_folder(folder, group.pod_uid); });
  if (!name) return;
  owner.pod = base::printable(name->pod, 253);  // as long as Kubernetes allows
  owner.name_space = base::printable(name->name_space, 253);
  owner.container = base::printable(name->container, 253);
}

}  // namespace flopsight::sources
