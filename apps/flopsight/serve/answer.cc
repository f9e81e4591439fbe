#include "serve/answer.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "rollups/stored.h"

namespace flopsight::app {
namespace {

using store::JobId;

// Holders by number for the report, which knows them by its own table.
class Holders {
 public:
  Holders(store::Reader& store, const Caller& caller) : store_(store), caller_(caller) {}
  // Nothing: nobody's time. False in `visible`: not the caller's to see.
  std::optional<samples::HolderId> of(JobId job, bool& visible) {
    if (job == 0) {
      visible = caller_.sees_all();
      return std::nullopt;
    }
    const samples::Holder& holder = store_.holder(job);
    visible = caller_.sees(holder);
    if (!visible) return std::nullopt;
    const auto [at, is_new] = ids_.emplace(job, 0);
    if (is_new) at->second = table_.intern(holder);
    return at->second;
  }
  const jobs::HolderTable& table() const { return table_; }

 private:
  store::Reader& store_;
  const Caller& caller_;
  jobs::HolderTable table_;
  std::map<JobId, samples::HolderId> ids_;
};

base::Status add_gpus(store::Reader& store, const AnswerSettings& settings, units::Window window, Holders& holders,
                      rollups::Fleet& fleet, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, store.gpu_totals(window, std::nullopt));
  std::vector<store::GpuId> ids;
  for (const store::GpuTotal& total : totals) {
    if (ids.empty() || ids.back() != total.gpu) ids.push_back(total.gpu);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, store.gpus(ids));
  std::map<store::GpuId, const store::GpuRecord*> by_id;
  for (const store::GpuRecord& record : records) by_id[record.id] = &record;
  for (std::size_t i = 0; i < totals.size();) {
    const store::GpuId id = totals[i].gpu;
    std::vector<rollups::StoredPortion> portions;
    for (; i < totals.size() && totals[i].gpu == id; ++i) {
      bool visible = false;
      const auto holder = holders.of(totals[i].job, visible);
      if (visible) portions.push_back({holder, totals[i].cell});
    }
    const auto record = by_id.find(id);
    if (portions.empty() || record == by_id.end()) continue;
    fleet.gpus.push_back(rollups::time_of_gpu(record->second->identity, portions, settings.fleet, quality));
  }
  return {};
}

// By jobs, of which a store has sums: GPUs are only counted. One entry for each model stands for one job after another.
base::Result<analysis::Report> report_of_jobs(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                              const Caller& caller, const analysis::ReportOptions& options,
                                              samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, store.job_sums(window));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, store.members(window, std::nullopt));
  if (settings.simulated || store.simulated()) quality.add("simulated", "this service");
  std::map<store::ModelId, rollups::GpuTime> models;
  const auto for_all = [&](const std::function<void(rollups::GpuTime&, JobId)>& use) {
    for (const store::JobTotal& total : totals) {
      if (total.job == 0 ? !caller.sees_all() : !caller.sees(store.holder(total.job))) continue;
      const auto [model, is_new] = models.try_emplace(total.model);
      if (is_new) model->second = rollups::time_of_model(store.model_name(total.model), settings.fleet, quality);
      std::optional<samples::HolderId> holder;
      if (total.job != 0) holder = total.job;
      rollups::become_job(model->second, {holder, total.cell});
      use(model->second, total.job);
    }
  };
  // A job is its own number of a holder.
  analysis::ReportBuilder report([&](samples::HolderId id) -> const samples::Holder& { return store.holder(id); }, options, quality);
  for_all([&](const rollups::GpuTime& entry, JobId) { report.see_clock(entry); });
  for_all([&](rollups::GpuTime& entry, JobId job) {
    const auto member = std::lower_bound(members.begin(), members.end(), job,
                                         [](const store::Member& one, JobId key) { return one.job < key; });
    entry.members.clear();
    if (member != members.end() && member->job == job) entry.members = member->gpus;
    report.add(entry);
  });
  return report.finish(true, window);
}

base::Result<JobId> visible_job(store::Reader& store, const std::string& id, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, store.find_job(id));
  if (!caller.sees(store.holder(job))) {
    return base::Error{base::ErrorCode::kNotFound, "no job with the id " + base::printable(id, 40)};
  }
  return job;
}

analysis::JobCells cells_of(store::Reader& store, JobId job, units::Window ever) {
  analysis::JobCells cells;
  cells.id = store.job_text(job);
  cells.holder = store.holder(job);
  cells.first = ever.start;
  cells.last = ever.end;
  return cells;
}

}  // namespace

