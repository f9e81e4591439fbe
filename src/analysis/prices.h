#pragma once
// What a GPU-hour costs, as the user says it: exactly as configured, never rescaled, and nothing where nothing
// is configured. A made-up price is worse than none.
//
// CSV with the columns model and usd_per_gpu_hour, or a JSON object {"model": price}. A model is the
// catalogue's name or the name that the exporter prints; "*" is any other model.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "units/units.h"

namespace flopsight::analysis {

class Prices {
 public:
  // Errors: kInvalid naming the line or key and what was expected (a number, 0 to 1,000,000).
  static base::Result<Prices> parse(std::string_view text);

  std::optional<units::UsdPerGpuHour> of(std::string_view model, std::string_view model_raw) const;
  bool empty() const { return by_model_.empty(); }

 private:
  std::map<std::string, double, std::less<>> by_model_;
};

}  // namespace flopsight::analysis
