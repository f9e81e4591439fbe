#include "serve/held_time.h"

#include <algorithm>

#include "jobs/job_name.h"
#include "jobs/label_rules.h"

namespace flopsight::app {
namespace {

// Less than this share beyond what the rollups have is a matter of whole slots and of when a job's processes really started.
constexpr double kUnseenRatio = 0.02;

// GPU time that was given beyond what was seen; nothing where that is none, or where it is not known how much was given.
std::optional<double> beyond_seen(const JobService::Held& held, double seen_gpu_seconds, samples::QualityLog& quality) {
  if (!held.gpu_seconds) {
    if (seen_gpu_seconds <= 0) quality.add(held.is_mig ? "held_instances_not_placed" : "held_number_unknown", jobs::job_text(held.holder));
    return std::nullopt;
  }
  const double unseen_seconds = *held.gpu_seconds - seen_gpu_seconds;
  return unseen_seconds > kUnseenRatio * *held.gpu_seconds ? std::optional(unseen_seconds) : std::nullopt;
}

// What of it is surely no time that was seen as nobody's.
std::optional<double> not_counted(const samples::Holder& holder, double unseen_seconds, bool may_be_counted, samples::QualityLog& quality) {
  quality.add(may_be_counted ? "held_not_attributed" : "held_not_seen", jobs::job_text(holder));
  return may_be_counted ? std::nullopt : std::optional(unseen_seconds);
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

bool FreeHosts::has(std::span<const std::string> hosts) const {
  return !hosts_.empty() &&
         std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return hosts_.contains(jobs::short_host(host)); });
}

base::Status FreeHosts::load() {
  if (loaded_) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, reader_.gpu_totals(window_, std::nullopt));
  std::vector<store::GpuId> ids;
  for (const store::GpuTotal& total : totals) {
    if (total.job == 0 && total.cell.allocated_microseconds() > 0) ids.push_back(total.gpu);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader_.gpus(ids));
  for (const store::GpuRecord& record : records) hosts_.insert(jobs::short_host(record.identity.host));
  loaded_ = true;
  return {};
}

base::Result<std::optional<double>> unseen_gpu_seconds(const JobService::Held& held, double seen_gpu_seconds,
                                                       std::span<const schedulers::Job> runs, FreeHosts& free_hosts,
                                                       samples::QualityLog& quality) {
  const std::optional<double> unseen_seconds = beyond_seen(held, seen_gpu_seconds, quality);
  if (!unseen_seconds) return unseen_seconds;
  FLOPSIGHT_RETURN_IF_ERROR(free_hosts.load());
  const bool may_be_counted = runs.empty() || std::any_of(runs.begin(), runs.end(), [&](const schedulers::Job& run) {
    const std::vector<std::string> hosts = schedulers::all_hosts(run);
    return hosts.empty() || free_hosts.has(hosts);
  });
  return not_counted(held.holder, *unseen_seconds, may_be_counted, quality);
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
  struct Unseen {
    double seconds = 0;
    bool has_runs = false;
    bool may_be_counted = false;
  };
  std::map<std::pair<std::string, std::string>, Unseen> unseen;  // by cluster and id
  for (const JobService::Held& held : told.all()) {
    if (!caller.sees(held.holder)) continue;
    const std::optional<double> seconds = beyond_seen(held, seen_seconds[&held], quality);
    if (seconds) unseen[{held.holder.name_space, held.holder.job}].seconds = *seconds;
  }
  if (!unseen.empty()) {
    FreeHosts free_hosts(reader, window);
    FLOPSIGHT_RETURN_IF_ERROR(free_hosts.load());
    // A row at a time: a year of a large cluster's jobs names more hosts than fit.
    FLOPSIGHT_RETURN_IF_ERROR(jobs.for_held_hosts(
        window, [&](const std::string& cluster, const std::string& id) { return unseen.contains({cluster, id}); },
        [&](const std::string& cluster, const std::string& id, std::span<const std::string> hosts) {
          Unseen& of = unseen[{cluster, id}];
          of.has_runs = true;
          of.may_be_counted = of.may_be_counted || hosts.empty() || free_hosts.has(hosts);
        }));
  }
  for (const JobService::Held& held : told.all()) {
    if (!caller.sees(held.holder)) continue;
    ToldJobTime& time = out.emplace_back(ToldJobTime{held.holder, std::nullopt, held.gpu_count_max});
    const auto at = unseen.find({held.holder.name_space, held.holder.job});
    if (at == unseen.end()) continue;
    time.unseen_gpu_seconds = not_counted(held.holder, at->second.seconds, !at->second.has_runs || at->second.may_be_counted, quality);
  }
  return out;
}

}  // namespace flopsight::app
