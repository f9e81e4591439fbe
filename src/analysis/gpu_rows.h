#pragma once
// The rows of a report's GPUs without the report: of a large fleet, groups and sums are most of its work, and a map shows none.
// Threads: pure.

#include <vector>

#include "analysis/report.h"

namespace flopsight::analysis {

GpuRow gpu_row(const rollups::GpuTime& gpu, const ReportBuilder::HolderOf& holder_of);

// One for each GPU of the fleet, in its order, as build_report() has them.
std::vector<GpuRow> gpu_rows(const rollups::Fleet& fleet, const jobs::HolderTable& holders);

}  // namespace flopsight::analysis
