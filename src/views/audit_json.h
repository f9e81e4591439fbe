#pragma once
// An audit as JSON: the keys that `flopsight audit --format json` and a job's answer share. Threads: pure.

#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/json.h"

namespace flopsight::views {

// `assumptions` go before the audit's own.
base::json::Object audit_object(const audit::Audit& audit, const std::vector<std::string>& assumptions);

}  // namespace flopsight::views
