#include "serve/job_answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "jobs/job_name.h"
#include "rollups/stored.h"
#include "serve/held_time.h"
#include "serve/job_audit.h"
#include "serve/log_zone.h"
#include "store/gpu_runs.h"

namespace flopsight::app {
namespace {

using analysis::JobAnswer;
using analysis::JobCells;
using base::Result;
using base::Status;
using store::JobId;

bool is_same_job(const samples::Holder& a, const samples::Holder& b) { return a.job == b.job && a.name_space == b.name_space; }

base::Error missing(const store::Reader& reader, const AnswerSettings& settings, const std::string& id) {
  return not_found(reader, settings, "no job with the id " + base::printable(id, 60));
}

base::Error several(const std::string& id) {
  return {base::ErrorCode::kInvalid, "several jobs are called " + base::printable(id, 60) + "; expected job@namespace"};
}

// The store's jobs of one answer, and what they add up to.
struct Gathered {
  JobCells cells;
  std::vector<samples::Holder> members;
};

void widen(JobCells& cells, units::Window ever, bool is_first) {
  cells.first = is_first ? ever.start : std::min(cells.first, ever.start);
  cells.last = is_first ? ever.end : std::max(cells.last, ever.end);
}

void add_total(const store::Reader& reader, const store::JobTotal& total, JobCells& cells) {
  const std::string& model = reader.model_name(total.model);
  const auto at = std::find_if(cells.by_model.begin(), cells.by_model.end(), [&](const auto& of) { return of.first == model; });
  if (at == cells.by_model.end()) {
    cells.by_model.emplace_back(model, total.cell);
  } else {
    at->second.merge(total.cell);
  }
  cells.spread.merge(total.spread);
}

// Every group with time in the window, by its id.
Result<std::map<std::string, Gathered>> gather(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                               units::Window window, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, reader.job_totals(window, std::nullopt));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<store::Member> members, reader.members(window, std::nullopt));
  std::map<std::string, Gathered> groups;
  std::map<JobId, Gathered*> of_job;
  for (store::Member& member : members) {
    if (member.job == 0) continue;
    const samples::Holder holder = reader.holder(member.job);
    if (!caller.sees(holder)) continue;
    samples::Holder group = group_of(holder, jobs, settings);
    const std::string id = jobs::job_text(group);
    Gathered& gathered = groups[id];
    widen(gathered.cells, member.ever, gathered.members.empty());
    gathered.cells.id = id;
    if (gathered.members.empty()) gathered.cells.holder = std::move(group);
    gathered.members.push_back(holder);
    gathered.cells.gpus.insert(gathered.cells.gpus.end(), member.gpus.begin(), member.gpus.end());
    of_job[member.job] = &gathered;
  }
  for (const store::JobTotal& total : totals) {
    const auto at = of_job.find(total.job);
    if (at != of_job.end()) add_total(reader, total, at->second->cells);
  }
  for (auto& [id, gathered] : groups) {
    store::make_distinct(gathered.cells.gpus);
    reader.make_whole(gathered.cells.gpus);
  }
  return groups;
}

void name_members(const Gathered& gathered, JobAnswer& answer) {
  if (gathered.members.size() == 1 && gathered.members.front().same_as(gathered.cells.holder)) return;
  for (const samples::Holder& member : gathered.members) answer.members.push_back(jobs::job_text(member));
  std::sort(answer.members.begin(), answer.members.end());
}

// Its scheduler may have given it more GPUs than were seen.
void count_told_gpus(JobAnswer& answer) {
  std::uint64_t count = 0;
  bool said = false;
  for (const schedulers::Job& run : answer.runs) {
    said |= run.gpu_count.has_value();
    count = std::max<std::uint64_t>(count, schedulers::whole_gpus_min(run.gpu_count.value_or(0), run.is_mig()));
  }
  answer.gpu_count_unknown = !said && !answer.runs.empty() && answer.summary.gpu_count == 0;
  if (count <= answer.summary.gpu_count) return;
  answer.gpu_count_told = count;
  answer.summary.gpu_count = count;
}

