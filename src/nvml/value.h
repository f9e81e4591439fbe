#pragma once
// A number that NVML gave, or why it gave none. Units are those of catalog::Metric (ratios 0 to 1, hertz, watts, joules, bytes).
// Threads: plain values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "catalog/metrics.h"

namespace flopsight::nvml {

enum class Absence : std::uint8_t {
  kNotYetSampled,    // a mean over time needs two samples
  kNotSupported,     // by this GPU
  kNoFunction,       // the driver is older than the function
  kNoPermission,
  kVersionMismatch,  // the driver refuses the layout that it is asked with
  kNoData,           // the driver has none, or says "not a number"
  kImplausible,      // outside the physical range of the quantity, or one of NVIDIA's "no value" constants
  kDeviceLost,       // the GPU has fallen off the bus
  kResetRequired,    // the GPU works again after a reset only
  kDeviceGone,       // the driver does not list the GPU any more
  kDriverGone,       // unloaded, restarted or replaced while we use it
  kFailed,           // another error of NVML
};
inline constexpr std::size_t kAbsenceCount = 12;

// A key that scripts may rely on: "not_supported", …; and a sentence for people.
std::string_view absence_name(Absence absence);
std::string_view absence_meaning(Absence absence);
// Of an nvmlReturn_t other than 0.
Absence absence_of(int nvml_return);

class Value {
 public:
  Value() = default;
  Value(double number) : number_(number), present_(true) {}  // NOLINT: implicit by design
  Value(Absence absence) : absence_(absence) {}              // NOLINT

  bool present() const { return present_; }
  double number() const {
    FLOPSIGHT_CHECK(present_);
    return number_;
  }
  Absence absence() const {
    FLOPSIGHT_CHECK(!present_);
    return absence_;
  }

 private:
  double number_ = 0;
  Absence absence_ = Absence::kNotYetSampled;
  bool present_ = false;
};

// One for each metric of the catalogue; those that NVML knows nothing of stay kNotYetSampled.
struct Values {
  std::array<Value, catalog::kMetricCount> of;
  Value& operator[](catalog::Metric metric) { return of[static_cast<std::size_t>(metric)]; }
  const Value& operator[](catalog::Metric metric) const { return of[static_cast<std::size_t>(metric)]; }
};

// raw * scale, if that is a reading of the quantity at all (samples/judge.h).
Value judged(catalog::Metric metric, double scale, double raw);

}  // namespace flopsight::nvml
