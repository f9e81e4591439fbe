#pragma once
// Jobs told from outside, for GPUs whose labels name none: which job held which GPUs of which
// hosts, and when. JSON (a list, or {"jobs": [...]}) or CSV; docs/report.md has both forms.
//
// Times are [start, end): RFC 3339 with an offset, or Unix seconds. A missing start is "since
// ever", a missing end "still running". GPUs are indices ("0", "0-3"), UUIDs or PCI bus ids; none
// given means all GPUs of the hosts. Limits: 65,536 hosts a job, 1,000,000 a file. Errors: kInvalid
// with the line (CSV) or the entry's number (JSON) and the field.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "samples/gpu.h"
#include "units/time.h"

namespace flopsight::jobs {

struct JobRecord {
  std::string job;
  std::string user;
  std::string team;
  std::string name_space;
  std::vector<std::string> hosts;
  std::vector<std::string> gpu_indices;
  std::vector<std::string> gpu_uuids;
  std::vector<std::string> gpu_bus_ids;  // PCI
  bool is_of_instances = false;          // indices are of MIG instances (index_map of the rules), never of whole GPUs
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::string rule = "jobs_file";  // shown as "attributed by"

  bool holds(const samples::GpuIdentity& gpu) const;
  bool running_at(units::Instant t) const { return (!start || t >= *start) && (!end || t < *end); }
  samples::Holder holder() const;
};

// Whether the key of a job in a list of jobs says who held which GPU when. Errors: kInvalid, with the key.
base::Status check_job_key(std::string_view key);

// Whether it is what sacct, squeue, scontrol or slurmrestd print, or the jobs out of it; nothing here reads that.
bool is_of_slurm(std::string_view text);

base::Result<std::vector<JobRecord>> parse_jobs(std::string_view text);
// One job of the JSON form.
base::Result<JobRecord> record_from_json(const base::json::Value& entry);

// "n[01-03,7],login1" as its names, padding kept. Errors: kInvalid; kLimit above 65,536 names.
base::Result<std::vector<std::string>> expand_hosts(std::string_view expression);

}  // namespace flopsight::jobs
