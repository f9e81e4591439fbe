#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

struct Words {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Words, kExclusionCount> kWords{{
    {"warm_up", "at the start, far from the steps that follow: compilation, allocation or an asynchronous start"},
    {"not_yet_known", "negative: the framework had no figure yet"},
    {"above_peak", "more than the peak allows: the step was timed before its work was done, or the peak is wrong"},
    {"late", "a rank printed the step after it was closed"},
    {"unparsable", "a line of a known shape with a number that cannot be read"},
    {"unknown_unit", "a figure whose unit neither the line nor the format tells"},
}};

}  // namespace

std::string_view exclusion_name(Exclusion exclusion) { return kWords[static_cast<std::size_t>(exclusion)].name; }
std::string_view exclusion_meaning(Exclusion exclusion) {
  return kWords[static_cast<std::size_t>(exclusion)].meaning;
}

const std::string* Reported::setting(std::string_view name) const {
  for (const auto& [key, value] : settings) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace flopsight::training_logs
