#include "schedulers/place.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace flopsight::schedulers {
namespace {

using jobs::JobRecord;

// No host has more.
constexpr std::uint32_t kGpusPerHostMax = 1'024;

std::optional<std::uint32_t> gpus_of_host(const HostGpus& hosts, const std::string& host) {
  const auto at = hosts.find(host);
  return at == hosts.end() || at->second > kGpusPerHostMax ? std::nullopt : std::optional(at->second);
}

JobRecord record_of(const Job& job) {
  JobRecord record;
  record.job = job.id;
  record.user = job.user;
  record.team = job.account;
  record.name_space = job.cluster;
  record.start = job.start;
  record.end = job.end;
  return record;
}

// Instances, where every one of them is mapped; and the whole GPUs beside them, which are then the other indices.
std::uint32_t place_instances(const Job& job, const Allocation& allocation, const jobs::LabelRules* rules, std::vector<JobRecord>& records) {
  std::uint32_t placed = 0;
  for (const std::string& host : allocation.hosts) {
    JobRecord instances = record_of(job), whole = record_of(job);
    instances.is_of_instances = true;
    for (const std::string& index : allocation.gpu_indices) {
      (rules != nullptr && rules->maps_instance(host, index) ? instances : whole).gpu_indices.push_back(index);
    }
    const bool is_mixed = std::any_of(job.gpus.begin(), job.gpus.end(), [](const GpuGroup& group) { return !group.is_mig && group.count > 0; });
    // Without a map, or with a part of one, an index may be either.
    if (instances.gpu_indices.empty() || (!whole.gpu_indices.empty() && !is_mixed)) continue;
    for (JobRecord* record : {&instances, &whole}) {
      if (record->gpu_indices.empty()) continue;
      record->hosts.push_back(host);
      placed += static_cast<std::uint32_t>(record->gpu_indices.size());
      records.push_back(std::move(*record));
    }
  }
  return placed;
}

std::uint32_t place_allocation(const Job& job, const Allocation& allocation, const HostGpus& hosts, const jobs::LabelRules* rules,
                               std::vector<JobRecord>& records) {
  if (allocation.gpus_per_host == 0U) return 0;
  JobRecord record = record_of(job);
  std::uint32_t placed = 0;
  if (!allocation.gpu_uuids.empty()) {
    record.hosts = allocation.hosts;
    record.gpu_uuids = allocation.gpu_uuids;
    placed = static_cast<std::uint32_t>(record.gpu_uuids.size());
    records.push_back(std::move(record));
    return placed;
  }
  if (job.is_mig()) return place_instances(job, allocation, rules, records);
  if (!allocation.gpu_indices.empty()) {
    record.hosts = allocation.hosts;
    record.gpu_indices = allocation.gpu_indices;
    placed = static_cast<std::uint32_t>(record.hosts.size() * record.gpu_indices.size());
  } else if (allocation.gpus_per_host) {
    for (const std::string& host : allocation.hosts) {
      if (gpus_of_host(hosts, host) == allocation.gpus_per_host) record.hosts.push_back(host);
    }
    placed = static_cast<std::uint32_t>(record.hosts.size()) * *allocation.gpus_per_host;
  }
  if (!record.hosts.empty()) records.push_back(std::move(record));
  return placed;
}

bool overlap(const JobRecord& a, const Job& b) {
  return !(a.end && b.start && *a.end <= *b.start) && !(b.end && a.start && *b.end <= *a.start);
}

// Who held what on each host, for elimination. Records are borrowed: a record names thousands of hosts, of which each would copy it.
class Hosts {
 public:
  explicit Hosts(const HostGpus& gpu_counts) : gpu_counts_(gpu_counts) {}
  void add(std::size_t job, const std::vector<JobRecord>& records) {
    for (const JobRecord& record : records) {
      for (const std::string& host : record.hosts) held_[host].push_back({job, &record});
    }
  }
  // Indices of a host that no other job held at any time of this one; nothing where they cannot be told.
  std::optional<std::vector<std::string>> free_of(const std::string& host, std::size_t number, const Job& job) const {
    const auto count = gpus_of_host(gpu_counts_, host);
    if (!count) return std::nullopt;
    std::vector<bool> taken(*count);
    if (const auto at = held_.find(host); at != held_.end()) {
      for (const auto& [other, record] : at->second) {
        if (other == number || !overlap(*record, job)) continue;
        // By UUID or as an instance: its index is not known.
        if (!record->gpu_uuids.empty() || record->is_of_instances) return std::nullopt;
        if (record->gpu_indices.empty()) return std::vector<std::string>();
        for (const std::string& text : record->gpu_indices) {
          std::uint32_t index = 0;
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
          if (error != std::errc() || end != text.data() + text.size() || index >= taken.size()) return std::nullopt;
          taken[index] = true;
        }
      }
    }
    std::vector<std::string> free;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i]) free.push_back(std::to_string(i));
    }
    return free;
  }

 private:
  struct Held {
    std::size_t job = 0;
    const JobRecord* record = nullptr;
  };
  const HostGpus& gpu_counts_;
  std::map<std::string, std::vector<Held>> held_;
};

