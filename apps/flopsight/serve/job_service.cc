#include "serve/job_service.h"

#include <algorithm>

#include "jobs/job_name.h"
#include "training_logs/merge_steps.h"

namespace flopsight::app {
namespace {

using base::Result;
using base::Status;

constexpr units::Seconds kTellAgain{6 * 3600.0};
constexpr units::Seconds kLookAgain{31 * 86'400.0};
constexpr std::uint64_t kRecordsMax = 1'000'000;
constexpr std::size_t kStepsMergedMax = 500'000;

std::string attributed_by(const schedulers::Job& job) {
  return job.source.empty() ? "told" : job.source.substr(0, job.source.find(','));
}

}  // namespace

Result<std::unique_ptr<JobService>> JobService::open(const std::string& folder, bool read_only) {
  store::JobBookOptions options;
  options.read_only = read_only;
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<store::JobBook> book,
                             store::JobBook::open(folder, options));
  std::unique_ptr<JobService> service(new JobService(std::move(book)));
  FLOPSIGHT_RETURN_IF_ERROR(service->load());
  return service;
}

Status JobService::load() {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto hosts, book_->hosts());
  for (const auto& [name, gpu_count] : hosts) gpus_of_host_[name] = gpu_count;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::PodOwner> owners, book_->owners());
  for (const store::PodOwner& pod : owners) owners_[{pod.name_space, pod.pod}] = pod.owner;
  return {};
}

Result<store::JobBook::Put> JobService::tell(std::span<const schedulers::Job> jobs,
                                             units::Instant now) {
  return book_->put_jobs(jobs, now);
}

Status JobService::tell_nodes(std::span<const schedulers::Node> nodes, units::Instant now) {
  std::vector<std::pair<std::string, std::uint32_t>> changed;
  {
    const std::scoped_lock lock(mutex_);
    for (const schedulers::Node& node : nodes) {
      if (!node.gpu_count) continue;
      const auto [at, is_new] = gpus_of_host_.emplace(node.name, *node.gpu_count);
      if (!is_new && at->second == *node.gpu_count) continue;
      at->second = *node.gpu_count;
      changed.emplace_back(node.name, *node.gpu_count);
    }
  }
  if (changed.empty()) return {};
  FLOPSIGHT_RETURN_IF_ERROR(book_->put_hosts(changed));
  // Which jobs had all of these is known only now.
  return book_->look_again(now - kLookAgain);
}

Status JobService::tell_reported(const store::ReportedKey& key, std::string_view format,
                                 std::span<const training_logs::Step> steps, units::Instant now) {
  return book_->put_reported(key, format, steps, now);
}

Status JobService::tell_exported(const std::vector<training_logs::ExportedSteps::OfJob>& steps, units::Instant now) {
  std::vector<store::ReportedSteps> reported;
  for (const auto& job : steps) reported.push_back({{job.job, job.name_space, "prometheus"}, "prometheus", job.steps});
  return book_->add_reported(reported, now);
}

void JobService::listed(const std::string& cluster, units::Instant time) {
  const std::scoped_lock lock(mutex_);
  listed_[cluster] = time;
}

bool JobService::is_gone(const std::string& cluster, units::Instant told) const {
  const auto listed = listed_.find(cluster);
  return listed != listed_.end() && told < listed->second;
}

schedulers::Job JobService::with_life(store::ToldJob told) const {
  schedulers::Job job = std::move(told.job);
  // Whatever became of it, the scheduler no longer lists it: it held its GPUs at least until it was last told of.
  if (!job.end && is_gone(job.cluster, told.told)) {
    job.end = std::max(told.told, *job.start);
    job.state = "GONE";
  }
  return job;
}

units::Instant JobService::until(units::Window window) const { return now_ ? std::min(window.end, now_()) : window.end; }

units::Instant JobService::end_of(const store::RunRow& run, units::Window window) const {
  if (!run.end && is_gone(run.cluster, run.told)) return std::max(run.told, run.start);
  return run.end.value_or(until(window));
}

