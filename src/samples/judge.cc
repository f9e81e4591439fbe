#include "samples/judge.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace flopsight::samples {
namespace {

constexpr double kBlankInt32 = 2147483632.0;         // 0x7ffffff0
constexpr double kBlankDouble = 140737488355328.0;   // 2^47
constexpr double kBlankInt64 = 9223372036854775808.0;  // what 0x7ffffffffffffff0 becomes as a double

bool is_blank(const catalog::MetricInfo& metric, double scale, double raw) {
  if (raw == kBlankInt64) return true;
  if (raw >= kBlankDouble && raw <= kBlankDouble + 3) return true;
  if (metric.kind == catalog::MetricKind::kCounter) return false;
  if (raw >= kBlankDouble) return true;
  // An exporter may have multiplied the blank: slurm-job-exporter's 2^47 * 100 is caught above; a byte
  // rate or a percentage of a 32-bit blank is not a value that the quantity can take either.
  return raw >= kBlankInt32 && raw <= kBlankInt32 + 3 && raw * scale > metric.value_max;
}

}  // namespace

bool is_stale_marker(double raw) {
  return std::bit_cast<std::uint64_t>(raw) == 0x7ff0000000000002ULL;
}

Reading judge(const catalog::MetricInfo& metric, double scale, double raw) {
  if (std::isnan(raw)) {
    return Absent{is_stale_marker(raw) ? AbsentReason::kStale : AbsentReason::kNotANumber};
  }
  if (metric.kind == catalog::MetricKind::kLabel) return Reading(raw);
  if (std::isinf(raw)) return Absent{AbsentReason::kOutOfRange};  // no constant of DCGM's
  if (is_blank(metric, scale, raw)) return Absent{AbsentReason::kBlank};
  const double value = raw * scale;
  if (!(value >= metric.value_min && value <= metric.value_max)) {
    return Absent{AbsentReason::kOutOfRange};
  }
  return Reading(value);
}

}  // namespace flopsight::samples
