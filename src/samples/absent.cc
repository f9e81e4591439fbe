#include "samples/absent.h"

#include <array>

namespace flopsight::samples {
namespace {

struct ReasonText {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<ReasonText, kAbsentReasonCount> kReasons = {{
    {"no_tensor_counter",
     "OFU not measurable: no tensor counter is scraped; dcgm-exporter has one unless its list or the GPU's "
     "DCGM lacks profiling fields, nvidia-smi exporters never have one"},
    {"no_clock", "tensor activity is scraped without an SM clock"},
    {"no_reference_clock",
     "nobody knows the clock of the GPU model's peak: the catalogue does not have the model (unknown_model), or has it without a clock "
     "(model_without_clock), and no maximum SM clock is scraped; add a row with --gpu-catalog"},
    {"uncalibrated",
     "this vendor's tensor activity is not calibrated against FLOPs; shown, but no OFU is made of it"},
    {"blank", "DCGM's constant for \"no value\""},
    {"not_a_number", "NaN"},
    {"stale", "stale marker: the series ended"},
    {"out_of_range", "outside the physical range of the quantity; excluded, not clamped"},
    {"frozen", "readings that cannot stand still repeat exactly: the exporter or DCGM is stuck"},
    {"contradicted",
     "profiling counters say idle while the device is busy; restart the DCGM host engine or run dcgmi "
     "profile --pause and --resume"},
    {"profiler_pause",
     "all GPUs of one host lost profiling counters at once: a profiler holds them, not idle time"},
    {"gap", "no sample for longer than the gap limit"},
    {"not_seen", "the GPU is known but has no sample here"},
    {"unsplit_instances", "slices of a MIG GPU that belong to no instance"},
}};

}  // namespace

std::string_view absent_reason_name(AbsentReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].name;
}
std::string_view absent_reason_meaning(AbsentReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].meaning;
}

}  // namespace flopsight::samples
