#include "nvml/value.h"

#include "nvml/abi.h"
#include "samples/judge.h"

namespace flopsight::nvml {
namespace {

struct Words {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Words, kAbsenceCount> kWords = {{
    {"not_yet_sampled", "a mean over time needs two samples, and there is one"},
    {"not_supported", "this GPU does not have it"},
    {"no_function", "the driver is older than this function of NVML"},
    {"no_permission", "the driver does not let this user read it"},
    {"version_mismatch", "the driver refuses the layout that it was asked with"},
    {"no_data", "the driver has no value"},
    {"implausible", "the value lies outside the physical range of the quantity"},
    {"device_lost", "the GPU has fallen off the bus"},
    {"reset_required", "the GPU has to be reset before it works again"},
    {"device_gone", "the driver does not list this GPU any more"},
    {"driver_gone", "the driver was unloaded, restarted or replaced"},
    {"failed", "NVML reports an error"},
}};

}  // namespace

std::string_view absence_name(Absence absence) { return kWords[static_cast<std::size_t>(absence)].name; }
std::string_view absence_meaning(Absence absence) { return kWords[static_cast<std::size_t>(absence)].meaning; }

Absence absence_of(int nvml_return) {
  switch (nvml_return) {
    case abi::kUninitialized:
    case abi::kDriverNotLoaded:
    case abi::kLibRmVersionMismatch: return Absence::kDriverGone;
    case abi::kInvalidArgument:  // how older drivers answer an id that they do not know
    case abi::kNotSupported: return Absence::kNotSupported;
    case abi::kNoPermission:
    case abi::kOperatingSystem: return Absence::kNoPermission;
    case abi::kFunctionNotFound: return Absence::kNoFunction;
    case abi::kGpuIsLost: return Absence::kDeviceLost;
    case abi::kResetRequired: return Absence::kResetRequired;
    case abi::kNotFound:
    case abi::kNoData: return Absence::kNoData;
    case abi::kArgumentVersionMismatch: return Absence::kVersionMismatch;
    default: return Absence::kFailed;
  }
}

Value judged(catalog::Metric metric, double scale, double raw) {
  const samples::Reading reading = samples::judge(catalog::info(metric), scale, raw);
  if (reading.present()) return reading.value();
  return reading.reason() == samples::AbsentReason::kNotANumber ? Absence::kNoData : Absence::kImplausible;
}

}  // namespace flopsight::nvml
