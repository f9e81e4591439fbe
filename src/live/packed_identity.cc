#include "live/packed_identity.h"

#include <algorithm>

namespace flopsight::live {
namespace {

constexpr std::string samples::GpuIdentity::*kNames[] = {
    &samples::GpuIdentity::uuid,  &samples::GpuIdentity::mig_instance, &samples::GpuIdentity::mig_profile,
    &samples::GpuIdentity::host,  &samples::GpuIdentity::index,        &samples::GpuIdentity::pci_bus_id,
    &samples::GpuIdentity::model_raw, &samples::GpuIdentity::driver_version};

}  // namespace

PackedIdentity::PackedIdentity(const samples::GpuIdentity& identity) {
  std::string packed;
  for (const auto name : kNames) {
    std::string text = identity.*name;
    std::erase(text, '\0');
    packed += text;
    packed.push_back('\0');
  }
  packed_ = std::string(packed.data(), packed.size());  // no room to spare
}

samples::GpuIdentity PackedIdentity::unpacked() const {
  samples::GpuIdentity identity;
  std::size_t at = 0;
  for (const auto name : kNames) {
    const std::size_t end = packed_.find('\0', at);
    if (end == std::string::npos) break;
    identity.*name = packed_.substr(at, end - at);
    at = end + 1;
  }
  return identity;
}

}  // namespace flopsight::live