// Where what nobody else held of the job's hosts is as much as it had, that is what it had.
bool eliminate(const Job& job, std::size_t number, const Hosts& hosts, Placement& placement) {
  if (!job.start || !job.gpu_count || *job.gpu_count == 0 || job.is_mig() || !placement.records.empty() || placement.gpus_unplaced == 0) return false;
  std::vector<JobRecord> records;
  std::size_t free_count = 0;
  for (const Allocation& allocation : job.allocations) {
    if (allocation.gpus_per_host == 0U) continue;
    for (const std::string& host : allocation.hosts) {
      auto free = hosts.free_of(host, number, job);
      if (!free) return false;
      free_count += free->size();
      if (free->empty()) continue;
      JobRecord record = record_of(job);
      record.hosts.push_back(host);
      record.gpu_indices = std::move(*free);
      records.push_back(std::move(record));
    }
  }
  if (free_count != *job.gpu_count) return false;
  placement = {std::move(records), 0, "", true};
  return true;
}

}  // namespace

Placement to_records(const Job& job, const HostGpus& hosts, const jobs::LabelRules* rules) {
  Placement placement;
  if (!job.start || job.gpu_count == 0U) return placement;
  std::uint32_t placed = 0;
  for (const Allocation& allocation : job.allocations) placed += place_allocation(job, allocation, hosts, rules, placement.records);
  if (!job.gpu_count) {
    if (placement.records.empty()) placement.reason = "the number of GPUs is not known";
    return placement;
  }
  if (placed >= *job.gpu_count) return placement;
  placement.gpus_unplaced = *job.gpu_count - placed;
  placement.reason = job.is_mig()              ? "no index_map says which MIG instances they are"
                     : job.allocations.empty() ? "no hosts were said"
                                               : "which GPUs of the host was not said";
  return placement;
}

std::vector<Placement> place_jobs(std::span<const Job> jobs, const HostGpus& gpu_counts, const jobs::LabelRules* rules) {
  std::vector<Placement> out;
  out.reserve(jobs.size());  // and records that there are stay where they are: only who has none is given some
  Hosts hosts(gpu_counts);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    out.push_back(to_records(jobs[i], gpu_counts, rules));
    hosts.add(i, out.back().records);
    if (out.back().gpus_unplaced > 0) left.push_back(i);
  }
  // What one of them had may leave no choice to another.
  for (bool placed = true; placed && !left.empty();) {
    placed = false;
    std::erase_if(left, [&](std::size_t i) {
      if (!eliminate(jobs[i], i, hosts, out[i])) return false;
      hosts.add(i, out[i].records);
      placed = true;
      return true;
    });
  }
  return out;
}

}  // namespace flopsight::schedulers
