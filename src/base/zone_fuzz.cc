#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/zone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto zone = flopsight::base::Zone::parse(bytes, "fuzz");
  if (!zone.ok()) return 0;
  // Whatever the file says: local time to UTC and back is off by no more than the days that an offset may have.
  for (const std::int64_t local : {-3'000'000'000LL, 0LL, 1'790'000'000LL, 4'000'000'000LL}) {
    const std::int64_t at = zone->unix_seconds(local);
    if (at < local - 4 * 86'400 || at > local + 4 * 86'400) __builtin_trap();
  }
  return 0;
}
