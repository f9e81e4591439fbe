#include <cstddef>
#include <cstdint>
#include <string_view>

#include "findings/record_json.h"

// What is read can be written, and read again the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const auto value = base::json::parse({reinterpret_cast<const char*>(data), size});
  if (!value.ok()) return 0;
  const auto record = findings::record_from_json(*value);
  if (!record.ok()) {
    if (record.error().message.empty()) __builtin_trap();
    return 0;
  }
  const std::string written = base::json::dump(findings::record_json(*record), 0);
  const auto again = findings::record_from_json(*base::json::parse(written));
  if (!again.ok() || base::json::dump(findings::record_json(*again), 0) != written) __builtin_trap();
  return 0;
}
