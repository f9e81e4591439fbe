#pragma once
// OFU, overall FLOP utilization: the share of a GPU's dense tensor peak that was really used, whatever the
// number format.
//
//   OFU = tensor_active * sm_clock / reference_clock
//
// Why: peak(p) = N_SM * rate(p) * f_ref for every format p. A fully busy pipe at clock f delivers
// N_SM * rate(p) * f, so achieved / peak = tensor_active * f / f_ref, and the format cancels. f_ref must be
// the clock at which the tensor peak is quoted: 1830 MHz on H100 SXM, whose SM clock can reach 1980.
//
// Domain: tensor_active >= 0, clocks > 0 (checked). Result >= 0, deliberately not clamped: a GPU that runs above
// f_ref can pass 1 (up to 1.082 on H100); above about 1.1 the catalogue row is wrong.
// OFU is computed per sample and then integrated: mean(a * f), never mean(a) * mean(f).
// What it does not see: FLOPs on CUDA cores (under 0.2 % in training), tile padding (counted as work),
// the swing of the clock inside one sample (the band below).
// Source: arXiv 2605.20799, section III, as digested publicly; the identity is our arithmetic.

#include <optional>
#include <string>
#include <string_view>

#include "catalog/devices.h"
#include "units/units.h"

namespace flopsight::model {

units::Ratio ofu(units::Ratio tensor_active, units::Hertz sm_clock, units::Hertz reference_clock);

// OFU over a step of two readings of the cumulative counters of DCGM 4.6 (fields 1084 and 1086); needs no
// clock sample: both factors are exact over the step.
//
//   OFU = d_mma_cycles / (multiplicity * reference_clock * step)
//
// multiplicity: whether the counter is summed over SMs (N_SM) or averaged (1), which is undocumented.
units::Ratio ofu_from_cycles(double mma_cycles_total, double multiplicity,
                             units::Hertz reference_clock, units::Seconds step);

// The multiplicity that explains d_sm_cycles_elapsed over the step: 1 or the SM count. With a clock sample,
// the one whose mean clock lies within a factor 1.5 of it; without one, the only one whose mean clock is
// physically possible (50 MHz to 1.05 * clock_max). Nothing when neither or both fit.
std::optional<double> sm_multiplicity(double sm_cycles_elapsed_total, units::Seconds step,
                                      std::optional<units::Hertz> sm_clock,
                                      std::optional<int> sm_count,
                                      std::optional<units::Hertz> clock_max);

enum class ReferencePolicy {
  kAuto,        // override, else the catalogue's tensor-peak clock, else the NVML maximum
  kNvmlMax,     // the NVML maximum: scraped, else the catalogue's
};

enum class ReferenceSource { kOverride, kCatalogTensorPeak, kScrapedNvmlMax, kCatalogNvmlMax };
// "override", "catalog_tensor_peak", "scraped_nvml_max", "catalog_nvml_max".
std::string_view reference_source_name(ReferenceSource source);

struct ReferenceClock {
  units::Hertz clock;
  ReferenceSource source;
};

// Nothing when the model is unknown and no maximum was scraped: there is no default GPU.
std::optional<ReferenceClock> reference_clock(ReferencePolicy policy,
                                              std::optional<units::Hertz> override_clock,
                                              const catalog::Device* device,
                                              std::optional<units::Hertz> scraped_nvml_max);

}  // namespace flopsight::model
