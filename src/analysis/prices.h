#pragma once
// What a GPU-hour costs, as the user says it: exactly as configured, never rescaled, and nothing where nothing
// is configured. A made-up price is worse than none.
//
// A table of model_table.h with the column usd_per_gpu_hour: by model, and by team where a team pays another price.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model_table.h"
#include "base/result.h"
#include "units/units.h"

namespace flopsight::analysis {

class Prices {
 public:
  // Errors: kInvalid naming the line or key and what was expected (a number, 0 to 1,000,000).
  static base::Result<Prices> parse(std::string_view text);

  std::optional<units::UsdPerGpuHour> of(std::string_view model, std::string_view model_raw, std::string_view team = {}) const;
  bool empty() const { return table_.empty(); }
  // As ModelTable's, of prices.
  void say_unknown(const catalog::DeviceCatalog& catalog, std::vector<std::string>& lines) const { table_.say_unknown(catalog, "prices", lines); }
  // Some team pays another price.
  bool by_team() const { return table_.by_team(); }

 private:
  ModelTable table_;
};

}  // namespace flopsight::analysis
