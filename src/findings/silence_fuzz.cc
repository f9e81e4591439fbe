#include <cstddef>
#include <cstdint>
#include <string_view>

#include "findings/silence.h"

// What is told can be kept, and read again the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const auto told = findings::silence_from_told({reinterpret_cast<const char*>(data), size}, "ada", units::Instant{1'767'225'600'000});
  if (!told.ok()) {
    if (told.error().message.empty()) __builtin_trap();
    return 0;
  }
  const auto again = findings::silence_from_json(findings::silence_json(*told));
  if (!again.ok() || base::json::dump(findings::silence_json(*again), 0) != base::json::dump(findings::silence_json(*told), 0)) __builtin_trap();
  return 0;
}
