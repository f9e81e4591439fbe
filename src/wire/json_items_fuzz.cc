#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/json_items.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kLists[] = {"jobs"};
  constexpr std::string_view kSkip[] = {"steps"};
  const auto status = flopsight::wire::read_json_items(
      {reinterpret_cast<const char*>(data), size}, {kLists, kSkip},
      [](std::string_view, flopsight::base::json::Value entry) {
        if (entry.kind().empty()) __builtin_trap();
        return flopsight::base::Status();
      },
      [](std::string_view, flopsight::base::json::Value) {});
  if (!status.ok() && status.error().message.empty()) __builtin_trap();
  return 0;
}
