#pragma once
// Two tellings of one job as one. Schedulers say different things in different places and at
// different times: `scontrol` knows which GPUs, `sacct` when it ended, `squeue` that it runs.
//
// What a telling lacks, the other fills in; where both say something the later one (`seen`) wins,
// except that an end that is known stays (a listing may be older than the accounting), and that
// hosts with GPU indices are not replaced by the same hosts without. Threads: pure.

#include "schedulers/job.h"

namespace flopsight::schedulers {

// Both have the same cluster, id and start. True when `known` changed.
bool merge_into(Job& known, const Job& seen);

}  // namespace flopsight::schedulers
