#include "analysis/prices.h"

namespace flopsight::analysis {

base::Result<Prices> Prices::parse(std::string_view text) {
  Prices prices;
  FLOPSIGHT_ASSIGN_OR_RETURN(prices.table_,
                             ModelTable::parse(text, {"usd_per_gpu_hour", 0, 1e6, "US dollars per GPU-hour, 0 to 1,000,000"}));
  return prices;
}

std::optional<units::UsdPerGpuHour> Prices::of(std::string_view model, std::string_view model_raw, std::string_view team) const {
  const auto usd = table_.of(model, model_raw, team);
  return usd ? std::optional(units::UsdPerGpuHour(*usd)) : std::nullopt;
}

}  // namespace flopsight::analysis
