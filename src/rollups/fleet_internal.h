#pragma once
// What both ways to a fleet share: from raw samples (fleet.cc) and from what a server computed (pushed.cc).

#include <optional>

#include "rollups/fleet.h"

namespace flopsight::rollups {

// Looks the model up and sets `gpu.device` and `gpu.reference`; notes an unknown model or MIG profile. The result is
// the share of a whole GPU, 0 when it cannot be told.
double resolve_device(GpuTime& gpu, const FleetOptions& options,
                      std::optional<units::Hertz> scraped_max_clock, samples::QualityLog& quality);

// Adds to fleet.rests what the instances of each MIG GPU leave over of it.
void add_mig_rests(Fleet& fleet);

}  // namespace flopsight::rollups
