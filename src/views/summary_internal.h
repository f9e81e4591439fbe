#pragma once
// Pieces of JSON that reports and the service's answers share.

#include "analysis/report.h"
#include "base/json.h"

namespace flopsight::views {

base::json::Value text_or_null(const std::string& text);
base::json::Array strings(const std::vector<std::string>& list);
void add_summary(base::json::Object& out, const analysis::Summary& summary);
// OFU_adj and what it is from, where tiles were told.
void add_tile(base::json::Object& out, const analysis::Summary& summary);
// "error_band" and "error_parts"; nulls where there is no band.
void add_error(base::json::Object& out, const std::optional<model::ErrorBudget>& error);
// What each part is and where its figure is from, by its name.
base::json::Object error_sources_json();
base::json::Object waterfall_json(const analysis::Waterfall& waterfall);
base::json::Object gpu_json(const analysis::GpuRow& row);
base::json::Array quality_json(const std::vector<samples::QualityEntry>& entries);
base::json::Object window_json(const std::optional<units::Window>& window);

base::json::Array findings_json(const std::vector<analysis::FindingMention>& findings);
base::json::Object mfu_object(const analysis::MfuComparison& comparison);

}  // namespace flopsight::views
