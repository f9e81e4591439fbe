#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "views/report_views.h"
#include "views/error_table_internal.h"
#include "views/text_table.h"

namespace flopsight::views {
namespace {

using text_table::Column;
using text_table::drop_unknown;
using text_table::kUnknownCell;
using text_table::render;
using text_table::short_name;

std::string percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.1f} %", *ratio * 100) : std::string(kUnknownCell);
}
std::string number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : std::string(kUnknownCell);
}
std::string dollars(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2f}", *usd) : std::string(kUnknownCell);
}

// "41.2 % (40.9-42.0)".
std::string with_band(const analysis::Summary& s) {
  if (!s.ofu_ratio) return std::string(kUnknownCell);
  if (!s.ofu_ratio_low) return percent(s.ofu_ratio) + " (no band)";
  return fmt::format("{} ({:.1f}-{:.1f})", percent(s.ofu_ratio), *s.ofu_ratio_low * 100,
                     *s.ofu_ratio_high * 100);
}

void add_row(std::vector<Column>& columns, const std::string& name, const analysis::Summary& s, int decimals, bool is_told = false) {
  const std::string cells[] = {name,
                               text_table::gpu_count(s.gpu_count, is_told),
                               with_band(s),
                               percent(s.tensor_active_ratio),
                               s.sm_clock_hertz_mean ? fmt::format("{:.0f}", *s.sm_clock_hertz_mean / 1e6)
                                                     : std::string(kUnknownCell),
                               percent(s.clock_loss_ratio),
                               percent(s.coverage_ratio),
                               number(s.gpu_hours_allocated, decimals),
                               number(s.gpu_hours_delivered, decimals),
                               number(s.gpu_hours_lost, decimals),
                               number(s.gpu_hours_unmeasured, decimals),
                               dollars(s.cost_usd),
                               dollars(s.cost_lost_usd),
                               dollars(s.cost_unmeasured_usd)};
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
}

Column reported_column(const analysis::Report& report) {
  Column column{"MFU*", {}};
  for (const analysis::Group& group : report.groups) column.cells.push_back(percent(group.reported_mfu_ratio));
  if (report.groups_omitted_count > 0) column.cells.emplace_back("");
  column.cells.emplace_back(kUnknownCell);
  return column;
}

bool has_tile_overhead(const analysis::Report& report) {
  return std::any_of(report.groups.begin(), report.groups.end(), [](const analysis::Group& group) { return group.summary.tile_overhead_ratio.has_value(); });
}

Column adjusted_column(const analysis::Report& report) {
  Column column{"OFU adj**", {}};
  for (const analysis::Group& group : report.groups) column.cells.push_back(percent(group.summary.ofu_adjusted_ratio()));
  if (report.groups_omitted_count > 0) column.cells.emplace_back("");
  column.cells.emplace_back(kUnknownCell);
  return column;
}

std::string adjusted_text(const analysis::Report& report) {
  std::string out = "** OFU over the overhead of tiles:\n";
  for (const analysis::Group& group : report.groups) {
    if (!group.summary.tile_overhead_ratio) continue;
    out += fmt::format("   {}: {:.4f}, {}\n", group_name(group, report.by), *group.summary.tile_overhead_ratio, base::printable(group.summary.tile_overhead_source));
  }
  return out + "\n";
}

std::string mfu_text(const analysis::MfuAgreement& agreement) {
  std::string out = "* as jobs report it, by their own FLOPs formula and peak";
  if (agreement.error_mean_ratio) {
    out += fmt::format("; {} {} it: mean difference to OFU {:.1f} points, {:.0f} % within 10 points", agreement.job_count,
                       agreement.job_count == 1 ? "job reports" : "jobs report", *agreement.error_mean_ratio * 100,
                       *agreement.within_10_points_ratio * 100);
  }
  if (agreement.pearson_ratio) out += fmt::format(", r = {:.2f}", *agreement.pearson_ratio);
  return out + "\n\n";
}

constexpr std::string_view kNotSplit = "not split";

// " (1.2 % power cap, 0.3 % heat)": the parts of a loss, without those that round to nothing; nothing where it is not divided at all.
std::string parts_text(std::initializer_list<std::pair<double, std::string_view>> parts) {
  std::string out;
  const bool divided = std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.first > 0 && part.second != kNotSplit; });
  if (!divided) return out;
  for (const auto& [ratio, name] : parts) {
    if (std::abs(ratio) >= 0.0005) out += fmt::format("{}{:.1f} % {}", out.empty() ? " (" : ", ", ratio * 100, name);
  }
  return out.empty() ? out : out + ")";
}

