#pragma once
// The value in the middle of several, in whatever unit they have. Threads: pure.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace flopsight::base {

// Halfway between the two in the middle of an even number; nothing of nothing. No value is a NaN.
inline std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double lower = *std::max_element(values.begin(), middle);
  return lower + (*middle - lower) / 2;
}

}  // namespace flopsight::base
