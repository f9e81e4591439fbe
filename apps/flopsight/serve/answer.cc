#include "serve/answer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "rollups/stored.h"
#include "rollups/totals.h"
#include "serve/held_time.h"

namespace flopsight::app {
namespace {

using store::JobId;

// Holders by number for the report, as far as the caller may see them.
class Holders {
 public:
  Holders(store::Reader& store, const Caller& caller, const AnswerSettings& settings, JobService* jobs)
      : store_(store), caller_(caller), owner_of_(jobs != nullptr ? jobs->owner_of() : jobs::Grouping::OwnerOf()) {
    const std::optional<std::uint64_t> names_version = store.names_version();
    if (settings.holders != nullptr && names_version && caller.sees_all()) index_ = settings.holders;
    index_->begin({names_version.value_or(0), jobs != nullptr ? jobs->owners_version() : 0, settings.grouping});
  }
  Holders(const Holders&) = delete;
  Holders& operator=(const Holders&) = delete;

  // Nothing: nobody's time. False in `visible`: not the caller's to see.
  std::optional<samples::HolderId> of(JobId job, bool& visible) {
    if (job == 0) {
      visible = caller_.sees_all();
      return std::nullopt;
    }
    // Only what the caller sees was ever put there.
    visible = true;
    if (const auto known = index_->known(job)) return known;
    const samples::Holder holder = store_.holder(job);
    visible = caller_.sees(holder);
    if (!visible) return std::nullopt;
    return index_->of(job, holder, owner_of_);
  }
  HolderIndex& index() { return *index_; }

