#include "views/error_table_internal.h"

#include <vector>

#include <fmt/format.h>

#include "views/text_table.h"

namespace flopsight::views {
namespace {

using text_table::Column;

std::string part_cell(const std::optional<model::ErrorBudget>& error, model::ErrorSource source) {
  if (!error) return std::string(text_table::kUnknownCell);
  const model::ErrorPart& part = error->part(source);
  if (part.basis == model::ErrorBasis::kUnknown) return std::string(text_table::kUnknownCell);
  const double low = part.low_ratio * 100, high = part.high_ratio * 100;
  // Below a thousandth of a point nothing is to be seen.
  std::string cell = low > -0.001 && high < 0.001 ? "0" : fmt::format("{:+.2f} {:+.2f}", low, high);
  return part.sum != model::ErrorSum::kNot ? cell : "(" + cell + ")";
}

void add_row(std::vector<Column>& columns, const std::string& name, const std::optional<model::ErrorBudget>& error) {
  columns[0].cells.push_back(name);
  columns[1].cells.push_back(error ? fmt::format("{:.2f}-{:.2f} %", error->band.low_ratio * 100, error->band.high_ratio * 100)
                                   : std::string(text_table::kUnknownCell));
  for (std::size_t i = 0; i < model::kErrorSources; ++i) {
    columns[2 + i].cells.push_back(part_cell(error, static_cast<model::ErrorSource>(i)));
  }
}

}  // namespace

std::string group_name(const analysis::Group& group, analysis::GroupBy by) {
  std::string name;
  for (const auto& [key, value] : group.key) {
    if (!value || (by == analysis::GroupBy::kJob && key != "job" && key != "namespace") ||
        (by == analysis::GroupBy::kGpu && (key == "host" || key == "index"))) {
      continue;
    }
    name += (name.empty() ? "" : ", ") + *value;
  }
  if (!name.empty()) return text_table::short_name(name);
  return by == analysis::GroupBy::kModel ? "(unknown model)"
                                         : fmt::format("(no {})", analysis::group_by_name(by));
}

std::string error_text(const analysis::Report& report) {
  std::vector<Column> columns = {{std::string(analysis::group_by_name(report.by)), {}, true}, {"90 % band", {}}};
  for (std::size_t i = 0; i < model::kErrorSources; ++i) {
    columns.push_back({std::string(model::error_source_name(static_cast<model::ErrorSource>(i))), {}});
  }
  for (const analysis::Group& group : report.groups) add_row(columns, group_name(group, report.by), group.summary.error);
  const std::size_t fleet_row = columns[0].cells.size();
  add_row(columns, "fleet", report.fleet.error);
  std::string out = "Error of OFU, in points: how far the truth of the allocated time may be from it\n" + text_table::render(columns, fleet_row);
  for (std::size_t i = 0; i < model::kErrorSources; ++i) {
    const auto source = static_cast<model::ErrorSource>(i);
    out += fmt::format("  {}: {}\n", model::error_source_name(source), model::error_source_meaning(source));
  }
  return out + "  in brackets: shown, not in the band; a dash: not known\n\n";
}

}  // namespace flopsight::views
