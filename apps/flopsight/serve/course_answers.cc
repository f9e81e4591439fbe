#include "serve/course_answers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "analysis/gpu_rows.h"
#include "base/text.h"
#include "jobs/job_name.h"
#include "rollups/stored.h"
#include "serve/held_time.h"
#include "serve/job_answers.h"

namespace flopsight::app {
namespace {

using base::Result;
using store::GpuId;
using store::JobId;

// Whether the caller may see a job's time; asked once for each.
class Visible {
 public:
  Visible(const store::Reader& reader, const Caller& caller) : reader_(reader), caller_(caller) {}
  bool operator()(JobId job) {
    if (caller_.sees_all()) return true;
    if (job == 0) return false;
    const auto [at, is_new] = known_.try_emplace(job, false);
    if (is_new) at->second = caller_.sees(reader_.holder(job));
    return at->second;
  }

 private:
  const store::Reader& reader_;
  const Caller& caller_;
  std::map<JobId, bool> known_;
};

base::Error too_many(std::uint64_t gpus, std::uint64_t steps, std::uint64_t cells_max) {
  return {base::ErrorCode::kLimit, std::to_string(gpus) + " GPUs in " + std::to_string(steps) + " steps, over " +
                                       std::to_string(cells_max) +
                                       " (limits.query-cells); give a larger step, a shorter window or fewer GPUs"};
}

std::uint64_t steps_in(units::Window window, units::Seconds step) {
  return static_cast<std::uint64_t>(std::ceil(window.length().value / step.value));
}

using CellsOverTime = std::vector<std::pair<units::Instant, std::pair<rollups::Cell, rollups::Spread>>>;

// What one GPU had, and of whom.
struct Course {
  CellsOverTime cells;
  std::set<JobId> jobs;
};

std::string model_of(const samples::GpuIdentity& gpu, const AnswerSettings& settings) {
  samples::QualityLog unsaid;  // of the model alone; reports say it
  const rollups::GpuTime time = rollups::time_of_model(gpu.model_raw, settings.fleet, unsaid);
  return time.device != nullptr ? time.device->model : "";
}

}  // namespace

Result<analysis::JobSeries> answer_fleet_series(store::Reader& reader, units::Window window, units::Seconds step,
                                                const Caller& caller) {
  Visible visible(reader, caller);
  std::function<bool(JobId)> wanted;  // all of it may be at hand as one sum
  if (!caller.sees_all()) wanted = [&](JobId job) { return visible(job); };
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto cells, reader.fleet_series(window, step, wanted));
  CellsOverTime over_time;
  for (const auto& [start, cell] : cells) over_time.push_back({start, {cell, {}}});
  analysis::JobSeries series = analysis::series_of(over_time, window, step);
  analysis::add_reported(series, {});
  return series;
}

Result<std::vector<analysis::GpuRow>> answer_all_gpus(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                                                      units::Window window, std::uint64_t cells_max, const Caller& caller,
                                                      samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, reader.gpu_totals(window, std::nullopt));
  Visible visible(reader, caller);
  jobs::HolderTable holders;
  std::map<JobId, samples::HolderId> known;
  const auto holder_of = [&](JobId job) -> std::optional<samples::HolderId> {
    if (job == 0) return std::nullopt;
    const auto [at, is_new] = known.try_emplace(job, 0);
    if (is_new) at->second = holders.intern(group_of(reader.holder(job), jobs, settings));
    return at->second;
  };
  std::vector<GpuId> ids;
  std::vector<std::vector<rollups::StoredPortion>> portions;
  for (const store::GpuTotal& total : totals) {
    if (!visible(total.job)) continue;
    if (ids.empty() || ids.back() != total.gpu) {
      ids.push_back(total.gpu);
      portions.emplace_back();
    }
    portions.back().push_back({holder_of(total.job), total.cell});
  }
  if (ids.size() > cells_max) return too_many(ids.size(), 1, cells_max);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader.gpus(ids));
  rollups::Fleet fleet;
  fleet.window = window;
  std::size_t at = 0;  // records come in the order in which they were asked for
  for (const store::GpuRecord& record : records) {
    while (at < ids.size() && ids[at] != record.id) ++at;
    if (at == ids.size()) break;
    fleet.gpus.push_back(rollups::time_of_gpu(record.identity, portions[at], settings.fleet, quality));
  }
  return analysis::gpu_rows(fleet, holders);
}

