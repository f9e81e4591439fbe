// Any bytes as a user's rows of the GPU catalogue, and then as a GPU name. Every model that is read is found
// under its own name, with numbers that are above zero.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "catalog/devices.h"

namespace {

using flopsight::catalog::Device;
using flopsight::catalog::DeviceCatalog;

template <typename Quantity>
void check_positive(const std::optional<Quantity>& quantity) {
  if (quantity) FLOPSIGHT_CHECK(quantity->value > 0 && std::isfinite(quantity->value));
}

void check_device(const Device& device) {
  FLOPSIGHT_CHECK(!device.model.empty());
  FLOPSIGHT_CHECK(!device.sm_count || *device.sm_count > 0);
  check_positive(device.nvml_max_sm_clock);
  check_positive(device.tensor_peak_clock);
  check_positive(device.memory_bandwidth);
  check_positive(device.board_power);
  for (const auto& peak : device.peak_dense) check_positive(peak);
  FLOPSIGHT_CHECK(device.mig_slices() == 4 || device.mig_slices() == 7);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Device* named = DeviceCatalog::builtin().find(text);
  FLOPSIGHT_CHECK(named == nullptr || !named->from_user);
  const auto catalog = DeviceCatalog::with_user_rows(text);
  if (!catalog.ok()) {
    FLOPSIGHT_CHECK(!catalog.error().message.empty());
    FLOPSIGHT_CHECK(catalog.error().message.find('\n') == std::string::npos);
    return 0;
  }
  FLOPSIGHT_CHECK(catalog->devices().size() >= DeviceCatalog::builtin().devices().size());
  for (const Device& device : catalog->devices()) {
    if (!device.from_user) continue;
    check_device(device);
    (void)catalog->find(device.model);
  }
  return 0;
}
