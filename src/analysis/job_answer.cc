#include "analysis/job_answer.h"

#include <algorithm>
#include <cmath>

#include "analysis/tally_internal.h"
#include "base/median.h"
#include "rollups/stored.h"
#include "units/milliseconds.h"

namespace flopsight::analysis {
namespace {

using rollups::Cell;
using rollups::CellField;

std::optional<double> ratio(double part, double whole) {
  if (!(whole > 0)) return std::nullopt;
  return part / whole;
}

}  // namespace

JobAnswer answer_job(const JobCells& cells, const rollups::FleetOptions& options, const Prices& prices,
                     samples::QualityLog& quality) {
  JobAnswer answer;
  answer.id = cells.id;
  answer.holder = cells.holder;
  answer.first = cells.first;
  answer.last = cells.last;
  rollups::Fleet fleet;
  for (const auto& [model_raw, cell] : cells.by_model) {
    const rollups::GpuTime model = rollups::time_of_model(model_raw, options, quality);
    fleet.gpus.push_back(rollups::time_of_job(model, {samples::HolderId{0}, cell}, cells.gpus));
  }
  ClockVariance variance;
  for (const rollups::GpuTime& gpu : fleet.gpus) variance.see(gpu);
  Tally tally;
  Cell sum;
  for (std::size_t i = 0; i < fleet.gpus.size(); ++i) {
    const rollups::GpuTime& gpu = fleet.gpus[i];
    tally.add(gpu, {&gpu.portions[0]}, variance, prices, [&](samples::HolderId) -> const samples::Holder& { return cells.holder; });
    sum.merge(cells.by_model[i].second);
    answer.models.push_back(gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw);
  }
  answer.summary = tally.summary(true);
  answer.waterfall = tally.waterfall();
  answer.absent_reason = tally.absent_reason();
  answer.lost_seconds = tally.totals().measured_seconds - tally.totals().delivered_seconds;
  const rollups::Extremes extremes = rollups::extremes_of(sum);
  if (extremes.any_ofu) {
    answer.spread.ofu_ratio_min = extremes.ofu_min_ratio;
    answer.spread.ofu_ratio_max = extremes.ofu_max_ratio;
  }
  answer.spread.ofu_ratio_p5 = cells.spread.percentile(0.05);
  answer.spread.ofu_ratio_p50 = cells.spread.percentile(0.5);
  answer.spread.ofu_ratio_p95 = cells.spread.percentile(0.95);
  const rollups::Surroundings& around = tally.totals().surroundings;
  if (around.energy_known_seconds > 0) {
    answer.energy_joules = around.energy_joules;
    answer.energy_coverage_ratio = ratio(around.energy_known_seconds, tally.totals().allocated_seconds);
  }
  return answer;
}

JobSeries series_of(const std::vector<std::pair<units::Instant, std::pair<Cell, rollups::Spread>>>& cells,
                    units::Window window, units::Seconds step) {
  JobSeries series;
  series.step = step;
  const auto step_milliseconds = milliseconds(step);
  const std::int64_t first = window.start.unix_milliseconds / step_milliseconds * step_milliseconds;
  std::size_t at = 0;
  for (std::int64_t t = first; t < window.end.unix_milliseconds; t += step_milliseconds) {
    Cell cell;
    rollups::Spread spread;
    for (; at < cells.size() && cells[at].first.unix_milliseconds < t + step_milliseconds; ++at) {
      if (cells[at].first.unix_milliseconds < t) continue;
      cell.merge(cells[at].second.first);
      spread.merge(cells[at].second.second);
    }
    const rollups::Totals totals = rollups::totals_of(cell);
    series.time.push_back(units::Instant{t});
    series.ofu_ratio.push_back(ratio(totals.delivered_seconds, totals.measured_seconds));
    series.tensor_active_ratio.push_back(ratio(totals.tensor_seconds, totals.tensor_known_seconds));
    series.sm_active_ratio.push_back(ratio(totals.sm_active_seconds, totals.sm_known_seconds));
    series.dram_active_ratio.push_back(
        ratio(totals.surroundings.dram_active_seconds, totals.surroundings.dram_known_seconds));
    series.sm_clock_hertz.push_back(ratio(totals.clock_hertz_seconds, totals.clock_known_seconds));
    series.coverage_ratio.push_back(ratio(totals.measured_seconds, totals.allocated_seconds));
    series.power_watts.push_back(
        ratio(totals.surroundings.energy_joules, totals.surroundings.energy_known_seconds));
    series.gpu_count.push_back(totals.allocated_seconds > 0
                                   ? std::optional(totals.allocated_seconds / step.value)
                                   : std::nullopt);
    const rollups::Surroundings& around = totals.surroundings;
    const auto bytes_per_second = [&](double bytes) {
      return bytes > 0 ? ratio(bytes, totals.allocated_seconds) : std::nullopt;
    };
    series.nvlink_bytes_per_second.push_back(bytes_per_second(around.nvlink_tx_bytes + around.nvlink_rx_bytes));
    series.pcie_bytes_per_second.push_back(bytes_per_second(around.pcie_tx_bytes + around.pcie_rx_bytes));
    series.ofu_ratio_p5.push_back(spread.percentile(0.05));
    series.ofu_ratio_p50.push_back(spread.percentile(0.5));
    series.ofu_ratio_p95.push_back(spread.percentile(0.95));
    series.absent_reason.push_back(totals.allocated_seconds > 0 ? main_absent_reason(totals)
                                                                : std::string(samples::absent_reason_name(
                                                                      samples::AbsentReason::kNotSeen)));
  }
  return series;
}

void add_reported(JobSeries& series, std::span<const training_logs::Step> steps) {
  series.reported_mfu_ratio.assign(series.time.size(), std::nullopt);
  if (series.time.empty()) return;
  std::vector<std::vector<double>> said(series.time.size());
  const std::int64_t first = series.time.front().unix_milliseconds;
  const std::int64_t length = milliseconds(series.step);
  for (const training_logs::Step& step : steps) {
    if (!step.time || !step.mfu_ratio || step.excluded || step.time->unix_milliseconds < first) continue;
    const auto at = static_cast<std::size_t>((step.time->unix_milliseconds - first) / length);
    if (at < said.size()) said[at].push_back(*step.mfu_ratio);
  }
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].empty()) series.reported_mfu_ratio[i] = base::median(std::move(said[i]));
  }
}

}  // namespace flopsight::analysis
