#include "model/reference_error.h"

#include <algorithm>

namespace flopsight::model {
namespace {

constexpr double kConflictRatio = 152.0 / 148.0 - 1;

double least_tensor_share() {
  double least = 1;
  for (const catalog::Device& device : catalog::DeviceCatalog::builtin().devices()) {
    if (!device.tensor_peak_clock || !device.nvml_max_sm_clock) continue;
    least = std::min(least, device.tensor_peak_clock->value / device.nvml_max_sm_clock->value);
  }
  return least;
}

}  // namespace

DomainError domain_error(const ReferenceClock& reference, const catalog::Device* device) {
  static const double least = least_tensor_share();
  switch (reference.source) {
    case ReferenceSource::kOverride: return {};
    case ReferenceSource::kScrapedNvmlMax:
    case ReferenceSource::kCatalogNvmlMax: return {0, 1 / least - 1};
    case ReferenceSource::kCatalogTensorPeak: break;
  }
  if (device == nullptr || device->confidence == "high" || (device->from_user && device->confidence.empty())) return {};
  const double max_hertz = device->nvml_max_sm_clock ? device->nvml_max_sm_clock->value : reference.clock.value;
  return {std::max(0.0, 1 - reference.clock.value / max_hertz), kConflictRatio};
}

}  // namespace flopsight::model
