#include "live/packed_identity.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

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
  packed_ = std::make_unique<char[]>(packed.size());
  std::copy(packed.begin(), packed.end(), packed_.get());
}

samples::GpuIdentity PackedIdentity::unpacked() const {
  samples::GpuIdentity identity;
  const char* at = packed_.get();
  if (at == nullptr) return identity;
  for (const auto name : kNames) {
    identity.*name = at;
    at += (identity.*name).size() + 1;
  }
  return identity;
}

std::size_t PackedIdentity::memory_bytes() const {
  const char* end = packed_.get();
  if (end == nullptr) return 0;
  for (std::size_t i = 0; i < std::size(kNames); ++i) end += std::strlen(end) + 1;
  return static_cast<std::size_t>(end - packed_.get());
}

}  // namespace flopsight::live
