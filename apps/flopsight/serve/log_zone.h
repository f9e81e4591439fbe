#pragma once
// Whether the zone that a log is read in can be right (training_logs/zone_check.h), asked with an answer about one job: the entry
// log_zone_doubtful says which log, which offset fits better, and how well. A log whose steps have no times at all, for lack of a
// zone, is said as reported_without_times.
//
// Looks at the last three days of the job at most. Threads: the caller holds the reader.

#include <span>

#include "analysis/job_answer.h"
#include "samples/quality.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

// `jobs` of the store and their holders are what the answer is of.
base::Status check_log_zones(store::Reader& reader, JobService& service, std::span<const store::JobId> jobs,
                             const analysis::JobAnswer& answer, samples::QualityLog& quality);

}  // namespace flopsight::app
