#include "serve/answer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "rollups/stored.h"

namespace flopsight::app {
namespace {

using store::JobId;

// Distinct GPUs of each job.
std::map<JobId, std::vector<std::uint32_t>> gpus_of_jobs(const std::vector<store::Held>& spans) {
  std::map<JobId, std::vector<std::uint32_t>> gpus;
  for (const store::Held& span : spans) gpus[span.job].push_back(span.gpu);
  for (auto& [id, list] : gpus) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return gpus;
}

// GPUs that some of the time nobody held.
std::vector<std::uint32_t> gpus_of_nobody(const store::Store& store, const std::vector<store::Held>& spans,
                                          units::Window window) {
  std::unordered_map<store::GpuId, std::int64_t> held_milliseconds;
  for (const store::Held& span : spans) {
    held_milliseconds[span.gpu] += (std::min(span.window.end, window.end).unix_milliseconds -
                                    std::max(span.window.start, window.start).unix_milliseconds);
  }
  std::vector<std::uint32_t> gpus;
  for (const auto& [id, seen] : store.present(window)) {
    const auto held = held_milliseconds.find(id);
    const std::int64_t seen_milliseconds = seen.end.unix_milliseconds - seen.start.unix_milliseconds;
    if (held == held_milliseconds.end() || held->second < seen_milliseconds) gpus.push_back(id);
  }
  return gpus;
}

// Holders by number for the report, which knows them by its own table.
class Holders {
 public:
  Holders(store::Store& store, const Caller& caller) : store_(store), caller_(caller) {}
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
  store::Store& store_;
  const Caller& caller_;
  jobs::HolderTable table_;
  std::map<JobId, samples::HolderId> ids_;
};

base::Status add_gpus(store::Store& store, const AnswerSettings& settings, units::Window window, Holders& holders,
                      rollups::Fleet& fleet, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, store.gpu_totals(window, std::nullopt));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, store.gpus());
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

base::Status add_jobs(store::Store& store, const AnswerSettings& settings, units::Window window, Holders& holders,
                      rollups::Fleet& fleet, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, store.job_totals(window));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Held> spans, store.held(std::nullopt, window));
  std::map<JobId, std::vector<std::uint32_t>> gpus = gpus_of_jobs(spans);
  gpus[0] = gpus_of_nobody(store, spans, window);
  for (const store::JobTotal& total : totals) {
    bool visible = false;
    const auto holder = holders.of(total.job, visible);
    if (!visible) continue;
    fleet.gpus.push_back(rollups::time_of_job(store.model_name(total.model), {holder, total.cell}, gpus[total.job],
                                              settings.fleet, quality));
  }
  return {};
}

base::Result<JobId> visible_job(store::Store& store, const std::string& id, const Caller& caller) {
  const auto number = base::parse_number(id);
  const base::Error missing{base::ErrorCode::kNotFound, "no job with the id " + base::printable(id, 40)};
  if (!number || *number < 1 || *number > 4e9 || std::to_string(static_cast<JobId>(*number)) != id) return missing;
  const auto job = static_cast<JobId>(*number);
  if (job > store.job_count() || !caller.sees(store.holder(job))) return missing;
  return job;
}

analysis::JobCells cells_of(store::Store& store, JobId job, units::Window ever) {
  analysis::JobCells cells;
  cells.id = std::to_string(job);
  cells.holder = store.holder(job);
  cells.first = ever.start;
  cells.last = ever.end;
  return cells;
}

units::Window ever_of(const std::vector<store::Held>& spans) {
  units::Window window;
  for (const store::Held& span : spans) {
    if (window.end.unix_milliseconds == 0 || span.window.start < window.start) window.start = span.window.start;
    window.end = std::max(window.end, span.window.end);
  }
  return window;
}

constexpr units::Window kEver{{0}, {std::int64_t{1} << 52}};

}  // namespace

