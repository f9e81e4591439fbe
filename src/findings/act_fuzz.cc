#include <cstddef>
#include <cstdint>
#include <string_view>

#include "findings/act.h"

// Whatever comes, it is within the limits or refused in words.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const auto told = findings::act_from_told({reinterpret_cast<const char*>(data), size});
  if (!told.ok() && told.error().message.empty()) __builtin_trap();
  if (told.ok() && (told->note.size() > findings::kNoteBytesMax || told->author.size() > findings::kAuthorBytesMax)) __builtin_trap();
  return 0;
}