Status JobService::for_held_hosts(units::Window window, const std::function<bool(const std::string&, const std::string&)>& wants,
                                  const std::function<void(const std::string&, const std::string&, std::span<const std::string>)>& sink) {
  const std::scoped_lock lock(mutex_);
  return book_->for_run_hosts(
      window, [&](const store::RunRow& run) { return end_of(run, window) > window.start && wants(run.cluster, run.id); },
      [&](const store::RunRow& run, std::span<const std::string> hosts) { sink(run.cluster, run.id, hosts); });
}

Result<std::vector<JobService::Held>> JobService::held(units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::RunRow> rows, book_->run_rows(window));
  const std::scoped_lock lock(mutex_);
  std::vector<Held> out;
  for (const store::RunRow& run : rows) {
    const units::Instant end = end_of(run, window);
    if (end <= window.start) continue;
    const bool is_first = out.empty() || out.back().holder.job != run.id || out.back().holder.name_space != run.cluster;
    if (is_first) {
      Held& job = out.emplace_back();
      job.holder.job = run.id;
      job.holder.name_space = run.cluster;
      job.gpu_seconds = 0;
      job.first = run.start;
    }
    Held& job = out.back();
    job.holder.user = run.user;
    job.holder.team = run.account;
    // Tellings that differ in a start are still one job, which holds its GPUs once.
    const units::Instant from = std::max({run.start, window.start, is_first ? run.start : job.last});
    const double held_seconds = (std::min(end, until(window)) - from).value;
    job.last = std::max(job.last, end);
    job.is_mig = job.is_mig || run.is_mig;
    job.gpu_count_max = std::max(job.gpu_count_max, schedulers::whole_gpus_min(run.gpu_count.value_or(0), run.is_mig));
    if (!run.gpu_count || run.is_mig) job.gpu_seconds.reset();
    if (job.gpu_seconds) *job.gpu_seconds += *run.gpu_count * std::max(0.0, held_seconds);
  }
  return out;
}

Result<std::vector<JobService::Placed>> JobService::placed(units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<store::ToldJob> told, book_->jobs(window, kRecordsMax));
  const std::scoped_lock lock(mutex_);
  std::vector<schedulers::Job> jobs;
  jobs.reserve(told.size());
  for (store::ToldJob& one : told) jobs.push_back(with_life(std::move(one)));
  std::vector<schedulers::Placement> placements = schedulers::place_jobs(jobs, gpus_of_host_, rules_);
  std::vector<Placed> out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (placements[i].records.empty()) continue;
    for (jobs::JobRecord& record : placements[i].records) {
      record.rule = attributed_by(jobs[i]) + (placements[i].is_by_elimination ? ", by elimination" : "");
    }
    out.push_back({jobs[i].key(), std::move(placements[i].records)});
  }
  return out;
}

Result<std::vector<jobs::JobRecord>> JobService::records(units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Placed> placed, this->placed(window));
  std::vector<jobs::JobRecord> records;
  for (Placed& one : placed) {
    records.insert(records.end(), std::make_move_iterator(one.records.begin()), std::make_move_iterator(one.records.end()));
  }
  return records;
}

Status JobService::keep_owners(const std::vector<store::PodOwner>& pods, units::Instant now) {
  std::vector<store::PodOwner> told;
  {
    const std::scoped_lock lock(mutex_);
    // All of them from time to time, so that those still told of are not forgotten.
    const bool everything = (now - owners_told_).value > kTellAgain.value;
    if (everything) owners_told_ = now;
    for (const store::PodOwner& pod : pods) {
      const auto [at, is_new] = owners_.try_emplace({pod.name_space, pod.pod}, pod.owner);
      const bool changed = is_new || !(at->second == pod.owner);
      if (changed) ++owners_version_;
      if (changed || everything) told.push_back(pod);
      at->second = pod.owner;
    }
  }
  return told.empty() ? Status() : book_->put_owners(told, now);
}

jobs::Grouping::OwnerOf JobService::owner_of() const {
  return
      [this](const std::string& name_space, const std::string& pod) -> std::optional<jobs::Owner> {
        const std::scoped_lock lock(mutex_);
        const auto at = owners_.find({name_space, pod});
        return at == owners_.end() ? std::nullopt : std::optional(at->second);
      };
}

