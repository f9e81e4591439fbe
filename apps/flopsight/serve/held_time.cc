#include "serve/held_time.h"

#include <algorithm>

#include "jobs/job_name.h"
#include "jobs/label_rules.h"

namespace flopsight::app {
namespace {

// Less than this share beyond what the rollups have is a matter of whole slots and of when a job's processes really started.
constexpr double kUnseenRatio = 0.02;

bool names_hosts(const std::vector<schedulers::Job>& runs) {
  return !runs.empty() && std::all_of(runs.begin(), runs.end(), [](const schedulers::Job& run) {
    return !run.allocations.empty() && std::none_of(run.allocations.begin(), run.allocations.end(),
                                                    [](const auto& allocation) { return allocation.hosts.empty(); });
  });
}

}  // namespace

base::Result<ToldTime> ToldTime::load(JobService* jobs, units::Window window) {
  ToldTime told;
  if (jobs == nullptr) return told;
  FLOPSIGHT_ASSIGN_OR_RETURN(told.held_, jobs->held(window));
  for (const JobService::Held& held : told.held_) told.by_job_[held.holder.job].push_back(&held);
  return told;
}

const JobService::Held* ToldTime::of(const samples::Holder& holder) const {
  const auto at = by_job_.find(holder.job);
  if (at == by_job_.end()) return nullptr;
  for (const JobService::Held* held : at->second) {
    const std::string& cluster = held->holder.name_space;
    if (cluster == holder.name_space || cluster.empty() || holder.name_space.empty()) return held;
  }
  return nullptr;
}

base::Result<bool> FreeHosts::has(const std::vector<schedulers::Job>& runs) {
  if (!loaded_) FLOPSIGHT_RETURN_IF_ERROR(load());
  for (const schedulers::Job& run : runs) {
    for (const schedulers::Allocation& allocation : run.allocations) {
      for (const std::string& host : allocation.hosts) {
        if (hosts_.contains(jobs::short_host(host))) return true;
      }
    }
  }
  return false;
}

base::Status FreeHosts::load() {
  loaded_ = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, reader_.gpu_totals(window_, std::nullopt));
  std::vector<store::GpuId> ids;
  for (const store::GpuTotal& total : totals) {
    if (total.job == 0 && total.cell.allocated_microseconds() > 0) ids.push_back(total.gpu);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader_.gpus(ids));
  for (const store::GpuRecord& record : records) hosts_.insert(jobs::short_host(record.identity.host));
  return {};
}

base::Result<std::optional<double>> unseen_gpu_seconds(const JobService::Held& held, double seen_gpu_seconds, JobService& jobs,
                                                       units::Window window, FreeHosts& free_hosts,
                                                       samples::QualityLog& quality) {
  if (!held.gpu_seconds) {
    if (seen_gpu_seconds <= 0) quality.add(held.is_mig ? "held_instances_not_placed" : "held_number_unknown", jobs::job_text(held.holder));
    return std::optional<double>();
  }
  const double unseen_seconds = *held.gpu_seconds - seen_gpu_seconds;
  if (unseen_seconds <= kUnseenRatio * *held.gpu_seconds) return std::optional<double>();
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<schedulers::Job> runs, jobs.runs_of(held.holder, window));
  bool may_be_counted = !names_hosts(runs);
  if (!may_be_counted) {
    FLOPSIGHT_ASSIGN_OR_RETURN(may_be_counted, free_hosts.has(runs));
  }
  quality.add(may_be_counted ? "held_not_attributed" : "held_not_seen", jobs::job_text(held.holder));
  return may_be_counted ? std::optional<double>() : std::optional(unseen_seconds);
}

base::Result<std::vector<ToldJobTime>> told_times(store::Reader& reader, JobService& jobs, units::Window window, const SeenSeconds& seen,
                                                  const Caller& caller, samples::QualityLog& quality) {
  std::vector<ToldJobTime> out;
  FLOPSIGHT_ASSIGN_OR_RETURN(const ToldTime told, ToldTime::load(&jobs, window));
  if (told.all().empty()) return out;
  std::map<const JobService::Held*, double> seen_seconds;
  for (const auto& [job, seconds] : seen) {
    if (const JobService::Held* held = told.of(reader.holder(job))) seen_seconds[held] += seconds;
  }
  FreeHosts free_hosts(reader, window);
  for (const JobService::Held& held : told.all()) {
    if (!caller.sees(held.holder)) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<double> unseen,
                               unseen_gpu_seconds(held, seen_seconds[&held], jobs, window, free_hosts, quality));
    out.push_back({held.holder, unseen, held.gpu_count_max});
  }
  return out;
}

}  // namespace flopsight::app
