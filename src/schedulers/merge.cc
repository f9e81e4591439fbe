#include "schedulers/merge.h"

#include <algorithm>

namespace flopsight::schedulers {
namespace {

bool take(std::string& known, const std::string& seen) {
  if (seen.empty() || known == seen) return false;
  known = seen;
  return true;
}

template <typename T>
bool take(std::optional<T>& known, const std::optional<T>& seen) {
  if (!seen || known == seen) return false;
  known = seen;
  return true;
}

bool names_gpus(const std::vector<Allocation>& allocations) {
  return std::any_of(allocations.begin(), allocations.end(), [](const Allocation& allocation) {
    return !allocation.gpu_indices.empty() || !allocation.gpu_uuids.empty();
  });
}

std::vector<std::string> hosts_of(const std::vector<Allocation>& allocations) {
  std::vector<std::string> hosts;
  for (const Allocation& allocation : allocations) {
    hosts.insert(hosts.end(), allocation.hosts.begin(), allocation.hosts.end());
  }
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

bool take_allocations(std::vector<Allocation>& known, const std::vector<Allocation>& seen) {
  if (seen.empty() || known == seen) return false;
  if (names_gpus(known) && !names_gpus(seen) && hosts_of(known) == hosts_of(seen)) return false;
  known = seen;
  return true;
}

}  // namespace

bool merge_into(Job& known, const Job& seen) {
  const bool is_stale = known.end && !seen.end;  // seen before it ended
  bool changed = false;
  if (!is_stale) changed |= take(known.state, seen.state);
  changed |= take(known.end, seen.end);
  for (const auto member : {&Job::name, &Job::user, &Job::account, &Job::partition, &Job::qos}) {
    changed |= take(known.*member, seen.*member);
  }
  changed |= take(known.array_job_id, seen.array_job_id);
  changed |= take(known.array_task_id, seen.array_task_id);
  changed |= take(known.het_job_id, seen.het_job_id);
  changed |= take(known.het_offset, seen.het_offset);
  changed |= take(known.submit, seen.submit);
  if (seen.time_limit && (!known.time_limit || known.time_limit->value != seen.time_limit->value)) {
    known.time_limit = seen.time_limit;
    changed = true;
  }
  if (seen.time_limit_infinite && !known.time_limit_infinite)
    known.time_limit_infinite = changed = true;
  if (seen.restart_count > known.restart_count) {
    known.restart_count = seen.restart_count;
    changed = true;
  }
  if (!is_stale) {
    changed |= take(known.exit_code, seen.exit_code);
    changed |= take(known.exit_signal, seen.exit_signal);
  }
  changed |= take(known.gpu_count, seen.gpu_count);
  changed |= take(known.node_count, seen.node_count);
  changed |= take(known.slurm_gpu_utilization_total, seen.slurm_gpu_utilization_total);
  if (!seen.gpus.empty() && known.gpus != seen.gpus) {
    known.gpus = seen.gpus;
    changed = true;
  }
  changed |= take_allocations(known.allocations, seen.allocations);
  // Where it was told of is of no interest by itself.
  if (changed) take(known.source, seen.source);
  return changed;
}

}  // namespace flopsight::schedulers
