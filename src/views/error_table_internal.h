#pragma once
// Pieces of the report's table that stand in a file of their own.

#include <string>

#include "analysis/report.h"

namespace flopsight::views {

std::string group_name(const analysis::Group& group, analysis::GroupBy by);

// The parts of every group's error band, in points, and what each is.
std::string error_text(const analysis::Report& report);

}  // namespace flopsight::views
