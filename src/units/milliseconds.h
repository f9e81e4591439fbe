#pragma once
// A length of time as the whole milliseconds that instants count in, rounded to the nearest.

#include <cstdint>

#include "units/units.h"

namespace flopsight::units {

constexpr std::int64_t milliseconds(Seconds length) {
  const double exact = length.value * 1000.0;
  return static_cast<std::int64_t>(exact + (exact < 0 ? -0.5 : 0.5));
}

}  // namespace flopsight::units