namespace {

// The GPUs of a question, and the cells of them that it is about.
Result<std::vector<store::GpuCell>> cells_of(store::Reader& reader, const AnswerSettings& settings, JobService* jobs, const CourseOf& of,
                                             units::Window window, units::Seconds step, std::uint64_t cells_max,
                                             const Caller& caller) {
  const std::uint64_t steps = steps_in(window, step);
  if (!of.job.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const FoundJob found, find_known_job(reader, jobs, settings, of.job, window, caller));
    std::vector<store::GpuCell> cells;
    std::uint64_t gpus = 0;
    for (const JobId job : found.jobs) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, reader.members(window, job));
      for (const store::Member& member : members) gpus += member.gpus.size();
      if (gpus * steps > cells_max) return too_many(gpus, steps, cells_max);
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuCell> some, reader.gpu_series({job, std::nullopt}, window, step));
      cells.insert(cells.end(), some.begin(), some.end());
    }
    std::stable_sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.slot_start < b.slot_start; });
    return cells;
  }
  store::GpuLookup lookup;
  lookup.host = of.host;
  lookup.uuid = of.uuid;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader.find_gpus(lookup, window));
  if (records.size() * steps > cells_max) return too_many(records.size(), steps, cells_max);
  std::vector<GpuId> ids;
  for (const store::GpuRecord& record : records) ids.push_back(record.id);
  std::sort(ids.begin(), ids.end());
  std::vector<store::GpuCell> cells;
  if (!ids.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(cells, reader.gpu_series({std::nullopt, std::move(ids)}, window, step));
  }
  Visible visible(reader, caller);
  std::erase_if(cells, [&](const store::GpuCell& cell) { return !visible(cell.job); });
  // A host that there is has what cannot be read; who sees only some of the jobs is not told whether there is one.
  const bool may_be_unreadable = !records.empty() && reader.unreadable().count(samples::kNotReadable) > 0 && caller.sees_all();
  if (cells.empty() && !may_be_unreadable) {
    const std::string what = of.host.empty() ? "GPU with the UUID " + base::printable(of.uuid, 60) : "host " + base::printable(of.host, 60);
    return not_found(reader, settings, "no " + what + " in this window");
  }
  return cells;
}

}  // namespace

Result<std::vector<analysis::GpuCourse>> answer_gpu_courses(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                                                            const CourseOf& of, units::Window window, units::Seconds step,
                                                            std::uint64_t cells_max, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuCell> cells,
                             cells_of(reader, settings, jobs, of, window, step, cells_max, caller));
  std::map<GpuId, Course> courses;
  for (const store::GpuCell& cell : cells) {
    Course& course = courses[cell.gpu];
    course.cells.push_back({cell.slot_start, {cell.cell, {}}});
    if (cell.job != 0) course.jobs.insert(cell.job);
  }
  std::vector<GpuId> ids;
  for (const auto& [id, course] : courses) ids.push_back(id);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader.gpus(ids));
  std::vector<analysis::GpuCourse> out;
  for (const store::GpuRecord& record : records) {
    const Course& course = courses[record.id];
    analysis::GpuCourse one;
    one.gpu = record.identity;
    one.model = model_of(record.identity, settings);
    std::set<std::string> names;
    for (const JobId job : course.jobs) names.insert(jobs::job_text(group_of(reader.holder(job), jobs, settings)));
    one.jobs.assign(names.begin(), names.end());
    one.series = analysis::series_of(course.cells, window, step);
    out.push_back(std::move(one));
  }
  const auto place = [](const analysis::GpuCourse& one) {
    // "10" after "9".
    return std::make_tuple(one.gpu.host, one.gpu.index.size(), one.gpu.index, one.gpu.uuid, one.gpu.mig_instance);
  };
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return out;
}

