// Any text as a point in time and as a duration. A point in time that is read is printed and read again as the
// same; a duration is positive and bounded.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "units/time.h"

namespace {

using flopsight::units::Instant;

// units may include nobody, so the check of base/ is not to be had here.
void check(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr Instant kYearZero{-62'167'219'200'000};
constexpr Instant kYear10000{253'402'300'800'000};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto instant = flopsight::units::parse_instant(text)) {
    // An offset may carry the last day of the year 9999 over its end.
    const bool four_digits = *instant >= kYearZero && *instant < kYear10000;
    const auto again = flopsight::units::parse_instant(flopsight::units::to_rfc3339(*instant));
    if (four_digits) check(again && *again == *instant);
  }
  if (const auto duration = flopsight::units::parse_duration(text)) {
    check(duration->value > 0 && std::isfinite(duration->value) && duration->value <= 1e11);
    const Instant moved = Instant{0} + *duration;
    check(moved >= Instant{0});
    check(moved - *duration == Instant{0});
  }
  return 0;
}
