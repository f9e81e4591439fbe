#pragma once
// What both ways to a fleet share: from raw samples (fleet.cc) and from what a server computed (pushed.cc).

#include <optional>

#include "rollups/fleet.h"

namespace flopsight::rollups {

// Adds to fleet.rests what the instances of each MIG GPU leave over of it.
void add_mig_rests(Fleet& fleet);

}  // namespace flopsight::rollups