namespace {

struct JobNames {
  std::map<std::string, std::string> jobs;  // and whose they are
  std::set<std::string> users, teams;
};

// Of jobs that were measured, and of those of which schedulers told and nobody has a sample.
Result<JobNames> names_of_jobs(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                               const std::function<bool(const std::string&)>& is_wanted, units::Window window, const Caller& caller) {
  JobNames out;
  const auto note = [&](const samples::Holder& group) {
    const std::string id = jobs::job_text(group);
    if (is_wanted(id)) out.jobs.emplace(id, group.user);
    if (!group.user.empty() && is_wanted(group.user)) out.users.insert(group.user);
    if (!group.team.empty() && is_wanted(group.team)) out.teams.insert(group.team);
  };
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, reader.members(window, std::nullopt));
  FLOPSIGHT_ASSIGN_OR_RETURN(const ToldTime told, ToldTime::load(jobs, window));
  std::set<const JobService::Held*> measured;
  for (const store::Member& member : members) {
    if (member.job == 0) continue;
    const samples::Holder holder = reader.holder(member.job);
    if (!caller.sees(holder)) continue;
    measured.insert(told.of(holder));
    note(group_of(holder, jobs, settings));
  }
  for (const JobService::Held& held : told.all()) {
    if (caller.sees(held.holder) && !measured.contains(&held)) note(held.holder);
  }
  return out;
}

}  // namespace

Result<std::vector<Match>> answer_search(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                                         const std::string& text, units::Window window, std::size_t count, const Caller& caller) {
  const std::string wanted = base::to_lower(text);
  const auto has = [&](const std::string& name) { return base::to_lower(name).find(wanted) != std::string::npos; };
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobNames found, names_of_jobs(reader, settings, jobs, has, window, caller));
  std::set<std::string> models;
  std::map<std::string, std::size_t> hosts;
  std::map<std::string, std::string> gpus;
  if (caller.sees_all()) {
    store::GpuLookup lookup;
    lookup.part = text;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, reader.find_gpus(lookup, window));
    for (const store::GpuRecord& record : records) {
      const samples::GpuIdentity& gpu = record.identity;
      if (has(gpu.host)) ++hosts[gpu.host];
      if (has(gpu.uuid)) gpus.emplace(gpu.uuid, gpu.host + (gpu.index.empty() ? "" : ", index " + gpu.index));
    }
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, reader.job_sums(window));
  for (const store::JobTotal& total : totals) {
    if (total.job == 0 ? !caller.sees_all() : !caller.sees(reader.holder(total.job))) continue;
    samples::GpuIdentity gpu;
    gpu.model_raw = reader.model_name(total.model);
    const std::string model = model_of(gpu, settings);
    if (!model.empty() && (has(model) || has(gpu.model_raw))) models.insert(model);
  }
  std::vector<Match> out;
  const auto add = [&](const char* kind, const auto& names, const auto& match_of) {
    std::size_t left = count;
    for (const auto& name : names) {
      if (left-- == 0) break;
      Match match = match_of(name);
      match.kind = kind;
      out.push_back(std::move(match));
    }
  };
  const auto plain = [](const std::string& name) { return Match{"", name, ""}; };
  const auto pair = [](const auto& named) { return Match{"", named.first, named.second}; };
  add("job", found.jobs, pair);
  add("user", found.users, plain);
  add("team", found.teams, plain);
  add("host", hosts, [](const auto& host) {
    return Match{"", host.first, std::to_string(host.second) + (host.second == 1 ? " GPU" : " GPUs")};
  });
  add("gpu", gpus, pair);
  add("model", models, plain);
  return out;
}

}  // namespace flopsight::app