// "where the time went: 31.8 % delivered, 4.5 % clock, …", of the allocated time.
std::string waterfall_text(const analysis::Waterfall& w, bool has_window) {
  std::string out;
  const auto part = [&](const std::optional<double>& ratio, std::string_view name, const std::string& parts = {}) {
    if (ratio) out += fmt::format("{}{:.1f} % {}{}", out.empty() ? "" : ", ", *ratio * 100, name, parts);
  };
  part(w.ofu_ratio, "delivered");
  const auto clock = w.clock.value_or(analysis::Waterfall::Clock{});
  const std::string clock_parts =
      clock.power_cap_ratio + clock.thermal_ratio + clock.setting_ratio == 0
          ? std::string()
          : parts_text({{clock.power_cap_ratio, "power cap"}, {clock.thermal_ratio, "heat"}, {clock.setting_ratio, "setting"},
                        {clock.unexplained_ratio, "unexplained"}, {clock.gain_ratio, "gained above the reference"}});
  if (w.clock_loss_ratio && *w.clock_loss_ratio < 0) {
    part(-*w.clock_loss_ratio, "gained by a clock above the reference", clock_parts);
  } else {
    part(w.clock_loss_ratio, "lost to the clock", clock_parts);
  }
  const auto busy = w.sm_busy.value_or(analysis::Waterfall::SmBusy{});
  part(w.tensor_idle_sm_busy_ratio, "tensor pipe idle while SMs were busy",
       parts_text({{busy.memory_bound_ratio, "bound by memory"}, {busy.other_kernels_ratio, "other kernels"}, {busy.unsplit_ratio, kNotSplit}}));
  const auto idle = w.sm_idle.value_or(analysis::Waterfall::SmIdle{});
  part(w.sm_idle_ratio, "SMs idle",
       parts_text({{idle.stalled_ratio, "stalled or not running"}, {idle.communication_ratio, "communication"},
                   {idle.host_ratio, "host or input"}, {idle.small_kernels_ratio, "small kernels"}, {idle.unsplit_ratio, kNotSplit}}));
  part(w.tensor_idle_unsplit_ratio, "tensor pipe idle (SM activity not known)");
  part(w.unmeasured_ratio, "unmeasured");
  return fmt::format("Of the fleet's {}: ", has_window ? "allocated time" : "capacity at that instant") + out + "\n\n";
}

constexpr std::size_t kFindingsShown = 5;

std::string findings_text(const analysis::Report& report) {
  if (!report.findings || report.findings->empty()) return {};
  std::string out = "Findings that are open\n";
  for (std::size_t i = 0; i < std::min(report.findings->size(), kFindingsShown); ++i) {
    const analysis::FindingMention& finding = (*report.findings)[i];
    out += fmt::format("  {}  {} {}: {}", finding.id, finding.severity, finding.kind, base::printable((finding.job.empty() ? "" : finding.job + ": ") + finding.text, 300));
    if (finding.cost_usd) out += fmt::format(", {:.2f} USD", *finding.cost_usd);
    out += "\n";
  }
  if (report.finding_count > kFindingsShown) out += fmt::format("  ... {} more\n", report.finding_count - kFindingsShown);
  return out + "\n";
}

// What a reader of an empty OFU column wants to know first.
std::string unmeasured_text(const analysis::Report& report) {
  std::string out;
  for (const auto& [reason, ratio] : report.fleet_absent_ratios) {
    out += fmt::format("  {:.1f} % {}: {}\n", ratio * 100, reason, samples::quality_meaning(reason));
  }
  return out.empty() ? out : "Unmeasured\n" + out;
}

}  // namespace

std::string report_table(const analysis::Report& report, const TableOptions& options) {
  std::vector<Column> columns = {{std::string(analysis::group_by_name(report.by)), {}, true},
                                 {"GPUs", {}},       {"OFU (band)", {}},  {"tensor", {}},
                                 {"MHz", {}},        {"clock loss", {}},  {"coverage", {}},
                                 {"GPU-h", {}},      {"delivered", {}},   {"lost", {}},
                                 {"unmeasured", {}}, {"USD", {}},         {"USD lost", {}},
                                 {"USD unmeas.", {}}};
  // A short window's hours would all round to 0.01.
  const int decimals = report.fleet.gpu_hours_allocated.value_or(100) < 1 ? 5 : 2;
  for (const analysis::Group& group : report.groups) {
    add_row(columns, group_name(group, report.by), group.summary, decimals, group.gpu_count_told.has_value());
  }
  if (report.groups_omitted_count > 0) {
    for (Column& column : columns) column.cells.emplace_back("");
    columns[0].cells.back() = fmt::format("... {} more", report.groups_omitted_count);
  }
  const std::size_t fleet_row = columns[0].cells.size();
  add_row(columns, "fleet", report.fleet, decimals, report.fleet_gpu_count_told.has_value());
  drop_unknown(columns, 7);
  if (report.mfu) columns.insert(columns.begin() + 3, reported_column(report));
  const bool adjusted = has_tile_overhead(report);
  if (adjusted) columns.insert(columns.begin() + 3, adjusted_column(report));
  std::string out = fmt::format("{}, {}\n\n", base::printable(report.source),
                                report.window ? units::to_rfc3339(report.window->start) + " to " +
                                                    units::to_rfc3339(report.window->end)
                                              : std::string("an instant"));
  out += render(columns, fleet_row) + "\n";
  if (options.errors) out += error_text(report);
  if (report.mfu) out += mfu_text(report.mfu->without_known_wrong);
  if (adjusted) out += adjusted_text(report);
  if (report.fleet.ofu_ratio) out += waterfall_text(report.fleet_waterfall, report.window.has_value());
  out += findings_text(report);
  out += unmeasured_text(report);
  out += "Assumed\n";
  for (const std::string& line : report.assumptions) out += "  " + base::printable(line, 400) + "\n";
  if (!report.quality.empty()) out += "Data\n";
  for (const samples::QualityEntry& entry : report.quality) {
    out += fmt::format("  {} x {}: {}{}\n", entry.count, entry.code, entry.meaning,
                       entry.where.empty() ? "" : " [" + base::printable(entry.where, 300) + "]");
  }
  return out;
}

}  // namespace flopsight::views
