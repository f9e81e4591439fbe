#pragma once
// "Not observed" as a value with a reason. It is never 0, never -1 and never NaN, and it is carried to the
// screen: a GPU that was not seen must not look like one that was idle.

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/check.h"

namespace flopsight::samples {

enum class AbsentReason : std::uint8_t {
  kNoTensorCounter,    // no tensor metric of this GPU, at all or while its others went on
  kNoClock,            // tensor activity without an SM clock
  kNoReferenceClock,   // unknown GPU model and no maximum clock scraped
  kUncalibrated,       // AMD: no public measurement ties the counter to FLOPs
  kBlank,              // one of DCGM's "no value" constants
  kNotANumber,
  kStale,              // a stale marker: the series has ended
  kOutOfRange,         // outside the physical range of the quantity
  kFrozen,             // bytes that cannot stand still do
  kContradicted,       // profiling says idle, the device says busy
  kProfilerPause,      // all GPUs of a host lost profiling at once
  kGap,                // no sample for longer than the gap limit
  kNotSeen,            // known, but without a sample here
  kUnsplitInstances,   // slices of a MIG GPU that no instance holds
};
inline constexpr std::size_t kAbsentReasonCount = 14;

// The key used in JSON: "no_tensor_counter", …
std::string_view absent_reason_name(AbsentReason reason);
// One sentence for people.
std::string_view absent_reason_meaning(AbsentReason reason);

struct Absent {
  AbsentReason reason = AbsentReason::kNotSeen;
  bool operator==(const Absent&) const = default;
};

class Reading {
 public:
  Reading() : state_(Absent{}) {}
  Reading(double value) : state_(value) {}    // NOLINT: implicit by design
  Reading(Absent absent) : state_(absent) {}  // NOLINT

  bool present() const { return state_.index() == 0; }
  explicit operator bool() const { return present(); }
  double value() const {
    FLOPSIGHT_CHECK(present());
    return *std::get_if<double>(&state_);
  }
  AbsentReason reason() const {
    FLOPSIGHT_CHECK(!present());
    return std::get_if<Absent>(&state_)->reason;
  }

 private:
  std::variant<double, Absent> state_;
};

}  // namespace flopsight::samples
