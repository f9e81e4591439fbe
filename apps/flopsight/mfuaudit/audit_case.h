#pragma once
// Everything that an audit is about, gathered from options, configuration, logs and store. An option goes before what a log prints; where
// both say something and differ, `assumptions` says which was taken.

#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "mfuaudit/audit_options.h"
#include "env.h"

namespace flopsight::app {

struct AuditCase {
  catalog::DeviceCatalog catalog;  // run.device points into it: do not move
  audit::Run run;
  audit::Claim claim;
  std::optional<units::Window> log_window;  // of the steps of the logs; absent where they have no times
  audit::Measured measured;
  std::optional<double> step_seconds;
  std::uint64_t steps_used = 0;
  std::uint64_t steps_excluded = 0;
  std::string gpu;  // as it was given
  std::vector<std::string> assumptions;
};

// Errors: of a file, the store or the job, and options that do not fit the model.
base::Status gather_audit(const AuditArguments& arguments, const Env& env, AuditCase& out);

std::string audit_json(const AuditCase& of, const audit::Audit& audit);
std::string audit_table(const AuditCase& of, const audit::Audit& audit);

}  // namespace flopsight::app
