#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto value = flopsight::base::yaml::parse({reinterpret_cast<const char*>(data), size});
  if (!value.ok() && value.error().message.empty()) __builtin_trap();
  return 0;
}
