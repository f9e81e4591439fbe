#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto value = flopsight::base::yaml::parse({reinterpret_cast<const char*>(data), size});
  if (value.ok()) return 0;
  const std::string& message = value.error().message;
  if (message.empty() || message.find_first_of("\n\r\x1b") != std::string::npos) __builtin_trap();
  return 0;
}
