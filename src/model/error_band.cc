#include "model/error_band.h"

#include <algorithm>
#include <cmath>

namespace flopsight::model {

std::optional<Band> error_band(const BandInputs& in) {
  if (!(in.measured_seconds > 0) || !(in.allocated_seconds > 0)) return std::nullopt;
  const double sampling = 1.96 * std::sqrt(in.sampling_variance_seconds2);
  const double unmeasured = std::max(0.0, in.allocated_seconds - in.measured_seconds);
  // Delivered work is never negative: that is a fact, not a clamp of a measurement.
  const double low = std::max(0.0, in.delivered_seconds - sampling - in.limit_less_seconds);
  // A GPU that runs above the reference clock can deliver more than 1 in unmeasured time too.
  const double most_ratio = std::max(1.0, in.delivered_seconds / in.measured_seconds);
  const double high =
      in.delivered_seconds + sampling + in.limit_more_seconds + unmeasured * most_ratio;
  return Band{low / in.allocated_seconds, high / in.allocated_seconds};
}

}  // namespace flopsight::model