 private:
  store::Reader& store_;
  const Caller& caller_;
  jobs::Grouping::OwnerOf owner_of_;
  HolderIndex own_;
  HolderIndex* index_ = &own_;
};

// All GPUs with their cells; `seen`: the time of each job in them.
base::Status add_gpus(store::Reader& store, const AnswerSettings& settings, units::Window window, Holders& holders,
                      rollups::Fleet& fleet, SeenSeconds& seen, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuTotal> totals, store.gpu_totals(window, std::nullopt));
  std::vector<store::GpuId> ids;
  for (const store::GpuTotal& total : totals) {
    if (ids.empty() || ids.back() != total.gpu) ids.push_back(total.gpu);
    if (total.job != 0) seen.emplace_back(total.job, static_cast<double>(total.cell.allocated_microseconds()) / 1e6);
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

// What schedulers told of the jobs of a window.
struct Told {
  std::vector<rollups::GpuTime> unseen;  // GPU time that they gave and nobody saw, as entries of a report
  std::vector<analysis::ToldGpus> gpus;
};
base::Result<Told> told_of(store::Reader& store, JobService* jobs, const AnswerSettings& settings, units::Window window,
                           const SeenSeconds& seen, const Caller& caller, Holders& holders, samples::QualityLog& quality) {
  Told told;
  if (jobs == nullptr) return told;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<ToldJobTime> times, told_times(store, *jobs, window, seen, caller, quality));
  std::optional<rollups::GpuTime> model;
  for (const ToldJobTime& time : times) {
    told.gpus.push_back({time.holder, time.gpu_count_max});
    if (!time.unseen_gpu_seconds) continue;
    // Of GPUs that nobody saw, that their model is unknown is no news.
    samples::QualityLog unsaid;
    if (!model) model = rollups::time_of_model("", settings.fleet, unsaid);
    rollups::Cell cell;
    cell.absent(samples::AbsentReason::kNotSeen) = std::llround(*time.unseen_gpu_seconds * 1e6);
    told.unseen.push_back(rollups::time_of_job(*model, {holders.index().of_told(time.holder), cell}, {}));
  }
  return told;
}

// What jobs had, of which a store has sums: GPUs are only counted. One entry for each model stands for one job after another.
class JobTimes {
 public:
  static base::Result<JobTimes> load(store::Reader& store, const AnswerSettings& settings, units::Window window, Holders& holders,
                                     JobService* jobs, const Caller& caller, samples::QualityLog& quality) {
    JobTimes out;
    // Of a day of 50,000 jobs, who had which GPUs takes as long to read as what they did.
    const auto beside = store.members_beside(window);
    std::future<base::Result<std::vector<store::Member>>> members;
    if (beside) members = std::async(std::launch::async, beside);
    FLOPSIGHT_ASSIGN_OR_RETURN(out.totals_, store.job_sums(window));
    FLOPSIGHT_ASSIGN_OR_RETURN(out.members_, beside ? members.get() : store.members(window, std::nullopt));
    SeenSeconds seen;
    seen.reserve(out.totals_.size());
    for (const store::JobTotal& total : out.totals_) {
      if (total.job != 0) seen.emplace_back(total.job, static_cast<double>(total.cell.allocated_microseconds()) / 1e6);
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(out.told_, told_of(store, jobs, settings, window, seen, caller, holders, quality));
    for (store::Member& member : out.members_) store.make_whole(member.gpus);
    // An engine knows it only once it was asked.
    if (settings.simulated || store.simulated()) quality.add("simulated", "this service");
    note_unreadable(store, settings, quality);
    out.all_.reserve(out.totals_.size());
    for (const store::JobTotal& total : out.totals_) {
      bool visible = false;
      const std::optional<samples::HolderId> holder = holders.of(total.job, visible);
      if (!visible) continue;
      const auto [model, is_new] = out.models_.try_emplace(total.model);
      if (is_new) model->second = rollups::time_of_model(store.model_name(total.model), settings.fleet, quality);
      out.all_.push_back({&total, holder, &model->second});
    }
    return out;
  }

  const Told& told() const { return told_; }

  enum class Members : std::uint8_t { kNone, kGiven, kGivenAway };

  // `use` of each: what was seen, with its GPUs where they are given, then what was held and not seen. Given away, nobody can have them again: of
  // many jobs it takes long to copy them.
  void for_all(Members members, const std::function<void(const rollups::GpuTime&)>& use) { each(members, rollups::become_job, use); }
  // The same with what ReportBuilder::see() looks at: of 50,000 jobs, the rest of all of them takes as long to make as to add up.
  void outline_all(Members members, const std::function<void(const rollups::GpuTime&)>& use) { each(members, rollups::become_outline, use); }

 private:
  template <typename Become>
  void each(Members members, Become become, const std::function<void(const rollups::GpuTime&)>& use) {
    auto member = members_.begin();  // mostly that of the job, or the one before it
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Visible& one = all_[i];
      become(*one.entry, one.holder, one.total->cell);
      one.entry->members.clear();
      if (members != Members::kNone) {
        const JobId job = one.total->job;
        if (member != members_.end() && member->job < job) ++member;
        if (member == members_.end() || member->job != job) {
          member = std::lower_bound(members_.begin(), members_.end(), job, [](const store::Member& m, JobId key) { return m.job < key; });
        }
        if (member != members_.end() && member->job == job) {
          const bool is_last = members == Members::kGivenAway && (i + 1 == all_.size() || all_[i + 1].total->job != job);
          if (is_last) one.entry->members = std::move(member->gpus);
          else one.entry->members = member->gpus;
        }
      }
      use(*one.entry);
    }
    for (const rollups::GpuTime& entry : told_.unseen) use(entry);
  }

