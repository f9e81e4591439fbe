#include "schedulers/job.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace flopsight::schedulers {

std::size_t host_count(const Job& job) {
  std::size_t count = 0;
  for (const Allocation& allocation : job.allocations) count += allocation.hosts.size();
  return count;
}

std::vector<std::string> all_hosts(const Job& job) {
  std::set<std::string_view> hosts;
  for (const Allocation& allocation : job.allocations) {
    if (allocation.hosts.empty()) return {};
    hosts.insert(allocation.hosts.begin(), allocation.hosts.end());
  }
  return {hosts.begin(), hosts.end()};
}

std::string Job::key() const {
  return cluster + "/" + id + "/" + (start ? units::to_rfc3339(*start) : "-");
}

bool Job::is_mig() const {
  return std::any_of(gpus.begin(), gpus.end(), [](const GpuGroup& group) { return group.is_mig; });
}

std::string Job::gpu_type() const {
  std::string out;
  for (const GpuGroup& group : gpus) {
    if (group.type.empty()) continue;
    if (!out.empty()) out += '+';
    out += group.type;
  }
  return out;
}

}  // namespace flopsight::schedulers
