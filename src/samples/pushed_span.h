#pragma once
// What a metrics server computed of one GPU (or MIG instance) and one holder over a window, so that no raw sample
// crosses the wire: sums and counts over evaluation steps. rollups/pushed.h makes GPU time of it.

#include <cstdint>
#include <optional>

#include "samples/gpu.h"

namespace flopsight::samples {

struct PushedSpan {
  GpuIdentity gpu;
  std::optional<HolderId> holder;
  std::uint64_t present_steps = 0;   // any device metric or tensor activity was there
  std::uint64_t measured_steps = 0;  // tensor activity and clock, both within range
  double tensor_clock_hertz_sum = 0;   // of activity * clock over the measured steps
  double tensor_ratio_sum = 0;         // over the measured steps
  std::uint64_t clock_steps = 0;
  double clock_hertz_sum = 0;
  std::optional<units::Instant> first;  // of the present steps
  std::optional<units::Instant> last;
  std::optional<double> clock_variance_hertz2;  // of the GPU, over its busy steps
  std::optional<double> clock_max_hertz;
};

}  // namespace flopsight::samples
