#pragma once
// The spread of values that a few wild ones do not move: the median absolute deviation from `middle`, times 1.4826, which makes it the standard
// deviation of normal values (Hampel, "The influence curve and its role in robust estimation", JASA 69, 1974). 0 of no values. Threads: pure.

#include <cmath>
#include <utility>
#include <vector>

#include "base/median.h"

namespace flopsight::detect {

inline double robust_deviation(std::vector<double> values, double middle) {
  for (double& value : values) value = std::abs(value - middle);
  return 1.4826 * base::median(std::move(values)).value_or(0);
}

}  // namespace flopsight::detect
