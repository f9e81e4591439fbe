#include "views/audit_json.h"

namespace flopsight::views {
namespace {

namespace json = base::json;

json::Array texts(const std::vector<std::string>& lines) { return {lines.begin(), lines.end()}; }

json::Array hypotheses_array(const audit::Audit& audit) {
  json::Array list;
  for (const audit::Ranked& ranked : audit.hypotheses) {
    json::Object out{
        {"id", ranked.hypothesis.id},
        {"ids", texts(ranked.hypothesis.ids)},
        {"predicted_ratio", ranked.hypothesis.ratio},
        {"observed_ratio", ranked.observed_ratio},
        {"sigmas", ranked.distance_ratio},
        {"conventions", json::Array(ranked.hypothesis.conventions.begin(), ranked.hypothesis.conventions.end())},
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
                                   {"matches", row.matches ? json::Value(*row.matches) : json::Value()},
                                   {"one_document", row.one_document}});
  }
  return list;
}

}  // namespace

json::Object audit_object(const audit::Audit& audit, const std::vector<std::string>& assumptions) {
  std::vector<std::string> assumed = assumptions;
  assumed.insert(assumed.end(), audit.assumptions.begin(), audit.assumptions.end());
  return {
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
      {"assumptions", texts(assumed)},
  };
}

std::string finding_json(const audit::Audit& audit, units::Instant time, const analysis::Reported& reported) {
  const auto text = [](const std::optional<units::Instant>& t) { return t ? json::Value(units::to_rfc3339(*t)) : json::Value(); };
  json::Object out = audit_object(audit, {});
  const json::Object about{{"time", units::to_rfc3339(time)}, {"first", text(reported.first)}, {"last", text(reported.last)}};
  out.insert(out.begin(), about.begin(), about.end());
  return json::dump(out, 0);
}

}  // namespace flopsight::views
