#pragma once
// GPU time that schedulers gave to jobs, beside what the rollups saw of them.
//
// Where a scheduler says that a job held more GPU time than there are cells of it, the rest was held and not seen: unmeasured time
// with the reason not_seen. It is counted only where the scheduler named the hosts and none of them has GPUs that nobody held
// at the time; otherwise it may be in the rollups already, as time of no job, and the quality entry held_not_attributed says so.
// Threads: the caller holds the reader.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "samples/quality.h"
#include "serve/access.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

// What schedulers gave to jobs in a window, by job.
class ToldTime {
 public:
  static base::Result<ToldTime> load(JobService* jobs, units::Window window);
  ToldTime() = default;
  ToldTime(ToldTime&&) = default;
  ToldTime& operator=(ToldTime&&) = default;

  // Of the holder's cluster, where both name one; null: nobody told of it.
  const JobService::Held* of(const samples::Holder& holder) const;
  const std::vector<JobService::Held>& all() const { return held_; }

 private:
  std::vector<JobService::Held> held_;
  std::map<std::string, std::vector<const JobService::Held*>> by_job_;
};

// Whether hosts have GPUs that some of the time nobody held; asks the reader once, when it is first needed.
class FreeHosts {
 public:
  FreeHosts(store::Reader& reader, units::Window window) : reader_(reader), window_(window) {}
  base::Status load();
  // Any of them; false before load().
  bool has(std::span<const std::string> hosts) const;

 private:
  store::Reader& reader_;
  units::Window window_;
  bool loaded_ = false;
  std::unordered_set<std::string> hosts_;
};

// GPU-seconds of the job that nobody saw; nothing where all was seen, or where it cannot be told. `runs`: those of the job in the window.
base::Result<std::optional<double>> unseen_gpu_seconds(const JobService::Held& held, double seen_gpu_seconds,
                                                       std::span<const schedulers::Job> runs, FreeHosts& free_hosts,
                                                       samples::QualityLog& quality);

// What the rollups have of jobs in the window, in GPU-seconds: a job may be in it several times, as parts that add up.
using SeenSeconds = std::vector<std::pair<store::JobId, double>>;

// The same for all jobs that the caller may see, with how many GPUs they had at most by their scheduler.
struct ToldJobTime {
  samples::Holder holder;
  std::optional<double> unseen_gpu_seconds;
  std::uint32_t gpu_count_max = 0;  // 0: not said
};
base::Result<std::vector<ToldJobTime>> told_times(store::Reader& reader, JobService& jobs, units::Window window, const SeenSeconds& seen,
                                                  const Caller& caller, samples::QualityLog& quality);

}  // namespace flopsight::app
