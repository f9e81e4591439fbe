#include "samples/gpu.h"

#include <charconv>

#include "base/text.h"

namespace flopsight::samples {

std::optional<int> GpuIdentity::mig_slices() const {
  int slices = 0;
  const char* end = mig_profile.data() + mig_profile.size();
  // "1c.3g.20gb" is a compute instance inside a 3g GPU instance: the part before 'g' counts.
  const std::size_t g = mig_profile.find("g.");
  if (g == std::string::npos) return std::nullopt;
  const std::size_t dot = mig_profile.rfind('.', g);
  const char* begin = mig_profile.data() + (dot == std::string::npos ? 0 : dot + 1);
  const auto [at, error] = std::from_chars(begin, end, slices);
  if (error != std::errc() || at == end || *at != 'g' || slices < 1 || slices > 8) {
    return std::nullopt;
  }
  return slices;
}

std::string normalized_uuid(std::string_view uuid) {
  std::string text = base::to_lower(uuid);
  if (text.starts_with("gpu-")) text.erase(0, 4);
  return text;
}

bool is_instance_uuid(std::string_view uuid) { return uuid.starts_with("MIG-"); }

void fill_attributes(GpuIdentity& known, const GpuIdentity& seen) {
  for (const auto attribute : {&GpuIdentity::mig_profile, &GpuIdentity::host, &GpuIdentity::index, &GpuIdentity::pci_bus_id, &GpuIdentity::model_raw,
                               &GpuIdentity::driver_version}) {
    if ((known.*attribute).empty()) known.*attribute = seen.*attribute;
  }
}

std::string whole_gpu_key(const GpuIdentity& gpu) {
  if (!gpu.uuid.empty() && !is_instance_uuid(gpu.uuid)) return "u" + normalized_uuid(gpu.uuid);
  // An index beside nothing but the instance's UUID may count instances.
  if (!gpu.uuid.empty() && gpu.mig_instance == gpu.uuid) return {};
  if (gpu.host.empty() || gpu.index.empty()) return {};
  return "i" + gpu.host + '\0' + gpu.index;
}

GpuIdentity whole_gpu(const GpuIdentity& instance) {
  GpuIdentity whole = instance;
  whole.mig_instance.clear();
  whole.mig_profile.clear();
  if (is_instance_uuid(whole.uuid)) whole.uuid.clear();
  return whole;
}

std::string normalized_bus_id(std::string_view bus_id) {
  std::string text = base::to_lower(bus_id);
  // The domain comes with four or eight digits, or not at all.
  const std::size_t device = text.rfind(':');
  const std::size_t bus = device == std::string::npos || device == 0 ? std::string::npos : text.rfind(':', device - 1);
  if (bus == std::string::npos) return text;
  const std::size_t digit = text.find_first_not_of('0');
  return digit >= bus ? text.substr(bus + 1) : text.substr(digit);
}

}  // namespace flopsight::samples
