#pragma once
// A batch scheduler's job: who held how many GPUs of which hosts, and when. What the scheduler
// allocated is the denominator of every figure: a GPU that is held counts, whether or not a process
// or a sample was ever seen on it.
//
// Identity is (cluster, id, start): a requeued job is a new start of the same id. Steps are no
// jobs. Times are [start, end) in UTC; no end means that the job still holds its GPUs, no start
// that it never held any. Absent is unknown, zero is zero.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job_file.h"
#include "units/time.h"

namespace flopsight::schedulers {

// GPUs of one type in a job.
struct GpuGroup {
  std::string
      type;  // as the scheduler has it: "a100", "nvidia_h100_80gb_hbm3_1g.10gb"; empty: not said
  std::uint32_t count = 0;  // of MIG instances where is_mig
  bool is_mig = false;      // instances, not whole GPUs

  bool operator==(const GpuGroup&) const = default;
};

// Of all jobs of one text, or of one window: a job names each of its hosts, and a line can name tens of thousands.
inline constexpr std::size_t kHostsTotalMax = 2'000'000;

// Hosts of a job on which it holds the same GPUs.
struct Allocation {
  std::vector<std::string> hosts;
  std::vector<std::string>
      gpu_indices;  // Slurm's (gres.conf's order), the same on every host; empty: not said which
  std::optional<std::uint32_t> gpus_per_host;
  std::vector<std::string> gpu_uuids = {};  // where who told knew them, on whichever of the hosts

  bool operator==(const Allocation&) const = default;
};

struct Job;
std::size_t host_count(const Job& job);  // with repeats

// Names of all hosts, each once and in order; none where the scheduler left some out.
std::vector<std::string> all_hosts(const Job& job);

struct Job {
  std::string cluster;
  std::string id;  // the raw job id, decimal; each task of an array and each part of a
                   // heterogeneous job has its own
  std::optional<std::uint64_t> array_job_id;
  std::optional<std::uint64_t> array_task_id;
  std::optional<std::uint64_t> het_job_id;
  std::optional<std::uint32_t> het_offset;

  std::string name;
  std::string user;
  std::string account;
  std::string partition;
  std::string qos;

  std::string state;  // one word, upper case: "RUNNING", "CANCELLED"
  std::optional<units::Instant> submit;
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> time_limit;
  bool time_limit_infinite = false;
  std::uint32_t restart_count = 0;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> exit_signal;

  std::optional<std::uint32_t>
      gpu_count;               // allocated, whole GPUs and MIG instances alike; absent: not said
  std::vector<GpuGroup> gpus;  // by type, adding up to gpu_count; empty where no type was said
  std::optional<std::uint32_t> node_count;
  std::vector<Allocation> allocations;  // empty where no host was said

  // Slurm's own gres/gpuutil, in percent, summed over the tasks of the busiest step; a high-water
  // mark, and never ours. https://slurm.schedmd.com/gres.html
  std::optional<double> slurm_gpu_utilization_total;

  std::string source;  // "sacct --json, Slurm 25.05.2, data_parser v0.0.43"

  // "cluster/id/start", the start in RFC 3339, or "-" before there is one.
  std::string key() const;
  // Holds its GPUs at this time.
  bool held_at(units::Instant t) const { return start && t >= *start && (!end || t < *end); }
  bool is_running() const { return start && !end; }
  bool is_mig() const;
  // The types, joined with '+' where there are several; empty: not said.
  std::string gpu_type() const;
};

// A host and its GPUs, from `scontrol show node`, `sinfo --json` or slurmrestd.
struct Node {
  std::string name;
  std::string state;
  std::optional<std::uint32_t> gpu_count;       // configured
  std::optional<std::uint32_t> gpu_count_used;  // allocated now
  std::vector<GpuGroup> gpus;
};

// Something that could not be read. The rest was.
struct Problem {
  std::string where;  // "line 3", "job 14508"
  std::string what;
};

// At least so many whole GPUs are what a scheduler gave of which it counts MIG instances: it does not say of how many GPUs they are.
inline std::uint32_t whole_gpus_min(std::uint32_t gpu_count, bool is_mig) { return is_mig && gpu_count > 1 ? 1 : gpu_count; }

struct Parsed {
  std::vector<Job> jobs;
  std::vector<Node> nodes;
  std::vector<Problem> problems;  // the first kProblemsMax of problem_count
  std::size_t problem_count = 0;
  std::size_t steps_skipped = 0;  // no jobs
};
inline constexpr std::size_t kProblemsMax = 100;

}  // namespace flopsight::schedulers
