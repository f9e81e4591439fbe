#include "base/packed_name.h"

#include <optional>

namespace flopsight::base {
namespace {

constexpr char kPlainMark = '\2';  // before texts that begin as something packed would
constexpr std::string_view kForm = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kDigits = "0123456789abcdef";  // capitals would not come back

std::optional<std::string> packed_uuid(std::string_view name) {
  if (name.size() != kForm.size()) return std::nullopt;
  std::string out(1, kPackedUuidMark);
  unsigned half = 0x10;  // and four bits, once there are some
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (kForm[i] != 'x') {
      if (name[i] != kForm[i]) return std::nullopt;
      continue;
    }
    const std::size_t digit = kDigits.find(name[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    if (half == 0x10) {
      half = static_cast<unsigned>(digit);
      continue;
    }
    out.push_back(static_cast<char>(half << 4 | digit));
    half = 0x10;
  }
  return out;
}

}  // namespace

std::string packed_name(std::string_view name) {
  if (auto uuid = packed_uuid(name)) return *std::move(uuid);
  std::string out;
  if (!name.empty() && (name.front() == kPackedUuidMark || name.front() == kPlainMark)) out.push_back(kPlainMark);
  out += name;
  return out;
}

std::string unpacked_name(std::string_view packed) {
  if (packed.empty()) return {};
  if (packed.front() == kPlainMark) return std::string(packed.substr(1));
  if (packed.front() != kPackedUuidMark) return std::string(packed);
  std::string out;
  std::size_t nibble = 2;  // after the mark
  for (const char form : kForm) {
    if (form != 'x') {
      out.push_back(form);
      continue;
    }
    const auto byte = static_cast<unsigned char>(packed[nibble / 2]);
    out.push_back(kDigits[nibble % 2 == 0 ? byte >> 4 : byte & 0xF]);
    ++nibble;
  }
  return out;
}

}  // namespace flopsight::base
