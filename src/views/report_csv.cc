#include <algorithm>

#include "base/csv.h"
#include "base/json.h"
#include "views/report_views.h"

namespace flopsight::views {
namespace {

void add_number(std::string& out, const std::optional<double>& value) {
  out += ',';
  if (value) out += base::json::number_text(*value);
}

}  // namespace

std::string report_csv(const analysis::Report& report) {
  std::string out;
  for (const std::string& key : analysis::group_key_names(report.by)) out += key + ",";
  out +=
      "gpu_count,gpu_hours_allocated,gpu_hours_delivered,gpu_hours_lost,gpu_hours_unmeasured,ofu_ratio,"
      "ofu_ratio_low,ofu_ratio_high,tensor_active_ratio,sm_clock_hertz_mean,clock_loss_ratio,"
      "coverage_ratio,cost_usd,cost_lost_usd,cost_unmeasured_usd,absent_reason,simulated\n";
  const bool is_simulated =
      std::any_of(report.quality.begin(), report.quality.end(), [](const samples::QualityEntry& entry) { return entry.code == "simulated"; });
  for (const analysis::Group& group : report.groups) {
    for (const auto& [name, value] : group.key) {
      if (value) out += base::csv_cell(*value);
      out += ',';
    }
    const analysis::Summary& s = group.summary;
    out += std::to_string(s.gpu_count);
    for (const auto& value :
         {s.gpu_hours_allocated, s.gpu_hours_delivered, s.gpu_hours_lost, s.gpu_hours_unmeasured,
          s.ofu_ratio, s.ofu_ratio_low, s.ofu_ratio_high, s.tensor_active_ratio, s.sm_clock_hertz_mean,
          s.clock_loss_ratio, s.coverage_ratio, s.cost_usd, s.cost_lost_usd, s.cost_unmeasured_usd}) {
      add_number(out, value);
    }
    out += "," + group.absent_reason + (is_simulated ? ",true\n" : ",false\n");
  }
  return out;
}

}  // namespace flopsight::views
