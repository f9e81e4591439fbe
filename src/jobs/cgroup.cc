#include "jobs/cgroup.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace flopsight::jobs {
namespace {

bool all_of(std::string_view text, std::string_view set) { return !text.empty() && text.find_first_not_of(set) == text.npos; }
bool is_number(std::string_view text) { return all_of(text, "0123456789") && text.size() <= 20; }

// A whole id, as runtimes use it: 64 hexadecimal digits (32 and more, for older and rarer ones).
bool is_container_id(std::string_view text) { return all_of(text, "0123456789abcdef") && text.size() >= 32 && text.size() <= 64; }

// Without its prefix; empty where it has another.
std::string_view after(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

// "a3f2…" or "3b1c2d3e_4f5a_…" as Kubernetes prints it; empty for what is no UID. Pods from files have one without '-'.
std::string pod_uid_of(std::string_view text) {
  std::string uid(text);
  std::replace(uid.begin(), uid.end(), '_', '-');
  const auto hyphens = static_cast<std::size_t>(std::count(uid.begin(), uid.end(), '-'));
  const bool is_uid = all_of(uid, "0123456789abcdef-") && uid.size() - hyphens == 32 && (hyphens == 0 || hyphens == 4);
  return is_uid ? uid : std::string();
}

bool is_slurm_root(std::string_view component) {
  return component == "slurm" || component.starts_with("slurm_") || component == "slurmstepd.scope" || component.ends_with("_slurmstepd.scope");
}

// One path, component by component; what is known already stays.
class PathReader {
 public:
  explicit PathReader(CgroupOwner& owner)
      : owner_(owner), wants_job_(owner.slurm_job.empty()), wants_pod_(owner.pod_uid.empty() && owner.container_id.empty()) {}

  void read(std::string_view component) {
    if (wants_job_) read_slurm(component);
    if (wants_pod_) read_pod(component);
  }

 private:
  void read_slurm(std::string_view component) {
    if (is_slurm_root(component)) {
      // An inner Slurm, one in a container, is whose processes these are.
      in_slurm_ = true;
      owner_.slurm_job.clear();
      owner_.slurm_step.clear();
      owner_.user_id.reset();
      return;
    }
    if (!in_slurm_) return;
    if (const std::string_view user = after(component, "uid_"); is_number(user)) {
      std::uint32_t id = 0;
      if (std::from_chars(user.data(), user.data() + user.size(), id).ec == std::errc()) owner_.user_id = id;
    } else if (owner_.slurm_job.empty()) {
      if (const std::string_view job = after(component, "job_"); is_number(job) || is_sluid(job)) owner_.slurm_job = job;
      if (is_sluid(component)) owner_.slurm_job = component;
    } else if (owner_.slurm_step.empty()) {
      owner_.slurm_step = after(component, "step_").substr(0, 32);
    }
  }

  void read_pod(std::string_view component) {
    // "kubepods-burstable-podUID.slice:cri-containerd:ID", of a runtime that hands systemd's form to cgroupfs.
    for (const std::string& part : base::split(component, ':')) read_pod_part(part);
  }

  void read_pod_part(std::string_view part) {
    std::string_view name = part.substr(0, part.rfind(".slice"));
    if (const std::size_t pod = name.rfind("pod"); pod != name.npos) {
      const bool is_pods = pod == 0 || (name.find("kubepods") != name.npos && name[pod - 1] == '-');
      std::string uid = is_pods ? pod_uid_of(name.substr(pod + 3)) : "";
      if (!uid.empty()) {
        owner_.pod_uid = std::move(uid);
        owner_.container_id.clear();
        return;
      }
    }
    name = part.substr(0, part.rfind(".scope"));
    if (const std::size_t dash = name.rfind('-'); dash != name.npos) name.remove_prefix(dash + 1);
    // The first below its pod; what a container makes of containers is its own affair.
    if (owner_.container_id.empty() && is_container_id(name)) owner_.container_id = name;
  }

  CgroupOwner& owner_;
  bool wants_job_;
  bool wants_pod_;
  bool in_slurm_ = false;
};

}  // namespace

CgroupOwner parse_cgroup(std::string_view text) {
  CgroupOwner owner;
  for (const std::string& line : base::split(text.substr(0, kCgroupBytesMax), '\n')) {
    // "4:memory:/slurm/uid_1000/job_7/step_0", "0::/system.slice/…": the path may hold colons.
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    PathReader reader(owner);
    for (const std::string& component : base::split(std::string_view(line).substr(second + 1), '/')) {
      if (!component.empty()) reader.read(component);
    }
  }
  return owner;
}

bool is_sluid(std::string_view text) {
  // 's' and 13 digits of Crockford's base 32.
  return text.size() == 14 && text.front() == 's' && all_of(text.substr(1), "0123456789ABCDEFGHJKMNPQRSTVWXYZ");
}

std::optional<std::string> environment_value(std::string_view environ, std::string_view name) {
  while (!environ.empty()) {
    const std::size_t end = std::min(environ.find('\0'), environ.size());
    const std::string_view entry = environ.substr(0, end);
    if (entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
    environ.remove_prefix(std::min(end + 1, environ.size()));
  }
  return std::nullopt;
}

std::optional<PodName> pod_of_container_log(std::string_view file_name, std::string_view container_id) {
  if (container_id.empty() || !file_name.ends_with(std::string("-").append(container_id).append(".log"))) return std::nullopt;
  const auto parts = base::split(file_name.substr(0, file_name.size() - container_id.size() - 5), '_');
  if (parts.size() != 3 || parts[0].empty()) return std::nullopt;
  return PodName{parts[0], parts[1], parts[2]};
}

std::optional<PodName> pod_of_log_folder(std::string_view folder_name, std::string_view pod_uid) {
  const auto parts = base::split(folder_name, '_');
  if (pod_uid.empty() || parts.size() != 3 || parts[1].empty() || parts[2] != pod_uid) return std::nullopt;
  return PodName{parts[1], parts[0], ""};
}

}  // namespace flopsight::jobs
