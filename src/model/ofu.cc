#include "model/ofu.h"

#include <cmath>

namespace flopsight::model {

units::Ratio ofu(units::Ratio tensor_active, units::Hertz sm_clock, units::Hertz reference) {
  FLOPSIGHT_CHECK(tensor_active.value >= 0 && sm_clock.value > 0 && reference.value > 0);
  return units::Ratio(tensor_active.value * (sm_clock / reference));
}

units::Ratio ofu_from_cycles(double mma_cycles_total, double multiplicity, units::Hertz reference,
                             units::Seconds step) {
  FLOPSIGHT_CHECK(mma_cycles_total >= 0 && multiplicity >= 1 && reference.value > 0 && step.value > 0);
  return units::Ratio(mma_cycles_total / (multiplicity * reference.value * step.value));
}

std::optional<double> sm_multiplicity(double sm_cycles_elapsed_total, units::Seconds step,
                                      std::optional<units::Hertz> sm_clock,
                                      std::optional<int> sm_count,
                                      std::optional<units::Hertz> clock_max) {
  if (!(sm_cycles_elapsed_total > 0) || !(step.value > 0)) return std::nullopt;
  const double rate = sm_cycles_elapsed_total / step.value;
  const auto fits = [&](double multiplicity) {
    const double mean_clock = rate / multiplicity;
    if (sm_clock) {
      return mean_clock > sm_clock->value / 1.5 && mean_clock < sm_clock->value * 1.5;
    }
    return mean_clock > 50e6 && mean_clock < (clock_max ? clock_max->value * 1.05 : 3.5e9);
  };
  const bool one = fits(1);
  const bool many = sm_count && *sm_count > 1 && fits(*sm_count);
  if (one == many) return std::nullopt;
  return one ? 1.0 : static_cast<double>(*sm_count);
}

std::string_view reference_source_name(ReferenceSource source) {
  switch (source) {
    case ReferenceSource::kOverride: return "override";
    case ReferenceSource::kCatalogTensorPeak: return "catalog_tensor_peak";
    case ReferenceSource::kScrapedNvmlMax: return "scraped_nvml_max";
    case ReferenceSource::kCatalogNvmlMax: return "catalog_nvml_max";
  }
  return "";
}

std::optional<ReferenceClock> reference_clock(ReferencePolicy policy,
                                              std::optional<units::Hertz> override_clock,
                                              const catalog::Device* device,
                                              std::optional<units::Hertz> scraped_nvml_max) {
  if (override_clock) return ReferenceClock{*override_clock, ReferenceSource::kOverride};
  if (policy == ReferencePolicy::kAuto && device != nullptr && device->tensor_peak_clock) {
    return ReferenceClock{*device->tensor_peak_clock, ReferenceSource::kCatalogTensorPeak};
  }
  if (scraped_nvml_max) return ReferenceClock{*scraped_nvml_max, ReferenceSource::kScrapedNvmlMax};
  if (device != nullptr && device->nvml_max_sm_clock) {
    return ReferenceClock{*device->nvml_max_sm_clock, ReferenceSource::kCatalogNvmlMax};
  }
  return std::nullopt;
}

}  // namespace flopsight::model