std::string family_of(const JobAnswer& answer, const AnswerSettings& settings) {
  if (settings.families == nullptr) return {};
  analysis::FamilyFacts facts;
  facts.name = answer.runs.empty() || answer.runs.back().name.empty() ? answer.holder.job : answer.runs.back().name;
  facts.user = answer.holder.user;
  facts.models = answer.models;
  facts.gpu_count = answer.summary.gpu_count;
  return settings.families->family_of(facts);
}

// "700_3", as people, squeue and names of log files call task 3 of array 700, whose own id is another.
void add_array_names(const std::vector<schedulers::Job>& runs, std::vector<samples::Holder>& holders) {
  std::set<std::string> known;
  for (const schedulers::Job& run : runs) {
    if (!run.array_job_id || !run.array_task_id) continue;
    samples::Holder holder;
    holder.job = std::to_string(*run.array_job_id) + "_" + std::to_string(*run.array_task_id);
    holder.name_space = run.cluster;
    if (known.insert(holder.job).second) holders.push_back(std::move(holder));
  }
}

// What is common to all jobs of one question.
struct Question {
  store::Reader& reader;
  JobService* jobs;
  const AnswerSettings& settings;
  units::Window window;
  const Caller& caller;
  samples::QualityLog& quality;
  FreeHosts free_hosts;
};

// One answer out of the gathered cells and what others say.
Result<JobAnswer> finish(Question& q, Gathered& gathered, const JobService::Held* held) {
  std::vector<schedulers::Job> runs;
  if (held != nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(runs, q.jobs->runs_of(held->holder, q.window));
    double seen_seconds = 0;
    for (const auto& [model, cell] : gathered.cells.by_model) seen_seconds += rollups::totals_of(cell).allocated_seconds;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<double> unseen,
                               unseen_gpu_seconds(*held, seen_seconds, runs, q.free_hosts, q.quality));
    if (unseen) {
      rollups::Cell cell;
      cell.absent(samples::AbsentReason::kNotSeen) = std::llround(*unseen * 1e6);
      gathered.cells.by_model.emplace_back("", cell);
    }
    samples::Holder& holder = gathered.cells.holder;
    if (holder.user.empty()) holder.user = held->holder.user;
    if (holder.team.empty()) holder.team = held->holder.team;
  }
  JobAnswer answer = analysis::answer_job(gathered.cells, q.settings.fleet, q.settings.prices, q.quality);
  // A job that held no GPU has no hours of one, which is known.
  const bool held_none = !runs.empty() && std::all_of(runs.begin(), runs.end(), [](const schedulers::Job& run) { return run.gpu_count == 0U; });
  if (gathered.cells.by_model.empty() && !held_none) {
    // Instances that were held, and nobody knows which share of a GPU they are.
    analysis::Summary& hours = answer.summary;
    hours.gpu_hours_allocated = hours.gpu_hours_delivered = hours.gpu_hours_lost = hours.gpu_hours_unmeasured = std::nullopt;
    hours.cost_usd = hours.cost_lost_usd = hours.cost_unmeasured_usd = std::nullopt;
  }
  std::erase(answer.models, std::string());
  name_members(gathered, answer);
  answer.runs = std::move(runs);
  count_told_gpus(answer);
  answer.family = family_of(answer, q.settings);
  if (q.jobs == nullptr) return answer;
  FLOPSIGHT_ASSIGN_OR_RETURN(answer.audit, q.jobs->book().audit(answer.holder.job, answer.holder.name_space));
  std::vector<samples::Holder> holders = {gathered.cells.holder};
  for (const samples::Holder& member : gathered.members) {
    if (!is_same_job(member, gathered.cells.holder)) holders.push_back(member);
  }
  add_array_names(answer.runs, holders);
  FLOPSIGHT_ASSIGN_OR_RETURN(answer.reported, q.jobs->reported_of(holders, q.window));
  return answer;
}

