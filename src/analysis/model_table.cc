#include "analysis/model_table.h"

#include <algorithm>
#include <set>

#include "base/csv.h"
#include "base/json.h"
#include "base/json_keys.h"
#include "base/text.h"

namespace flopsight::analysis {
namespace {

using base::Error;
using base::ErrorCode;
using Values = std::map<std::string, std::map<std::string, double, std::less<>>, std::less<>>;

Error bad_value(const std::string& where, std::string_view what, const ModelTable::Kind& kind) {
  return Error{ErrorCode::kInvalid, where + ": \"" + base::printable(what, 40) + "\", expected " + std::string(kind.expected)};
}

// False where another number stands there: nobody could tell which is meant.
bool put(Values& values, const std::string& team, const std::string& model, double number) {
  return values[team].emplace(model, number).first->second == number;
}

Error twice(const std::string& where, const std::string& team, const std::string& model, std::string_view column) {
  return Error{ErrorCode::kInvalid, where + ": another " + std::string(column) + " for the model \"" + base::printable(model, 80) + "\"" +
                                        (team.empty() ? "" : " of the team \"" + base::printable(team, 40) + "\"") + ", expected one"};
}

bool is_within(double value, const ModelTable::Kind& kind) { return value >= kind.value_min && value <= kind.value_max; }

base::Status add_object(const base::json::Object& object, const std::string& team, const ModelTable::Kind& kind, Values& values) {
  for (const auto& [model, value] : object) {
    const std::string where = (team.empty() ? "key \"" : "team \"" + base::printable(team, 40) + "\", key \"") + base::printable(model, 80) + "\"";
    if (team.empty() && model == "teams" && value.as_object() != nullptr) {
      for (const auto& [name, of_team] : *value.as_object()) {
        if (of_team.as_object() == nullptr || name.empty()) {
          return Error{ErrorCode::kInvalid, "team \"" + base::printable(name, 40) + "\": expected an object of models"};
        }
        FLOPSIGHT_RETURN_IF_ERROR(add_object(*of_team.as_object(), name, kind, values));
      }
      continue;
    }
    const double* number = value.as_number();
    if (number == nullptr || !is_within(*number, kind)) return bad_value(where, base::json::dump(value, 0), kind);
    if (!put(values, team, model, *number)) return twice(where, team, model, kind.column);
  }
  return {};
}

}  // namespace

base::Result<ModelTable> ModelTable::parse(std::string_view text, const Kind& kind) {
  ModelTable table;
  if (base::trim(text).starts_with('{')) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value root, base::json::parse(text));
    if (const auto key = base::json::repeated_key(text)) {
      return Error{ErrorCode::kInvalid, "key \"" + base::printable(*key, 80) + "\": stands there twice, expected once"};
    }
    FLOPSIGHT_RETURN_IF_ERROR(add_object(*root.as_object(), "", kind, table.values_));
    return table;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable csv, base::parse_csv(text));
  const int model = csv.column("model"), team = csv.column("team"), number = csv.column(std::string(kind.column));
  if (model < 0 || number < 0) {
    return Error{ErrorCode::kInvalid, "line 1: expected the columns model and " + std::string(kind.column) + ", and perhaps team"};
  }
  for (const base::CsvRow& row : csv.rows) {
    const auto cell = [&](int column) { return std::string(base::trim(row.fields[static_cast<std::size_t>(column)])); };
    const auto value = base::parse_number(cell(number));
    if (!value || !is_within(*value, kind)) return bad_value("line " + std::to_string(row.line), cell(number), kind);
    const std::string whose = team < 0 ? std::string() : cell(team);
    if (!put(table.values_, whose, cell(model), *value)) return twice("line " + std::to_string(row.line), whose, cell(model), kind.column);
  }
  return table;
}

void ModelTable::say_unknown(const catalog::DeviceCatalog& catalog, std::string_view what, std::vector<std::string>& lines) const {
  std::set<std::string> unknown;
  for (const auto& [team, models] : values_) {
    for (const auto& [name, value] : models) {
      const std::string lower = base::to_lower(name);
      // An exporter's name is found in any case; a model of ours in another case is one that of() does not find.
      const auto device = std::find_if(catalog.devices().begin(), catalog.devices().end(),
                                       [&](const catalog::Device& d) { return base::to_lower(d.model) == lower; });
      const bool known = device != catalog.devices().end() ? device->model == name : catalog.find(name) != nullptr;
      if (known || name == "*") continue;
      unknown.insert(device != catalog.devices().end() ? base::printable(name, 80) + ": not in the catalogue, which has " + device->model : catalog.not_found(name));
    }
  }
  for (const std::string& line : unknown) {
    lines.push_back(std::string(what) + ": " + line + "; only a GPU whose exporter prints this very name has that number");
  }
}

std::optional<double> ModelTable::of(std::string_view model, std::string_view model_raw, std::string_view team) const {
  for (const std::string_view whose : {team, std::string_view()}) {
    const auto of_whose = values_.find(whose);
    for (const std::string_view name : {model, model_raw, std::string_view("*")}) {
      if (name.empty() || of_whose == values_.end()) continue;
      if (const auto at = of_whose->second.find(name); at != of_whose->second.end()) return at->second;
    }
    if (team.empty()) break;
  }
  return std::nullopt;
}

}  // namespace flopsight::analysis
