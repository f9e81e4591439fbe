#pragma once
// A number by GPU model and, where it says so, by team: what prices and attainable shares are told as. The most special entry
// counts: of the team before that of everybody, of the model before "*", which is any other model.
//
// CSV with the columns model, perhaps team, and the number's; or a JSON object {"model": number} in which the key "teams" holds
// such an object for each team. A model is the catalogue's name or the name that the exporter prints.
//
// Threads: immutable once read.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"

namespace flopsight::analysis {

class ModelTable {
 public:
  struct Kind {
    std::string_view column;    // of the number, in CSV
    double value_min = 0;
    double value_max = 0;
    std::string_view expected;  // for errors: "US dollars per GPU-hour, 0 to 1,000,000"
  };
  // Errors: kInvalid naming the line or key and what was expected, also for two numbers of one model and team, and for a key of JSON that comes twice.
  static base::Result<ModelTable> parse(std::string_view text, const Kind& kind);

  std::optional<double> of(std::string_view model, std::string_view model_raw, std::string_view team) const;
  bool empty() const { return values_.empty(); }
  // A line for each name, but "*", that is no model of the catalogue and no exporter's name of one: likely a mistake, though a GPU that the
  // catalogue does not know may be called so. They begin with `what`: "prices: H100: not in the catalogue, which has H100-SXM5-80GB, …".
  void say_unknown(const catalog::DeviceCatalog& catalog, std::string_view what, std::vector<std::string>& lines) const;
  bool by_team() const { return values_.size() > (values_.contains(std::string_view()) ? 1U : 0U); }

 private:

  std::map<std::string, std::map<std::string, double, std::less<>>, std::less<>> values_;  // by team (empty: any), by model
};

}  // namespace flopsight::analysis
