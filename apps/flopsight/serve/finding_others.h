#pragma once
// Findings that no detector of minutes makes: what an audit found of a job, and what jobs lost in a day in dollars against what is attainable.
// Their first and last minute are the caller's to say. Threads: the caller holds the store.

#include <vector>

#include "base/result.h"
#include "findings/book.h"
#include "jobs/audit_finding.h"
#include "serve/answer.h"
#include "store/store.h"

namespace flopsight::app {

// Of an audit that found a discrepancy; whether its job is of a fleet that does not exist.
findings::Sighting sighting_of(const jobs::AuditFinding& audit, bool is_simulated);

// Jobs that lost at least so many dollars in the day before `end`, against the reference of the waste account (docs/waste.md). Jobs without a
// reference or a price are none.
base::Result<std::vector<findings::Sighting>> wasted_of(store::Reader& store, const AnswerSettings& settings, JobService& jobs, units::Instant end,
                                                        double usd_per_day);

}  // namespace flopsight::app
