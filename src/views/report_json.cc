#include "base/json.h"
#include "views/report_views.h"
#include "views/summary_internal.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;

// Of a group in JSON, about: it is made in one piece.
constexpr std::size_t kGroupMembers = 24;

Object group(const analysis::Group& g) {
  Object key;
  key.reserve(g.key.size());
  for (const auto& [name, value] : g.key) key.emplace_back(name, value);
  Object out;
  out.reserve(kGroupMembers);
  out.emplace_back("key", std::move(key));
  add_summary(out, g.summary);
  add_error(out, g.summary.error);
  if (g.gpu_count_told) out.emplace_back("gpu_count_told", *g.gpu_count_told);
  if (g.reported_mfu_ratio) out.emplace_back("reported_mfu_ratio", g.reported_mfu_ratio);
  add_tile(out, g.summary);
  out.emplace_back("absent_reason", text_or_null(g.absent_reason));
  out.emplace_back("waterfall", waterfall_json(g.waterfall));
  return out;
}

}  // namespace

std::string report_json(const analysis::Report& report) {
  Object fleet;
  add_summary(fleet, report.fleet);
  add_error(fleet, report.fleet.error);
  if (report.fleet_gpu_count_told) fleet.emplace_back("gpu_count_told", *report.fleet_gpu_count_told);
  fleet.emplace_back("waterfall", waterfall_json(report.fleet_waterfall));
  Object absent;
  for (const auto& [reason, ratio] : report.fleet_absent_ratios) absent.emplace_back(reason, ratio);
  fleet.emplace_back("absent_ratios", std::move(absent));
  Array groups, gpus;
  groups.reserve(report.groups.size());
  gpus.reserve(report.gpus.size());
  for (const analysis::Group& g : report.groups) groups.emplace_back(group(g));
  for (const analysis::GpuRow& row : report.gpus) gpus.emplace_back(gpu_json(row));
  Object root;
  root.emplace_back("window", window_json(report.window));
  root.emplace_back("source", report.source);
  root.emplace_back("by", analysis::group_by_name(report.by));
  root.emplace_back("fleet", std::move(fleet));
  root.emplace_back("groups", std::move(groups));
  root.emplace_back("groups_omitted_count", report.groups_omitted_count);
  root.emplace_back("gpus", std::move(gpus));
  root.emplace_back("error_sources", error_sources_json());
  root.emplace_back("quality", quality_json(report.quality));
  root.emplace_back("assumptions", strings(report.assumptions));
  if (report.mfu) root.emplace_back("mfu", mfu_object(*report.mfu));
  if (report.findings) {
    root.emplace_back("finding_count", report.finding_count);
    root.emplace_back("findings", findings_json(*report.findings));
  }
  return base::json::dump(root) + "\n";
}

}  // namespace flopsight::views