// Jobs that hold GPUs of which there is not one sample, or an unknown number of them.
void add_never_seen(const Question& q, const ToldTime& told, std::vector<Gathered>& rows) {
  std::set<const JobService::Held*> seen;
  for (const Gathered& row : rows) {
    for (const samples::Holder& member : row.members) seen.insert(told.of(member));
  }
  for (const JobService::Held& held : told.all()) {
    const bool held_some = !held.gpu_seconds || *held.gpu_seconds > 0;
    if (seen.contains(&held) || !held_some || !q.caller.sees(held.holder)) continue;
    Gathered& row = rows.emplace_back();
    row.cells.id = jobs::job_text(held.holder);
    row.cells.holder = held.holder;
    row.cells.first = held.first;
    row.cells.last = held.last;
    row.members.push_back(held.holder);
  }
}

bool passes(const JobFilter& filter, const JobCells& cells, const JobService::Held* held, const AnswerSettings& settings) {
  const samples::Holder& holder = cells.holder;
  const std::string& user = holder.user.empty() && held != nullptr ? held->holder.user : holder.user;
  const std::string& team = holder.team.empty() && held != nullptr ? held->holder.team : holder.team;
  if (filter.user && user != *filter.user) return false;
  if (filter.team && team != *filter.team) return false;
  if (filter.name_space && holder.name_space != *filter.name_space) return false;
  if (filter.model && std::none_of(cells.by_model.begin(), cells.by_model.end(), [&](const auto& of) {
        const catalog::Device* device = settings.fleet.catalog->find(of.first);
        return (device != nullptr ? device->model : of.first) == *filter.model;
      })) {
    return false;
  }
  if (!filter.text) return true;
  const std::string wanted = base::to_lower(*filter.text);
  const auto has = [&](const std::string& name) { return base::to_lower(name).find(wanted) != std::string::npos; };
  return has(cells.id) || has(holder.job) || has(user) || has(team);
}

double lost_seconds(const Gathered& gathered) {
  double seconds = 0;
  for (const auto& [model, cell] : gathered.cells.by_model) {
    const rollups::Totals totals = rollups::totals_of(cell);
    seconds += totals.measured_seconds - totals.delivered_seconds;
  }
  return seconds;
}

}  // namespace

base::Error not_found(const store::Reader& reader, const AnswerSettings& settings, std::string what) {
  samples::QualityLog quality;
  note_unreadable(reader, settings, quality);
  for (const samples::QualityEntry& entry : quality.entries()) what += "; not readable: " + entry.where;
  return {base::ErrorCode::kNotFound, std::move(what)};
}

samples::Holder group_of(const samples::Holder& holder, JobService* jobs, const AnswerSettings& settings) {
  if (settings.grouping == nullptr) return holder;
  return settings.grouping->group_of(holder, jobs != nullptr ? jobs->owner_of() : jobs::Grouping::OwnerOf());
}

