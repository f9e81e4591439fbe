#pragma once
// From a raw number of an exporter to a Reading: blanks, NaN, stale markers and impossible values become
// Absent with their reason; the rest is scaled to our unit. Nothing is clamped.
//
// Blank constants, from DCGM's dcgm_structs.h: int32 0x7ffffff0, int64 0x7ffffffffffffff0 and double 2^47, each
// followed by not-found, not-supported and not-permitted at +1, +2, +3. The int64 ones lose their last digits as doubles
// (all become 2^63), and exporters scale before they publish, so any gauge at or above 2^47 is blank, and
// the physical range of the quantity decides the rest. Cumulative counters pass 2^47 legitimately: for
// them only the exact constants are blank.

#include "catalog/metrics.h"
#include "samples/absent.h"

namespace flopsight::samples {

Reading judge(const catalog::MetricInfo& metric, double scale, double raw);

// Prometheus's stale marker: a NaN with the bits 0x7ff0000000000002.
bool is_stale_marker(double raw);

}  // namespace flopsight::samples
