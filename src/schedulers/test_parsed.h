#pragma once
// What is true of whatever a reader of Slurm's output takes: starts before ends, counts that agree with the hosts, and records
// that can be made of it. For the fuzzers of the readers.

#include <cstdint>
#include <string_view>

#include "schedulers/place.h"
#include "schedulers/slurm.h"

namespace flopsight::schedulers::test {

using Read = base::Result<Parsed> (*)(std::string_view text, const SlurmOptions& options);

inline int check_reader(Read read, const std::uint8_t* data, std::size_t size) {
  static const base::Zone kZone = base::Zone::find("Europe/Paris").value();
  SlurmOptions options;
  options.zone = &kZone;
  options.jobs_max = 1'000;
  const auto parsed = read({reinterpret_cast<const char*>(data), size}, options);
  if (!parsed.ok()) return parsed.error().message.empty() ? (__builtin_trap(), 0) : 0;
  if (parsed->problems.size() > parsed->problem_count) __builtin_trap();
  for (const Job& job : parsed->jobs) {
    if (job.id.empty() || job.state.empty()) __builtin_trap();
    if (job.start && job.end && *job.end < *job.start) __builtin_trap();
    if (!job.start && (job.gpu_count || !job.allocations.empty())) __builtin_trap();
    if (to_records(job).records.size() > job.allocations.size()) __builtin_trap();
  }
  HostGpus hosts;
  for (const Node& node : parsed->nodes) hosts[node.name] = node.gpu_count.value_or(0);
  for (const Placement& placement : place_jobs(parsed->jobs, hosts, nullptr)) {
    if (placement.gpus_unplaced > 0 && (placement.reason.empty() || placement.is_by_elimination)) __builtin_trap();
  }
  return 0;
}

}  // namespace flopsight::schedulers::test
