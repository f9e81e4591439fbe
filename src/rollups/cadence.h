#pragma once
// How often a series is scraped, inferred from its own times around each point: the 75th percentile of the
// eight steps before it and the eight after. Local, because intervals change when a configuration does. Not a median,
// which would take the short step of two replicas that interleave (5 s, 25 s, 5 s, …); not a mean, which
// gaps would pull.

#include <optional>
#include <vector>

#include "units/time.h"

namespace flopsight::rollups {

// One step for each time; `otherwise` for all where there are fewer than two distinct times. `times` ascending.
std::vector<units::Seconds> local_cadence(const std::vector<units::Instant>& times,
                                          units::Seconds otherwise);

}  // namespace flopsight::rollups