  struct Visible {
    const store::JobTotal* total;
    std::optional<samples::HolderId> holder;
    rollups::GpuTime* entry;
  };
  std::vector<store::JobTotal> totals_;
  std::vector<store::Member> members_;
  Told told_;
  std::map<store::ModelId, rollups::GpuTime> models_;
  std::vector<Visible> all_;
};

base::Result<analysis::Report> report_of_jobs(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                              const analysis::ReportOptions& options, Holders& holders, JobService* jobs,
                                              const Caller& caller, samples::QualityLog& quality) {
  FLOPSIGHT_ASSIGN_OR_RETURN(JobTimes times, JobTimes::load(store, settings, window, holders, jobs, caller, quality));
  const jobs::HolderTable& table = holders.index().table();
  analysis::ReportOptions with_numbers = options;
  with_numbers.group_numbers = &holders.index().groups();
  analysis::ReportBuilder report([&](samples::HolderId id) -> const samples::Holder& { return table.at(id); }, with_numbers, quality);
  times.outline_all(options.by == analysis::GroupBy::kFamily ? JobTimes::Members::kGiven : JobTimes::Members::kNone, [&](const rollups::GpuTime& entry) { report.see(entry); });
  times.for_all(JobTimes::Members::kGivenAway, [&](const rollups::GpuTime& entry) { report.add(entry); });
  analysis::Report out = report.finish(true, window);
  analysis::add_told_gpus(out, times.told().gpus);
  return out;
}

// What is said of every answer from stored cells.
std::vector<std::string> store_assumptions(const Caller& caller) {
  std::vector<std::string> lines = {"from stored rollups: times are whole slots; a GPU counts from its first sample to its "
                                    "last, and not while it was silent for longer than rollup.gap"};
  if (!caller.sees_all()) lines.emplace_back("only jobs that the caller may see");
  return lines;
}

}  // namespace

void note_unreadable(const store::Reader& store, const AnswerSettings& settings, samples::QualityLog& quality) {
  quality.merge(settings.log_unreadable);
  quality.merge(store.unreadable());
}

base::Result<analysis::Report> answer_fleet(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                            analysis::GroupBy by, std::optional<std::uint64_t> top, bool with_gpus,
                                            const Caller& caller, JobService* jobs) {
  samples::QualityLog quality;
  analysis::ReportOptions options;
  options.by = by;
  options.top = top;
  options.prices = settings.prices;
  options.source = "store";
  options.assumptions = store_assumptions(caller);
  const analysis::FamilyRule builtin = analysis::FamilyRule::builtin();
  options.families = settings.families != nullptr ? settings.families.get() : &builtin;
  const bool needs_gpus = with_gpus || by == analysis::GroupBy::kHost || by == analysis::GroupBy::kGpu;
  Holders holders(store, caller, settings, jobs);
  if (!needs_gpus) return report_of_jobs(store, settings, window, options, holders, jobs, caller, quality);
  rollups::Fleet fleet;
  fleet.window = window;
  SeenSeconds seen;
  FLOPSIGHT_RETURN_IF_ERROR(add_gpus(store, settings, window, holders, fleet, seen, quality));
  FLOPSIGHT_ASSIGN_OR_RETURN(Told told, told_of(store, jobs, settings, window, seen, caller, holders, quality));
  if (settings.simulated || store.simulated()) quality.add("simulated", "this service");
  note_unreadable(store, settings, quality);
  std::move(told.unseen.begin(), told.unseen.end(), std::back_inserter(fleet.gpus));
  analysis::Report report = analysis::build_report(fleet, holders.index().table(), std::move(quality), options);
  analysis::add_told_gpus(report, told.gpus);
  return report;
}

base::Result<analysis::WasteAccount> answer_waste(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                                  analysis::WasteBy by, std::optional<std::uint64_t> top, const Caller& caller,
                                                  JobService* jobs, samples::QualityLog& quality) {
  Holders holders(store, caller, settings, jobs);
  FLOPSIGHT_ASSIGN_OR_RETURN(JobTimes times, JobTimes::load(store, settings, window, holders, jobs, caller, quality));
  analysis::WasteOptions options;
  options.by = by;
  options.top = top;
  options.prices = settings.prices;
  options.targets = settings.targets;
  options.families = settings.families.get();
  options.source = "store";
  options.assumptions = store_assumptions(caller);
  const jobs::HolderTable& table = holders.index().table();
  analysis::WasteBuilder builder([&](samples::HolderId id) -> const samples::Holder& { return table.at(id); }, options);
  times.for_all(JobTimes::Members::kGivenAway, [&](const rollups::GpuTime& entry) { builder.add(entry); });
  analysis::WasteAccount account = builder.finish(window);
  account.simulated = settings.simulated || store.simulated();
  if (account.simulated) account.source = "SIMULATED fleet, store";
  return account;
}

}  // namespace flopsight::app
