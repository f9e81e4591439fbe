#include "serve/phase_answers.h"

#include <algorithm>
#include <map>

namespace flopsight::app {
namespace {

// Of the sources that tell of the job, the one with the most numbered steps.
base::Result<std::vector<training_logs::Step>> steps_of(store::Reader& reader, JobService& jobs, const FoundJob& found, units::Window window) {
  std::vector<samples::Holder> holders = {found.holder};
  for (const store::JobId job : found.jobs) {
    const samples::Holder member = reader.holder(job);
    const bool known = std::any_of(holders.begin(), holders.end(), [&](const samples::Holder& one) {
      return one.job == member.job && one.name_space == member.name_space;
    });
    if (!known) holders.push_back(member);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(auto sources, jobs.sources_of(holders, window));
  std::vector<training_logs::Step> best;
  std::ptrdiff_t most = 0;
  for (auto& [name, source] : sources) {
    const auto numbered =
        std::count_if(source.steps.begin(), source.steps.end(), [](const training_logs::Step& step) { return step.step.has_value(); });
    if (numbered <= most) continue;
    most = numbered;
    best = std::move(source.steps);
  }
  return best;
}

}  // namespace

base::Result<PhaseAnswer> answer_phases(store::Reader& reader, JobService* jobs, const FoundJob& found, units::Window window,
                                        units::Seconds slot) {
  std::map<units::Instant, rollups::Totals> by_slot;
  for (const store::JobId job : found.jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> series, reader.job_sum_series(job, window, slot));
    for (const store::JobCell& cell : series) by_slot[cell.slot_start].merge(rollups::totals_of(cell.cell));
  }
  std::vector<analysis::PhaseSlot> slots;
  for (auto& [start, totals] : by_slot) slots.push_back({start, totals});
  PhaseAnswer out;
  out.slot = slot;
  out.phases = analysis::phases_of(slots, slot);
  std::optional<analysis::RepeatedSteps> repeated;
  if (jobs != nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<training_logs::Step> steps, steps_of(reader, *jobs, found, window));
    repeated = analysis::repeated_steps(steps);
    out.precision_switches = analysis::precision_switches(steps);
  }
  out.goodput = analysis::goodput_of(out.phases, repeated);
  return out;
}

}  // namespace flopsight::app
