#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/regex.h"

// The expression, a zero byte, a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  const auto regex = flopsight::base::Regex::parse(input.substr(0, zero));
  if (!regex.ok()) {
    if (regex.error().message.empty()) __builtin_trap();
    return 0;
  }
  const std::string_view text = zero == std::string_view::npos ? input : input.substr(zero + 1);
  std::vector<std::optional<std::string_view>> groups;
  const bool matched = regex->match(text, groups);
  if (matched != regex->found_in(text)) __builtin_trap();
  if (matched && groups.size() != regex->group_names().size()) __builtin_trap();
  return 0;
}
