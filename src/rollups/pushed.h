#pragma once
// GPU time out of what a metrics server computed (samples/pushed_span.h), in the same form as from raw samples.
//
// A holder has its GPU from its first step to its last, holes included as unmeasured time, unless another holder
// overlaps it (such GPUs must not come here). The rest of the window is nobody's: measured where samples
// without a job were, else not seen. MIG instances exist only while they are seen.

#include <vector>

#include "rollups/fleet.h"
#include "samples/pushed_span.h"

namespace flopsight::rollups {

// Precondition: options.integrate.window is set, a whole number of steps.
Fleet fleet_of_spans(const std::vector<samples::PushedSpan>& spans, units::Seconds step,
                     const FleetOptions& options, samples::QualityLog& quality);

}  // namespace flopsight::rollups