Result<JobPage> answer_known_jobs(store::Reader& reader, JobService* jobs, const AnswerSettings& settings, units::Window window,
                                  const Caller& caller, const JobFilter& filter, PageOf page, samples::QualityLog& quality) {
  Question q{reader, jobs, settings, window, caller, quality, FreeHosts(reader, window)};
  FLOPSIGHT_ASSIGN_OR_RETURN(auto groups, gather(reader, jobs, settings, window, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const ToldTime told, ToldTime::load(jobs, window));
  std::vector<std::pair<double, Gathered>> by_loss;
  for (auto& [id, gathered] : groups) by_loss.emplace_back(lost_seconds(gathered), std::move(gathered));
  std::stable_sort(by_loss.begin(), by_loss.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Gathered> rows;
  for (auto& [loss, gathered] : by_loss) rows.push_back(std::move(gathered));
  add_never_seen(q, told, rows);
  std::erase_if(rows, [&](const Gathered& row) { return !passes(filter, row.cells, told.of(row.cells.holder), settings); });
  JobPage out;
  out.jobs_total = rows.size();
  for (std::uint64_t i = page.first; i < rows.size() && i - page.first < page.count; ++i) {
    FLOPSIGHT_ASSIGN_OR_RETURN(JobAnswer answer, finish(q, rows[i], told.of(rows[i].cells.holder)));
    note_discrepancy(answer, quality);
    out.jobs.push_back(std::move(answer));
  }
  note_unreadable(reader, settings, quality);
  return out;
}

Result<FoundJob> find_known_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings, const std::string& id,
                                units::Window window, const Caller& caller) {
  FoundJob found;
  found.id = id;
  const auto exact = reader.find_job(id);
  if (exact.ok()) {
    std::copy_if(exact->begin(), exact->end(), std::back_inserter(found.jobs), [&](JobId job) { return caller.sees(reader.holder(job)); });
    if (found.jobs.empty()) return missing(reader, settings, id);
    found.holder = reader.holder(found.jobs.front());
    found.id = jobs::job_text(found.holder);
    return found;
  }
  if (exact.error().code != base::ErrorCode::kNotFound) {
    // Which ones is not for everybody's eyes.
    if (exact.error().code == base::ErrorCode::kInvalid && !caller.sees_all()) return several(id);
    return exact.error();
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, reader.members(window, std::nullopt));
  for (const store::Member& member : members) {
    if (member.job == 0) continue;
    const samples::Holder holder = reader.holder(member.job);
    if (!caller.sees(holder)) continue;
    const samples::Holder group = group_of(holder, jobs, settings);
    if (jobs::job_text(group) != id && group.job != id) continue;
    if (!found.jobs.empty() && found.holder.name_space != group.name_space) {
      return several(id);
    }
    found.holder = group;
    found.jobs.push_back(member.job);
  }
  if (found.jobs.empty()) return missing(reader, settings, id);
  found.id = jobs::job_text(found.holder);
  return found;
}

namespace {

// A job of the scheduler alone: it held GPUs of which there is not one sample.
Result<Gathered> gather_told(const store::Reader& reader, const AnswerSettings& settings, const ToldTime& told, const std::string& id,
                             const Caller& caller) {
  const auto holder = jobs::parse_job_text(id);
  const JobService::Held* held = holder ? told.of(*holder) : nullptr;
  if (held == nullptr || !caller.sees(held->holder)) return missing(reader, settings, id);
  Gathered gathered;
  gathered.cells.id = jobs::job_text(held->holder);
  gathered.cells.holder = held->holder;
  gathered.cells.first = held->first;
  gathered.cells.last = held->last;
  return gathered;
}

Result<Gathered> gather_found(store::Reader& reader, const AnswerSettings& settings, const FoundJob& found, units::Window window) {
  Gathered gathered;
  JobCells& cells = gathered.cells;
  cells.id = found.id;
  cells.holder = found.holder;
  for (const JobId job : found.jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, reader.members(window, job));
    if (members.empty()) continue;
    widen(cells, members.front().ever, gathered.members.empty());
    gathered.members.push_back(reader.holder(job));
    cells.gpus.insert(cells.gpus.end(), members.front().gpus.begin(), members.front().gpus.end());
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, reader.job_totals(window, job));
    for (const store::JobTotal& total : totals) add_total(reader, total, cells);
  }
  if (gathered.members.empty()) return missing(reader, settings, found.id);
  store::make_distinct(cells.gpus);
  reader.make_whole(cells.gpus);
  return gathered;
}

}  // namespace

