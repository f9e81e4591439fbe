#include "mfuaudit/command_audit.h"

#include <ostream>

#include "mfuaudit/audit_case.h"
#include "base/text.h"
#include "error_line.h"

namespace flopsight::app {

int run_audit(const AuditArguments& arguments, const Env& env) {
  AuditCase of;
  if (const base::Status gathered = gather_audit(arguments, env, of); !gathered.ok()) return fail(env, "audit", gathered.error());
  const audit::Audit audit = audit::audit(of.run, of.claim, of.measured, of.catalog);
  env.out << (arguments.json ? audit_json(of, audit) : audit_table(of, audit));
  const bool wrong = audit.verdict != audit::Verdict::kConsistent && audit.verdict != audit::Verdict::kUndecided;
  return wrong ? kExitFailure : kExitDone;
}

}  // namespace flopsight::app
