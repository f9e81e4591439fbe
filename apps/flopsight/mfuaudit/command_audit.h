#pragma once
// `flopsight audit`: is a reported MFU right, and if not, which mistake explains it.
// Exit codes: 0 when the claim is consistent or cannot be decided; 1 when it is wrong (over_reported, under_reported, wrong_peak); 2 when a
// file cannot be read or an option does not fit.

#include "mfuaudit/audit_options.h"
#include "env.h"

namespace flopsight::app {

int run_audit(const AuditArguments& arguments, const Env& env);

}  // namespace flopsight::app
