#pragma once
// The phases of a job and its goodput, from its rollups and, where it tells its steps, from those.
// Threads: the caller holds the reader.

#include <vector>

#include "analysis/goodput.h"
#include "serve/job_answers.h"

namespace flopsight::app {

struct PhaseAnswer {
  units::Seconds slot;
  analysis::Phases phases;
  analysis::Goodput goodput;
  std::vector<units::Instant> precision_switches;
};
// `slot`: of the rollups that are kept of the whole window. `jobs` may be null: then only rollups speak.
base::Result<PhaseAnswer> answer_phases(store::Reader& reader, JobService* jobs, const FoundJob& found, units::Window window,
                                        units::Seconds slot);

}  // namespace flopsight::app
