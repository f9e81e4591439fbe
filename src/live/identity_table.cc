#include "live/identity_table.h"

#include <cstring>

#include "base/packed_name.h"

namespace flopsight::live {
namespace {

using samples::GpuIdentity;

constexpr std::string GpuIdentity::*kOwn[] = {&GpuIdentity::uuid, &GpuIdentity::mig_instance, &GpuIdentity::host, &GpuIdentity::index,
                                              &GpuIdentity::pci_bus_id};
constexpr std::string GpuIdentity::*kCommon[] = {&GpuIdentity::model_raw, &GpuIdentity::driver_version, &GpuIdentity::mig_profile};
constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);

bool is_packed_uuid(const char* name) { return *name == base::kPackedUuidMark; }
// With the zero byte at its end, which packed UUIDs do not have: they may contain some.
std::size_t name_length(const char* name) { return is_packed_uuid(name) ? base::kPackedUuidBytes : std::strlen(name) + 1; }

}  // namespace

void IdentityTable::add(const GpuIdentity& identity) { packed_.push_back(packed(identity)); }

void IdentityTable::replace(std::size_t number, const GpuIdentity& identity) { packed_.replace(number, packed(identity)); }

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

GpuIdentity IdentityTable::at(std::size_t number) const {
  const char* at = packed_[number].data();
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

}  // namespace flopsight::live
