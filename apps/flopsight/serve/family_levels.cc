#include "serve/family_levels.h"

#include <algorithm>

#include "base/json.h"

namespace flopsight::app {

using base::json::Array;
using base::json::Value;

void FamilyLevels::keep(const std::string& family, const std::string& job, double ofu_ratio) {
  if (families_.size() >= kFamiliesMax && !families_.contains(family)) return;
  std::deque<Level>& levels = families_[family];
  const auto own = std::find_if(levels.begin(), levels.end(), [&](const Level& level) { return level.job == job; });
  if (own != levels.end()) {
    own->ofu_ratio = ofu_ratio;
    return;
  }
  levels.push_back({job, ofu_ratio});
  if (levels.size() > kRunsKept) levels.pop_front();
}

std::vector<double> FamilyLevels::others(const std::string& family, const std::string& job) const {
  std::vector<double> out;
  const auto levels = families_.find(family);
  if (levels == families_.end()) return out;
  for (const Level& level : levels->second) {
    if (level.job != job) out.push_back(level.ofu_ratio);
  }
  return out;
}

std::string FamilyLevels::text() const {
  Array out;
  for (const auto& [family, levels] : families_) {
    if (out.size() + levels.size() > kWrittenMax) break;
    for (const Level& level : levels) out.emplace_back(Array{family, level.job, level.ofu_ratio});
  }
  return base::json::dump(out, 0);
}

void FamilyLevels::restore(std::string_view text) {
  const auto parsed = base::json::parse(text);
  const Array* all = parsed.ok() ? parsed->as_array() : nullptr;
  if (all == nullptr) return;
  for (const Value& one : *all) {
    const Array* level = one.as_array();
    if (level == nullptr || level->size() != 3) continue;
    const std::string* family = (*level)[0].as_string();
    const std::string* job = (*level)[1].as_string();
    const double* ofu_ratio = (*level)[2].as_number();
    if (family != nullptr && job != nullptr && ofu_ratio != nullptr && *ofu_ratio > 0) keep(*family, *job, *ofu_ratio);
  }
}

}  // namespace flopsight::app