std::uint64_t JobService::owners_version() const {
  const std::scoped_lock lock(mutex_);
  return owners_version_;
}

Result<std::optional<samples::Holder>> JobService::task_of(const std::string& text, units::Window window) {
  const std::optional<samples::Holder> named = jobs::parse_job_text(text);
  const std::size_t bar = named ? named->job.find('_') : std::string::npos;
  if (bar == std::string::npos || bar == 0 || named->job.find_first_not_of("0123456789_") != std::string::npos) return std::optional<samples::Holder>();
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::ToldJob> told, book_->jobs(window, kRecordsMax));
  for (const store::ToldJob& one : told) {
    const schedulers::Job& job = one.job;
    if (!job.array_job_id || !job.array_task_id || std::to_string(*job.array_job_id) + "_" + std::to_string(*job.array_task_id) != named->job) continue;
    if (!named->name_space.empty() && named->name_space != job.cluster) continue;
    samples::Holder holder;
    holder.job = job.id;
    holder.name_space = job.cluster;
    return std::optional<samples::Holder>(std::move(holder));
  }
  return std::optional<samples::Holder>();
}

Result<std::vector<schedulers::Job>> JobService::runs_of(const samples::Holder& holder,
                                                         units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<store::ToldJob> told,
                             book_->runs(holder.job, std::nullopt));
  const std::scoped_lock lock(mutex_);
  std::vector<schedulers::Job> runs;
  for (store::ToldJob& one : told) {
    if (!holder.name_space.empty() && !one.job.cluster.empty() &&
        one.job.cluster != holder.name_space)
      continue;
    schedulers::Job job = with_life(std::move(one));
    if (*job.start >= window.end || (job.end && *job.end <= window.start)) continue;
    runs.push_back(std::move(job));
  }
  return runs;
}

Result<std::map<std::string, JobService::Source>> JobService::sources_of(std::span<const samples::Holder> holders, units::Window window) {
  std::map<std::string, Source> sources;
  std::map<std::string, std::vector<std::vector<training_logs::Step>>> tellers;
  std::size_t steps_total = 0;
  for (const samples::Holder& holder : holders) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<store::ReportedSteps> told, book_->reported(holder.job, holder.name_space, window));
    if (told.empty() && !holder.name_space.empty()) {  // who reported may not have known it
      FLOPSIGHT_ASSIGN_OR_RETURN(told, book_->reported(holder.job, "", window));
    }
    for (store::ReportedSteps& one : told) {
      steps_total += one.steps.size();
      sources[one.key.source].format = one.format;
      tellers[one.key.source].push_back(std::move(one.steps));
    }
    if (steps_total > kStepsMergedMax) break;
  }
  for (auto& [name, source] : sources) source.steps = training_logs::merge_tellers(std::move(tellers[name]));
  return sources;
}

namespace {

struct Best {
  const JobService::Source* source = nullptr;
  analysis::Reported reported;
};

// The source with an MFU and the most steps that count.
std::optional<Best> best_of(const std::map<std::string, JobService::Source>& sources) {
  std::optional<Best> best;
  const auto rank = [](const analysis::Reported& reported) { return std::pair(reported.mfu_ratio.has_value(), reported.steps_used); };
  for (const auto& [name, source] : sources) {
    analysis::Reported reported = analysis::reported_of(name, source.format, source.steps);
    if (!best || rank(reported) > rank(best->reported)) best = Best{&source, std::move(reported)};
  }
  return best;
}

}  // namespace

Result<std::optional<analysis::Reported>> JobService::reported_of(std::span<const samples::Holder> holders,
                                                                  units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto sources, sources_of(holders, window));
  auto best = best_of(sources);
  return best ? std::optional(std::move(best->reported)) : std::nullopt;
}

Result<std::vector<training_logs::Step>> JobService::reported_steps_of(std::span<const samples::Holder> holders,
                                                                       units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto sources, sources_of(holders, window));
  const auto best = best_of(sources);
  return best ? best->source->steps : std::vector<training_logs::Step>();
}

}  // namespace flopsight::app
