#pragma once
// Files of jobs, told apart by what is in them: a scheduler's output, a list of jobs as JSON, a jobs file as CSV.
// Errors: of the first file that is none of these, naming it. Threads: pure.

#include <string>
#include <string_view>

#include "base/result.h"
#include "schedulers/slurm.h"

namespace flopsight::app {

base::Result<schedulers::Parsed> read_jobs(const std::string& name, std::string_view text,
                                           const schedulers::SlurmOptions& options);

}  // namespace flopsight::app
