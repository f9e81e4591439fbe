#pragma once
// A report as JSON (docs/interfaces of `flopsight report`), as CSV, and as a table for people. All three show the same
// report and compute nothing. Percent exists only in the table.
// Text from outside is escaped for each form; a table never carries control characters to a terminal.
// Threads: pure.

#include <string>

#include "analysis/report.h"

namespace flopsight::views {

std::string report_json(const analysis::Report& report);

// One line a group: the keys, then the summary's fields under their JSON names. Unknown is an empty cell.
std::string report_csv(const analysis::Report& report);

struct TableOptions {
  bool errors = false;  // also the parts of each error band
};
std::string report_table(const analysis::Report& report, const TableOptions& options = {});

}  // namespace flopsight::views
