#include "analysis/gpu_rows.h"

#include <algorithm>

#include "analysis/tally_internal.h"

namespace flopsight::analysis {

GpuRow gpu_row(const rollups::GpuTime& gpu, const ReportBuilder::HolderOf& holder_of) {
  GpuRow row;
  row.gpu = gpu.gpu;
  row.model = gpu.device != nullptr ? gpu.device->model : "";
  row.shared_by = gpu.holders_at_once_max;
  const auto add_once = [](std::vector<std::string>& list, const std::string& text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (const rollups::Portion& portion : gpu.portions) {
    if (!portion.holder) continue;
    const samples::Holder& holder = holder_of(*portion.holder);
    add_once(row.jobs, holder.job);
    add_once(row.attributed_by, holder.rule + (portion.bridged_seconds > 0 ? " (label gaps bridged)" : ""));
  }
  if (gpu.reference) {
    row.reference_clock_hertz = gpu.reference->clock.value;
    row.reference_clock_source = model::reference_source_name(gpu.reference->source);
  }
  // A MIG instance's own ratios do not depend on its share of the GPU.
  Tally tally;
  std::vector<const rollups::Portion*> all;
  for (const rollups::Portion& portion : gpu.portions) all.push_back(&portion);
  tally.add(gpu, all, ClockVariance(), Prices(), holder_of);
  const Summary s = tally.summary(false);
  row.tensor_active_ratio = s.tensor_active_ratio;
  row.sm_clock_hertz = s.sm_clock_hertz_mean;
  row.ofu_ratio = s.ofu_ratio;
  row.coverage_ratio = s.coverage_ratio;
  if (!s.ofu_ratio) row.absent_reason = tally.absent_reason();
  return row;
}

std::vector<GpuRow> gpu_rows(const rollups::Fleet& fleet, const jobs::HolderTable& holders) {
  const ReportBuilder::HolderOf holder = [&](samples::HolderId id) -> const samples::Holder& { return holders.at(id); };
  std::vector<GpuRow> rows;
  rows.reserve(fleet.gpus.size());
  for (const rollups::GpuTime& gpu : fleet.gpus) rows.push_back(gpu_row(gpu, holder));
  return rows;
}

}  // namespace flopsight::analysis
