#include "views/audit_json.h"

#include "mfuaudit/audit_case.h"

namespace flopsight::app {
namespace {

namespace json = base::json;

json::Object reported_object(const AuditCase& of) {
  return {
      {"mfu_ratio", of.claim.mfu_ratio},
      {"flops_per_second_per_gpu", of.claim.flops_per_second_per_gpu},
      {"tokens_per_second_per_gpu", of.claim.tokens_per_second_per_gpu},
      {"step_seconds", of.step_seconds},
      {"steps_used", of.steps_used},
      {"steps_excluded", of.steps_excluded},
      {"peak_flops_per_second_implied", of.claim.peak_flops_per_second},
  };
}

}  // namespace

std::string audit_json(const AuditCase& of, const audit::Audit& audit) {
  std::vector<std::string> assumptions = of.run.model.assumptions;
  assumptions.insert(assumptions.end(), of.assumptions.begin(), of.assumptions.end());
  json::Object out = views::audit_object(audit, assumptions);
  out.insert(out.begin(), {"reported", reported_object(of)});
  return json::dump(out) + "\n";
}

}  // namespace flopsight::app
