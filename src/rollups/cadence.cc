#include "rollups/cadence.h"

#include <algorithm>
#include <cstddef>

namespace flopsight::rollups {
namespace {

constexpr std::size_t kStepsEachSide = 8;

}  // namespace

std::vector<units::Seconds> local_cadence(const std::vector<units::Instant>& times,
                                          units::Seconds otherwise) {
  std::vector<double> steps_seconds;
  std::vector<std::size_t> next_step;  // for each time, the index of the first step after it
  steps_seconds.reserve(times.size());
  next_step.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (i > 0 && times[i] > times[i - 1]) {
      steps_seconds.push_back((times[i] - times[i - 1]).value);
    }
    next_step.push_back(steps_seconds.size());
  }
  if (steps_seconds.empty()) return std::vector<units::Seconds>(times.size(), otherwise);
  const auto [least, most] = std::minmax_element(steps_seconds.begin(), steps_seconds.end());
  if (*least == *most) return std::vector<units::Seconds>(times.size(), units::Seconds(*least));
  std::vector<units::Seconds> out;
  out.reserve(times.size());
  std::vector<double> near;
  for (const std::size_t at : next_step) {
    const std::size_t first = at < kStepsEachSide ? 0 : at - kStepsEachSide;
    const std::size_t last = std::min(at + kStepsEachSide, steps_seconds.size());
    near.assign(steps_seconds.begin() + static_cast<std::ptrdiff_t>(first),
                steps_seconds.begin() + static_cast<std::ptrdiff_t>(last));
    const auto pick = near.begin() + static_cast<std::ptrdiff_t>((near.size() - 1) * 3 / 4);
    std::nth_element(near.begin(), pick, near.end());
    out.push_back(units::Seconds(*pick));
  }
  return out;
}

}  // namespace flopsight::rollups
