#include "schedulers/job.h"

#include <algorithm>

namespace flopsight::schedulers {
namespace {

std::optional<std::uint32_t> gpus_of_host(const std::vector<Node>& nodes, const std::string& host) {
  const auto at =
      std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.name == host; });
  if (at == nodes.end()) return std::nullopt;
  return at->gpu_count;
}

jobs::JobRecord record_of(const Job& job) {
  jobs::JobRecord record;
  record.job = job.id;
  record.user = job.user;
  record.team = job.account;
  record.name_space = job.cluster;
  record.start = job.start;
  record.end = job.end;
  return record;
}

}  // namespace

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

Placement to_records(const Job& job, const std::vector<Node>& nodes) {
  Placement placement;
  if (!job.start || job.gpu_count == 0U) return placement;
  std::uint32_t placed = 0;
  for (const Allocation& allocation : job.allocations) {
    if (allocation.gpus_per_host == 0U) continue;
    jobs::JobRecord record = record_of(job);
    if (!allocation.gpu_uuids.empty()) {
      record.hosts = allocation.hosts;
      record.gpu_uuids = allocation.gpu_uuids;
      placed += static_cast<std::uint32_t>(record.gpu_uuids.size());
      placement.records.push_back(std::move(record));
      continue;
    }
    if (!allocation.gpu_indices.empty() && !job.is_mig()) {
      record.hosts = allocation.hosts;
      record.gpu_indices = allocation.gpu_indices;
      placed += static_cast<std::uint32_t>(record.hosts.size() * record.gpu_indices.size());
    } else if (allocation.gpus_per_host && !job.is_mig()) {
      for (const std::string& host : allocation.hosts) {
        if (gpus_of_host(nodes, host) == allocation.gpus_per_host) record.hosts.push_back(host);
      }
      placed += static_cast<std::uint32_t>(record.hosts.size()) * *allocation.gpus_per_host;
    }
    if (!record.hosts.empty()) placement.records.push_back(std::move(record));
  }
  if (!job.gpu_count) {
    if (placement.records.empty()) placement.reason = "the number of GPUs is not known";
    return placement;
  }
  if (placed >= *job.gpu_count) return placement;
  placement.gpus_unplaced = *job.gpu_count - placed;
  placement.reason = job.is_mig()              ? "MIG instances have no index that exporters know"
                     : job.allocations.empty() ? "no hosts were said"
                                               : "which GPUs of the host was not said";
  return placement;
}

}  // namespace flopsight::schedulers
