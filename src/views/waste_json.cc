#include "views/summary_internal.h"
#include "views/waste_views.h"

namespace flopsight::views {
namespace {

using analysis::WastePart;
using base::json::Array;
using base::json::Object;
using base::json::Value;

Object amounts_json(const analysis::WasteAmounts& amounts) {
  Object by_cause;
  for (std::size_t i = 0; i < analysis::kWastePartCount; ++i) {
    const auto part = static_cast<WastePart>(i);
    if (part != WastePart::kDelivered && part != WastePart::kUnmeasured) by_cause.emplace_back(analysis::waste_part_name(part), amounts.of(part));
  }
  return {{"allocated", amounts.allocated()},
          {"delivered", amounts.of(WastePart::kDelivered)},
          {"lost", amounts.lost()},
          {"lost_by_cause", std::move(by_cause)},
          {"unmeasured", amounts.of(WastePart::kUnmeasured)}};
}

Value attainable_json(const analysis::WasteRow& row) {
  if (!row.attainable) return {};
  return Object{{"gpu_hours_lost", row.attainable->gpu_hours_lost},
                {"usd_lost", row.attainable->usd_lost},
                {"gpu_hours_measured", row.attainable->gpu_hours_measured},
                {"reference", row.attainable->reference}};
}

Object row_json(const analysis::WasteRow& row) {
  Object key;
  for (const auto& [name, value] : row.key) key.emplace_back(name, value);
  Object out;
  out.emplace_back("key", row.key.empty() ? Value() : Value(std::move(key)));
  if (!row.user.empty()) out.emplace_back("user", row.user);
  out.emplace_back("job_count", row.job_count);
  out.emplace_back("ofu_ratio", row.ofu_ratio);
  out.emplace_back("gpu_hours", amounts_json(row.gpu_hours));
  out.emplace_back("usd", row.usd ? Value(amounts_json(*row.usd)) : Value());
  out.emplace_back("usd_absent_reason", text_or_null(row.usd_absent_reason));
  out.emplace_back("attainable", attainable_json(row));
  out.emplace_back("attainable_absent_reason", text_or_null(row.attainable_absent_reason));
  return out;
}

}  // namespace

std::string waste_json(const analysis::WasteAccount& account, const AnswerHead& head) {
  Object out;
  out.emplace_back("window", window_json(account.window));
  out.emplace_back("simulated", head.simulated || account.simulated);
  out.emplace_back("source", account.source);
  out.emplace_back("by", analysis::waste_by_name(account.by));
  out.emplace_back("total", row_json(account.total));
  Array rows;
  for (const analysis::WasteRow& row : account.rows) rows.emplace_back(row_json(row));
  out.emplace_back("rows", std::move(rows));
  out.emplace_back("rows_omitted_count", account.rows_omitted_count);
  out.emplace_back("quality", quality_json(head.quality));
  out.emplace_back("assumptions", strings(account.assumptions));
  return base::json::dump(out) + "\n";
}

}  // namespace flopsight::views
