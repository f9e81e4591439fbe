#include <algorithm>
#include <map>

#include "base/text.h"
#include "catalog/name_pattern.h"
#include "rules/rules.h"

namespace flopsight::rules {
namespace {

using base::Error;
using base::ErrorCode;

ModelFacts facts_of(const catalog::Device& device, const std::vector<std::string>& names) {
  return {device.model,          catalog::name_pattern(device, names), device.tensor_peak_clock,
          device.nvml_max_sm_clock, device.board_power,                device.mig_slices()};
}

ModelFacts* find(std::vector<ModelFacts>& models, std::string_view model) {
  for (ModelFacts& one : models) {
    if (one.model == model) return &one;
  }
  return nullptr;
}

}  // namespace

base::Result<std::vector<ModelFacts>> model_facts(const catalog::DeviceCatalog& devices, std::string_view user_csv,
                                                  const std::vector<std::string>& only,
                                                  const std::vector<std::pair<std::string, units::Hertz>>& clocks) {
  FLOPSIGHT_ASSIGN_OR_RETURN(auto names, catalog::written_names(user_csv));
  std::vector<ModelFacts> out;
  for (const catalog::Device& device : devices.devices()) {
    // Text that would break the line that it is printed on.
    if (base::printable(device.model, 200) != device.model) {
      return Error{ErrorCode::kInvalid, base::printable(device.model, 80) + ": expected a model name of up to 200 bytes without control characters"};
    }
    if (ModelFacts facts = facts_of(device, names[device.model]); !facts.pattern.empty()) out.push_back(std::move(facts));
  }
  for (const auto& [name, clock] : clocks) {
    const catalog::Device* known = devices.find(name);
    if (ModelFacts* facts = known == nullptr ? nullptr : find(out, known->model)) {
      facts->reference_clock = clock;
      continue;
    }
    catalog::Device device;
    device.model = name;
    ModelFacts added = facts_of(device, {name});
    added.reference_clock = clock;
    if (added.pattern.empty() || base::printable(name, 200) != name) {
      return Error{ErrorCode::kInvalid, base::printable(name, 80) + ": expected the name of a GPU model"};
    }
    if (ModelFacts* twice = find(out, name)) {
      *twice = std::move(added);
    } else {
      out.push_back(std::move(added));
    }
  }
  if (!only.empty()) {
    std::vector<std::string> wanted;
    for (const std::string& name : only) {
      const catalog::Device* known = devices.find(name);
      if (known == nullptr && find(out, name) == nullptr) return Error{ErrorCode::kInvalid, devices.not_found(name)};
      wanted.push_back(known == nullptr ? name : known->model);
    }
    std::erase_if(out, [&](const ModelFacts& one) { return std::find(wanted.begin(), wanted.end(), one.model) == wanted.end(); });
  }
  std::sort(out.begin(), out.end(), [](const ModelFacts& a, const ModelFacts& b) { return a.model < b.model; });
  return out;
}

}  // namespace flopsight::rules