base::Result<analysis::Report> answer_fleet(store::Store& store, const AnswerSettings& settings, units::Window window,
                                            analysis::GroupBy by, std::optional<std::uint64_t> top, bool with_gpus,
                                            const Caller& caller) {
  samples::QualityLog quality;
  rollups::Fleet fleet;
  fleet.window = window;
  Holders holders(store, caller);
  const bool needs_gpus = with_gpus || by == analysis::GroupBy::kHost || by == analysis::GroupBy::kGpu;
  if (needs_gpus) {
    FLOPSIGHT_RETURN_IF_ERROR(add_gpus(store, settings, window, holders, fleet, quality));
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(add_jobs(store, settings, window, holders, fleet, quality));
  }
  if (settings.simulated) quality.add("simulated", "this service");
  analysis::ReportOptions options;
  options.by = by;
  options.top = top;
  options.prices = settings.prices;
  options.source = "store";
  options.assumptions.emplace_back("from stored rollups: times are whole slots; a GPU counts from its first sample to its "
                                   "last, and not while it was silent for longer than rollup.gap");
  if (!caller.sees_all()) options.assumptions.emplace_back("only jobs that the caller may see");
  return analysis::build_report(fleet, holders.table(), std::move(quality), options);
}

base::Result<std::vector<analysis::JobAnswer>> answer_jobs(store::Store& store, const AnswerSettings& settings,
                                                           units::Window window, const Caller& caller,
                                                           samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobTotal> totals, store.job_totals(window));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Held> spans, store.held(std::nullopt, window));
  std::map<JobId, std::pair<units::Window, std::vector<std::uint32_t>>> held;
  for (const store::Held& span : spans) {
    auto& [ever, gpus] = held[span.job];
    if (gpus.empty() || span.window.start < ever.start) ever.start = span.window.start;
    ever.end = std::max(ever.end, span.window.end);
    gpus.push_back(span.gpu);
  }
  std::vector<analysis::JobAnswer> answers;
  for (std::size_t i = 0; i < totals.size();) {
    const JobId job = totals[i].job;
    const bool visible = job != 0 && caller.sees(store.holder(job));
    analysis::JobCells cells;
    if (visible) {
      cells = cells_of(store, job, held[job].first);
      cells.gpus = std::move(held[job].second);
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

base::Result<analysis::JobAnswer> answer_job(store::Store& store, const AnswerSettings& settings, const std::string& id,
                                             units::Window window, const Caller& caller, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, visible_job(store, id, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Held> ever, store.held(job, kEver));
  analysis::JobCells cells = cells_of(store, job, ever_of(ever));
  for (const store::Held& span : ever) {
    if (span.window.start < window.end && span.window.end > window.start) cells.gpus.push_back(span.gpu);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> series,
                             store.job_series(job, window, units::Seconds(60)));
  std::map<store::ModelId, rollups::Cell> by_model;
  for (const store::JobCell& cell : series) {
    if (!window.contains(cell.slot_start)) continue;
    by_model[cell.model].merge(cell.cell);
    cells.spread.merge(cell.spread);
  }
  for (const auto& [model, cell] : by_model) cells.by_model.emplace_back(store.model_name(model), cell);
  return analysis::answer_job(cells, settings.fleet, settings.prices, quality);
}

base::Result<analysis::JobSeries> answer_series(store::Store& store, const std::string& id, units::Window window,
                                                units::Seconds step, const Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const JobId job, visible_job(store, id, caller));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> series, store.job_series(job, window, step));
  std::vector<std::pair<units::Instant, std::pair<rollups::Cell, rollups::Spread>>> cells;
  for (const store::JobCell& cell : series) cells.push_back({cell.slot_start, {cell.cell, cell.spread}});
  return analysis::series_of(cells, window, step);
}

base::Result<std::vector<analysis::GpuRow>> answer_job_gpus(store::Store& store, const AnswerSettings& settings,
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
