#pragma once
// Jobs as a table for people, and as CSV: what they held, their OFU, and beside it the MFU that they report of
// themselves. Threads: pure.

#include <string>
#include <vector>

#include "analysis/job_answer.h"

namespace flopsight::views {

std::string jobs_table(const std::vector<analysis::JobAnswer>& jobs);
// A line for each, by the keys of the JSON; names are no formulas of spreadsheets.
std::string jobs_csv(const std::vector<analysis::JobAnswer>& jobs, bool simulated);
// One job: its runs, its time, what it reports.
std::string job_text(const analysis::JobAnswer& job);
// Jobs of a scheduler alone, as they were read.
std::string told_nodes_table(const std::vector<schedulers::Node>& nodes);
std::string told_jobs_table(const std::vector<schedulers::Job>& jobs);

}  // namespace flopsight::views
