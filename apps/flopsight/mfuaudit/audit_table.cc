#include "mfuaudit/audit_case.h"
#include "base/text.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

namespace text_table = views::text_table;
using text_table::Column;
using text_table::number;

void line(std::string& out, std::string_view name, const std::string& value) {
  out += std::string(name) + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + value + "\n";
}

void line(std::string& out, std::string_view name, const std::optional<double>& value, const char* format, double scale) {
  if (value) line(out, name, number(*value * scale, format));
}

std::string figures(const AuditCase& of, const audit::Audit& audit) {
  std::string out;
  line(out, "verdict", std::string(audit::verdict_name(audit.verdict)));
  if (!audit.summary.empty()) line(out, "", audit.summary);
  out += "\n";
  line(out, "reported MFU", of.claim.mfu_ratio, "%.2f %%", 100);
  line(out, "reported rate", of.claim.flops_per_second_per_gpu, "%.1f TFLOP/s of a GPU", 1e-12);
  line(out, "token rate", of.claim.tokens_per_second_per_gpu, "%.1f tokens/s of a GPU", 1);
  if (of.steps_used > 0) line(out, "steps", std::to_string(of.steps_used) + " used, " + std::to_string(of.steps_excluded) + " left out");
  line(out, "peak it divides by", of.claim.peak_flops_per_second, "%.1f TFLOP/s", 1e-12);
  line(out, "dense peak", audit.own_peak_flops_per_second, "%.1f TFLOP/s", 1e-12);
  line(out, "FLOPs of a token", number(audit.flops_per_token / 1e9, "%.2f G counted here") +
                                     (audit.flops_per_token_claimed ? number(*audit.flops_per_token_claimed / 1e9, ", %.2f G charged by the framework") : ""));
  line(out, "OFU", audit.ofu_ratio, "%.2f %%", 100);
  line(out, "OFU/MFU expected", audit.expected_ofu_over_mfu_ratio, "%.3f", 1);
  line(out, "MFU/OFU x expected", audit.adjusted_ratio, "%.3f (1 is right)", 1);
  if (audit.mfu_recomputed_ratio) {
    line(out, "MFU recomputed", number(*audit.mfu_recomputed_ratio * 100, "%.2f %%") + number(*audit.band_low_ratio * 100, " (%.1f") + number(*audit.band_high_ratio * 100, " to %.1f %%), from ") +
                                    std::string(audit.recomputed_from));
  }
  return out;
}

std::string hypotheses(const audit::Audit& audit) {
  if (audit.hypotheses.empty()) return {};
  std::vector<Column> columns = {{"hypothesis", {}, true}, {"predicts", {}, false}, {"observed", {}, false}, {"sigmas", {}, false}, {"MFU then", {}, false}, {"from", {}, true}};
  std::string why = "\n";
  for (const audit::Ranked& ranked : audit.hypotheses) {
    columns[0].cells.push_back(ranked.hypothesis.id);
    columns[1].cells.push_back(number(ranked.hypothesis.ratio, "%.3f"));
    columns[2].cells.push_back(number(ranked.observed_ratio, "%.3f"));
    columns[3].cells.push_back(number(ranked.distance_ratio, "%.2f"));
    columns[4].cells.push_back(ranked.corrected_mfu_ratio ? number(*ranked.corrected_mfu_ratio * 100, "%.2f %%") : std::string(text_table::kUnknownCell));
    columns[5].cells.emplace_back(ranked.evidence);
    why += ranked.hypothesis.id + ": " + ranked.hypothesis.explanation + (ranked.hypothesis.source.empty() ? "" : " [" + ranked.hypothesis.source + "]") + "\n";
  }
  return "\n" + text_table::render(columns, columns[0].cells.size()) + why;
}

std::string conventions(const audit::Audit& audit) {
  std::vector<Column> columns = {{"convention", {}, true}, {"GFLOPs of a token", {}, false}, {"of audit", {}, false}, {"", {}, true}};
  for (const audit::ConventionRow& row : audit.conventions) {
    columns[0].cells.emplace_back(row.name);
    columns[1].cells.push_back(row.flops_per_token_train ? number(*row.flops_per_token_train / 1e9, "%.3f") : std::string(text_table::kUnknownCell));
    columns[2].cells.push_back(row.ratio ? number(*row.ratio, "%.3f") : std::string(text_table::kUnknownCell));
    std::string mark = row.matches == true ? "as reported" : "";
    if (row.one_document) mark += std::string(mark.empty() ? "" : ", ") + "documents as one";
    columns[3].cells.push_back(mark);
  }
  return "\n" + text_table::render(columns, columns[0].cells.size());
}

void lines(std::string& out, std::string_view before, const std::vector<std::string>& list) {
  for (const std::string& item : list) out += std::string(before) + ": " + base::printable(item, 600) + "\n";
}

}  // namespace

std::string audit_table(const AuditCase& of, const audit::Audit& audit) {
  std::string out = figures(of, audit) + hypotheses(audit) + conventions(audit) + "\n";
  lines(out, "note", audit.notes);
  lines(out, "would decide", audit.further_evidence);
  lines(out, "missing", audit.missing);
  lines(out, "assumed", of.run.model.assumptions);
  lines(out, "assumed", of.assumptions);
  lines(out, "assumed", audit.assumptions);
  return out;
}

}  // namespace flopsight::app
