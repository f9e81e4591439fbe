#pragma once
// How far a divided GPU (MIG) is written: what its instances leave over of a slot is written once the slot is closed for all of them.

#include <cstdint>
#include <utility>
#include <vector>

#include "units/time.h"

namespace flopsight::rollups {

struct DividedGpu {
  units::Instant rests_until;  // all of the GPU's time before it is written
  // Slots from there on, ascending, and what instances had of them so far.
  std::vector<std::pair<units::Instant, std::int64_t>> open_microseconds;

  bool operator==(const DividedGpu&) const = default;
};

}  // namespace flopsight::rollups
