#include "live/identity_table.h"

#include <cstring>

#include "base/packed_name.h"
#include "base/room.h"

namespace flopsight::live {
namespace {

using samples::GpuIdentity;

constexpr std::string GpuIdentity::*kOwn[] = {&GpuIdentity::uuid, &GpuIdentity::mig_instance, &GpuIdentity::host, &GpuIdentity::index,
                                              &GpuIdentity::pci_bus_id};
constexpr std::string GpuIdentity::*kCommon[] = {&GpuIdentity::model_raw, &GpuIdentity::driver_version, &GpuIdentity::mig_profile};
constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);
constexpr std::size_t kReplacedBytesMin = 1 << 16;

bool is_packed_uuid(const char* name) { return *name == base::kPackedUuidMark; }
// With the zero byte at its end, which packed UUIDs do not have: they may contain some.
std::size_t name_length(const char* name) { return is_packed_uuid(name) ? base::kPackedUuidBytes : std::strlen(name) + 1; }

}  // namespace

void IdentityTable::add(const GpuIdentity& identity) {
  base::add_one(starts_);
  append(starts_.size() - 1, packed(identity));
}

void IdentityTable::replace(std::size_t number, const GpuIdentity& identity) {
  const std::string text = packed(identity);
  const std::size_t length = length_at(starts_[number]);
  if (std::string_view(bytes_.data() + starts_[number], length) == text) return;
  replaced_bytes_ += length;
  append(number, text);
  if (replaced_bytes_ > kReplacedBytesMin && replaced_bytes_ > bytes_.size() / 4) forget_replaced();
}

std::string IdentityTable::packed(const GpuIdentity& identity) {
  Common common;
  for (std::size_t i = 0; i < common.size(); ++i) common[i] = identity.*kCommon[i];
  const auto [at, is_new] = common_numbers_.emplace(common, static_cast<std::uint32_t>(common_.size()));
  if (is_new) common_.push_back(std::move(common));
  std::string out(kNumberBytes, '\0');
  std::memcpy(out.data(), &at->second, kNumberBytes);
  for (const auto name : kOwn) {
    std::string text = identity.*name;
    std::erase(text, '\0');
    const std::string packed = base::packed_name(text);
    out += packed;
    if (!is_packed_uuid(packed.c_str())) out.push_back('\0');
  }
  return out;
}

void IdentityTable::append(std::size_t number, std::string_view packed) {
  starts_[number] = static_cast<std::uint32_t>(bytes_.size());
  base::make_room(bytes_, bytes_.size() + packed.size());
  bytes_.insert(bytes_.end(), packed.begin(), packed.end());
}

GpuIdentity IdentityTable::at(std::size_t number) const {
  const char* at = bytes_.data() + starts_[number];
  std::uint32_t common = 0;
  std::memcpy(&common, at, kNumberBytes);
  at += kNumberBytes;
  GpuIdentity identity;
  for (const auto name : kOwn) {
    const std::size_t length = name_length(at);
    identity.*name = base::unpacked_name(is_packed_uuid(at) ? std::string_view(at, length) : std::string_view(at, length - 1));
    at += length;
  }
  for (std::size_t i = 0; i < std::size(kCommon); ++i) identity.*kCommon[i] = common_[common][i];
  return identity;
}

std::size_t IdentityTable::length_at(std::size_t start) const {
  const char* end = bytes_.data() + start + kNumberBytes;
  for (std::size_t i = 0; i < std::size(kOwn); ++i) end += name_length(end);
  return static_cast<std::size_t>(end - bytes_.data()) - start;
}

void IdentityTable::forget_replaced() {
  std::vector<char> kept;
  kept.reserve(bytes_.size() - replaced_bytes_);
  for (std::uint32_t& start : starts_) {
    const auto from = bytes_.begin() + start;
    const auto length = static_cast<std::ptrdiff_t>(length_at(start));
    start = static_cast<std::uint32_t>(kept.size());
    kept.insert(kept.end(), from, from + length);
  }
  bytes_ = std::move(kept);
  replaced_bytes_ = 0;
}

}  // namespace flopsight::live
