#pragma once
// Which GPUs a job held, where its scheduler says it or leaves no choice: as records for jobs::JobTable, whose `job` is the raw id, `namespace`
// the cluster and `team` the account.
//
// Known are GPUs whose indices or UUIDs were said; all of a host, where the job has as many as the host has; and, by elimination, those of a
// host that nobody else held at any time of the job, where they are exactly as many. Nothing else is guessed.
// MIG instances are counted by Slurm in an order that exporters do not have; they are placed where index_map of the rules says which
// index is which instance.
// Threads: pure.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "jobs/job_file.h"
#include "jobs/label_rules.h"
#include "schedulers/job.h"

namespace flopsight::schedulers {

struct Placement {
  std::vector<jobs::JobRecord> records;
  std::uint32_t gpus_unplaced = 0;  // held, and not said which of their host's; in no record
  std::string reason;               // why, in a few words; empty when all were placed
  bool is_by_elimination = false;
};

// How many GPUs hosts have.
using HostGpus = std::map<std::string, std::uint32_t>;

// One job by itself. `rules` may be null: then no MIG instance is placed.
Placement to_records(const Job& job, const HostGpus& hosts = {}, const jobs::LabelRules* rules = nullptr);

// Jobs among each other, in their order: those that one by itself does not place may be by elimination, which needs all jobs that were on their
// hosts at the time.
std::vector<Placement> place_jobs(std::span<const Job> jobs, const HostGpus& hosts, const jobs::LabelRules* rules);

}  // namespace flopsight::schedulers
