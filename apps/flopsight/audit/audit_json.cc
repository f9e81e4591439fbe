#include "audit/audit_case.h"
#include "base/json.h"

namespace flopsight::app {
namespace {

namespace json = base::json;

json::Array texts(const std::vector<std::string>& lines) { return {lines.begin(), lines.end()}; }

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

json::Array hypotheses_array(const audit::Audit& audit) {
  json::Array list;
  for (const audit::Ranked& ranked : audit.hypotheses) {
    json::Object out{
        {"id", ranked.hypothesis.id},
        {"ids", texts(ranked.hypothesis.ids)},
        {"predicted_ratio", ranked.hypothesis.ratio},
        {"observed_ratio", ranked.observed_ratio},
        {"sigmas", ranked.distance_ratio},
        {"evidence", ranked.evidence},
        {"explanation", ranked.hypothesis.explanation},
        {"seen_in", ranked.hypothesis.source.empty() ? json::Value() : json::Value(ranked.hypothesis.source)},
        {"corrected_mfu_ratio", ranked.corrected_mfu_ratio},
    };
    list.emplace_back(std::move(out));
  }
  return list;
}

json::Array conventions_array(const audit::Audit& audit) {
  json::Array list;
  for (const audit::ConventionRow& row : audit.conventions) {
    list.emplace_back(json::Object{{"name", row.name},
                                   {"flops_per_token_train", row.flops_per_token_train},
                                   {"ratio_to_audit", row.ratio},
                                   {"matches", row.matches ? json::Value(*row.matches) : json::Value()}});
  }
  return list;
}

}  // namespace

std::string audit_json(const AuditCase& of, const audit::Audit& audit) {
  std::vector<std::string> assumptions = of.run.model.assumptions;
  assumptions.insert(assumptions.end(), of.assumptions.begin(), of.assumptions.end());
  assumptions.insert(assumptions.end(), audit.assumptions.begin(), audit.assumptions.end());
  const json::Object out{
      {"reported", reported_object(of)},
      {"recomputed", json::Object{{"mfu_ratio", audit.mfu_recomputed_ratio},
                                  {"convention", "audit_causal"},
                                  {"band_low", audit.band_low_ratio},
                                  {"band_high", audit.band_high_ratio},
                                  {"from", audit.recomputed_from.empty() ? json::Value() : json::Value(audit.recomputed_from)},
                                  {"flops_per_token_train", audit.flops_per_token}}},
      {"ofu_ratio", audit.ofu_ratio},
      {"verdict", audit::verdict_name(audit.verdict)},
      {"summary", audit.summary},
      {"expected_ofu_over_mfu_ratio", audit.expected_ofu_over_mfu_ratio},
      {"reported_over_ofu_ratio", audit.reported_over_ofu_ratio},
      {"adjusted_ratio", audit.adjusted_ratio},
      {"flops_per_token_claimed", audit.flops_per_token_claimed},
      {"flops_ratio", audit.flops_ratio},
      {"peak_ratio", audit.peak_ratio},
      {"peak_flops_per_second_dense", audit.own_peak_flops_per_second},
      {"peak_flops_per_second_reference", audit.reference_peak_flops_per_second},
      {"hypotheses", hypotheses_array(audit)},
      {"conventions", conventions_array(audit)},
      {"evidence", texts(audit.evidence_used)},
      {"missing", texts(audit.missing)},
      {"further_evidence", texts(audit.further_evidence)},
      {"notes", texts(audit.notes)},
      {"sigma", json::Object{{"flops_per_token", audit::kLogSigma}, {"ofu", audit::kOfuSigma}, {"kept_sigmas", audit::kKeptSigmas}}},
      {"assumptions", texts(assumptions)},
  };
  return json::dump(out) + "\n";
}

}  // namespace flopsight::app
