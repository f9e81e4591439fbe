#pragma once
// An audit as JSON: the keys that `flopsight audit --format json` and a job's answer share. Threads: pure.

#include <string>
#include <vector>

#include "analysis/reported.h"
#include "audit/audit.h"
#include "base/json.h"

namespace flopsight::views {

// `assumptions` go before the audit's own.
base::json::Object audit_object(const audit::Audit& audit, const std::vector<std::string>& assumptions);

// An audit of a job as it is kept and answered: the same with when it was made and of which steps.
std::string finding_json(const audit::Audit& audit, units::Instant time, const analysis::Reported& reported);

}  // namespace flopsight::views