base::Result<analysis::Report> answer_fleet(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                            analysis::GroupBy by, std::optional<std::uint64_t> top, bool with_gpus,
                                            const Caller& caller) {
  samples::QualityLog quality;
  analysis::ReportOptions options;
  options.by = by;
  options.top = top;
  options.prices = settings.prices;
  options.source = "store";
  options.assumptions.emplace_back("from stored rollups: times are whole slots; a GPU counts from its first sample to its "
                                   "last, and not while it was silent for longer than rollup.gap");
  if (!caller.sees_all()) options.assumptions.emplace_back("only jobs that the caller may see");
  const bool needs_gpus = with_gpus || by == analysis::GroupBy::kHost || by == analysis::GroupBy::kGpu;
  if (!needs_gpus) return report_of_jobs(store, settings, window, caller, options, quality);
  rollups::Fleet fleet;
  fleet.window = window;
  Holders holders(store, caller);
  FLOPSIGHT_RETURN_IF_ERROR(add_gpus(store, settings, window, holders, fleet, quality));
  if (settings.simulated || store.simulated()) quality.add("simulated", "this service");
  return analysis::build_report(fleet, holders.table(), std::move(quality), options);
}

base::Result<std::vector<analysis::JobAnswer>> answer_jobs(store::Reader& store, const AnswerSettings& settings,
                                                           units::Window window, const Caller& caller,
                                                           samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, store.job_totals(window, std::nullopt));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<store::Member> members, store.members(window, std::nullopt));
  std::map<JobId, store::Member> held;
  for (store::Member& member : members) held[member.job] = std::move(member);
  std::vector<analysis::JobAnswer> answers;
  for (std::size_t i = 0; i < totals.size();) {
    const JobId job = totals[i].job;
    const bool visible = job != 0 && caller.sees(store.holder(job));
    analysis::JobCells cells;
    if (visible) {
      cells = cells_of(store, job, held[job].ever);
      cells.gpus = std::move(held[job].gpus);
    }
    for (; i < totals.size() && totals[i].job == job; ++i) {
      if (!visible) continue;
      cells.by_model.emplace_back(store.model_name(totals[i].model), totals[i].cell);
      cells.spread.merge(totals[i].spread);
    }
    if (visible) answers.push_back(analysis::answer_job(cells, settings.fleet, settings.prices, quality));
  }
  std::stable_sort(answers.begin(), answers.end(), [](const auto& a, const auto& b) {
    return a.lost_seconds > b.lost_seconds;
  });
  return answers;
}

base::Result<analysis::JobAnswer> answer_job(store::Reader& store, const AnswerSettings& settings, const std::string& id,
                                             units::Window window, const Caller& caller, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, visible_job(store, id, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, store.members(window, job));
  if (members.empty()) return base::Error{base::ErrorCode::kNotFound, "no job with the id " + base::printable(id, 40)};
  analysis::JobCells cells = cells_of(store, job, members.front().ever);
  cells.gpus = members.front().gpus;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, store.job_totals(window, job));
  for (const store::JobTotal& total : totals) {
    cells.by_model.emplace_back(store.model_name(total.model), total.cell);
    cells.spread.merge(total.spread);
  }
  return analysis::answer_job(cells, settings.fleet, settings.prices, quality);
}

base::Result<analysis::JobSeries> answer_series(store::Reader& store, const std::string& id, units::Window window,
                                                units::Seconds step, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, visible_job(store, id, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> series, store.job_series(job, window, step));
  std::vector<std::pair<units::Instant, std::pair<rollups::Cell, rollups::Spread>>> cells;
  for (const store::JobCell& cell : series) cells.push_back({cell.slot_start, {cell.cell, cell.spread}});
  return analysis::series_of(cells, window, step);
}

base::Result<std::vector<analysis::GpuRow>> answer_job_gpus(store::Reader& store, const AnswerSettings& settings,
                                                            const std::string& id, units::Window window,
                                                            const Caller& caller, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, visible_job(store, id, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, store.gpu_totals(window, job));
  std::vector<store::GpuId> ids;
  for (const store::GpuTotal& total : totals) ids.push_back(total.gpu);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, store.gpus(ids));
  std::map<store::GpuId, const store::GpuRecord*> by_id;
  for (const store::GpuRecord& record : records) by_id[record.id] = &record;
  rollups::Fleet fleet;
  fleet.window = window;
  jobs::HolderTable holders;
  const samples::HolderId holder = holders.intern(store.holder(job));
  for (const store::GpuTotal& total : totals) {
    const auto record = by_id.find(total.gpu);
    if (record == by_id.end()) continue;
    const rollups::StoredPortion portion{holder, total.cell};
    fleet.gpus.push_back(rollups::time_of_gpu(record->second->identity, {&portion, 1}, settings.fleet, quality));
  }
  return analysis::build_report(fleet, holders, {}, {}).gpus;
}

}  // namespace flopsight::app
