#include "detect/family.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/median.h"
#include "detect/regression.h"
#include "detect/robust.h"

namespace flopsight::detect {
namespace {

constexpr double kBelowRatio = 0.85;
constexpr double kDeviationsMin = 3.5;
// Runs of one configuration agree within a percent or two; a family of few runs must not look more certain than that.
constexpr double kDeviationFloor = 0.02;

}  // namespace

std::optional<FamilyShortfall> family_shortfall(double ofu_ratio, std::span<const double> others) {
  if (!(ofu_ratio > 0)) return std::nullopt;
  std::vector<double> logs;
  for (const double other : others) {
    if (other >= kLevelMin) logs.push_back(std::log(other));
  }
  if (logs.size() < kFamilyRunsMin) return std::nullopt;
  const double middle = *base::median(logs);
  const double deviation = std::max(kDeviationFloor, robust_deviation(std::move(logs), middle));
  const double below = middle - std::log(ofu_ratio);
  FamilyShortfall out;
  out.family_ofu_ratio = std::exp(middle);
  out.size_ratio = std::exp(-below);
  out.deviation_ratio = below / deviation;
  if (out.size_ratio >= kBelowRatio || out.deviation_ratio < kDeviationsMin) return std::nullopt;
  return out;
}

}  // namespace flopsight::detect