Result<JobAnswer> answer_known_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings, const std::string& id,
                                   units::Window window, const Caller& caller, samples::QualityLog& quality) {
  Question q{reader, jobs, settings, window, caller, quality, FreeHosts(reader, window)};
  FLOPSIGHT_ASSIGN_OR_RETURN(const ToldTime told, ToldTime::load(jobs, window));
  if (jobs != nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<samples::Holder> task, jobs->task_of(id, window));
    if (task) return answer_known_job(reader, jobs, settings, jobs::job_text(*task), window, caller, quality);
  }
  const auto found = find_known_job(reader, jobs, settings, id, window, caller);
  if (!found.ok() && found.error().code != base::ErrorCode::kNotFound) return found.error();
  auto gathered = found.ok() ? gather_found(reader, settings, *found, window) : gather_told(reader, settings, told, id, caller);
  if (!gathered.ok()) return gathered.error();
  FLOPSIGHT_ASSIGN_OR_RETURN(JobAnswer answer, finish(q, *gathered, told.of(gathered->cells.holder)));
  if (jobs != nullptr && found.ok()) FLOPSIGHT_RETURN_IF_ERROR(check_log_zones(reader, *jobs, found->jobs, answer, quality));
  note_unreadable(reader, settings, quality);
  return answer;
}

Result<units::Window> life_of_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings, const std::string& id,
                                  units::Instant now, const Caller& caller) {
  const units::Window ever{units::Instant{0}, now};
  FLOPSIGHT_ASSIGN_OR_RETURN(const ToldTime told, ToldTime::load(jobs, ever));
  if (jobs != nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<samples::Holder> task, jobs->task_of(id, ever));
    if (task) return life_of_job(reader, jobs, settings, jobs::job_text(*task), now, caller);
  }
  const auto found = find_known_job(reader, jobs, settings, id, ever, caller);
  if (!found.ok() && found.error().code != base::ErrorCode::kNotFound) return found.error();
  auto gathered = found.ok() ? gather_found(reader, settings, *found, ever) : gather_told(reader, settings, told, id, caller);
  if (!gathered.ok()) return gathered.error();
  JobCells& cells = gathered->cells;
  if (const JobService::Held* held = told.of(cells.holder)) widen(cells, {held->first, held->last}, false);
  return units::Window{cells.first, cells.last};
}

Result<analysis::JobSeries> answer_series(store::Reader& reader, JobService* jobs, const FoundJob& found, units::Window window,
                                          units::Seconds step) {
  std::vector<std::pair<units::Instant, std::pair<rollups::Cell, rollups::Spread>>> cells;
  for (const JobId job : found.jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> series, reader.job_series(job, window, step));
    for (const store::JobCell& cell : series) cells.push_back({cell.slot_start, {cell.cell, cell.spread}});
  }
  std::stable_sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  analysis::JobSeries series = analysis::series_of(cells, window, step);
  std::vector<training_logs::Step> steps;
  if (jobs != nullptr) {
    std::vector<samples::Holder> holders = {found.holder};
    for (const JobId job : found.jobs) {
      if (!is_same_job(reader.holder(job), found.holder)) holders.push_back(reader.holder(job));
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(steps, jobs->reported_steps_of(holders, window));
  }
  analysis::add_reported(series, steps);
  return series;
}

Result<std::vector<analysis::GpuRow>> answer_job_gpus(store::Reader& reader, const AnswerSettings& settings, const FoundJob& found,
                                                      units::Window window, samples::QualityLog& quality) {
  std::map<store::GpuId, std::vector<rollups::StoredPortion>> portions;
  jobs::HolderTable holders;
  const samples::HolderId holder = holders.intern(found.holder);
  for (const JobId job : found.jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, reader.gpu_totals(window, job));
    for (const store::GpuTotal& total : totals) portions[total.gpu].push_back({holder, total.cell});
  }
  std::vector<store::GpuId> ids;
  for (const auto& [id, parts] : portions) ids.push_back(id);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader.gpus(ids));
  rollups::Fleet fleet;
  fleet.window = window;
  for (const store::GpuRecord& record : records) {
    const auto parts = portions.find(record.id);
    if (parts == portions.end()) continue;
    fleet.gpus.push_back(rollups::time_of_gpu(record.identity, parts->second, settings.fleet, quality));
  }
  return analysis::build_report(fleet, holders, {}, {}).gpus;
}

}  // namespace flopsight::app
