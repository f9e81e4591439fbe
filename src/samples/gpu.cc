#include "samples/gpu.h"

#include <charconv>

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

}  // namespace flopsight::samples
