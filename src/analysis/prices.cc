#include "analysis/prices.h"

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"

namespace flopsight::analysis {
namespace {

using base::Error;
using base::ErrorCode;

bool is_price(double usd) { return usd >= 0 && usd <= 1e6; }

Error bad_price(std::string_view where, std::string_view what) {
  return Error{ErrorCode::kInvalid, std::string(where) + ": \"" + base::printable(what, 40) +
                                        "\", expected US dollars per GPU-hour, 0 to 1,000,000"};
}

}  // namespace

base::Result<Prices> Prices::parse(std::string_view text) {
  Prices prices;
  if (base::trim(text).starts_with('{')) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value root, base::json::parse(text));
    for (const auto& [model, price] : *root.as_object()) {
      const double* usd = price.as_number();
      if (usd == nullptr || !is_price(*usd)) return bad_price("key \"" + model + "\"", base::json::dump(price, 0));
      prices.by_model_[model] = *usd;
    }
    return prices;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(text));
  const int model = table.column("model"), usd = table.column("usd_per_gpu_hour");
  if (model < 0 || usd < 0) {
    return Error{ErrorCode::kInvalid, "line 1: expected the columns model and usd_per_gpu_hour"};
  }
  for (const base::CsvRow& row : table.rows) {
    const std::string& cell = row.fields[static_cast<std::size_t>(usd)];
    const auto price = base::parse_number(base::trim(cell));
    if (!price || !is_price(*price)) return bad_price("line " + std::to_string(row.line), cell);
    prices.by_model_[std::string(base::trim(row.fields[static_cast<std::size_t>(model)]))] = *price;
  }
  return prices;
}

std::optional<units::UsdPerGpuHour> Prices::of(std::string_view model,
                                               std::string_view model_raw) const {
  for (const std::string_view name : {model, model_raw, std::string_view("*")}) {
    if (name.empty()) continue;
    if (const auto at = by_model_.find(name); at != by_model_.end()) {
      return units::UsdPerGpuHour(at->second);
    }
  }
  return std::nullopt;
}

}  // namespace flopsight::analysis
