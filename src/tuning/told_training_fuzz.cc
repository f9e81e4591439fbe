// Any bytes as what is told of a job's training. What is read becomes settings that fit the GPUs, or a line that says why not.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tuning/told_training.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto told = flopsight::tuning::parse_told_training({reinterpret_cast<const char*>(data), size});
  if (!told.ok()) {
    FLOPSIGHT_CHECK(!told.error().message.empty());
    return 0;
  }
  std::vector<std::string> assumed;
  for (const std::uint64_t gpus : {1U, 8U, 1536U}) {
    const auto settings = flopsight::tuning::settings_of(*told, gpus, assumed);
    if (!settings.ok()) FLOPSIGHT_CHECK(!settings.error().message.empty());
    if (settings.ok()) FLOPSIGHT_CHECK(settings->layout.tensor * settings->layout.pipeline * settings->layout.context * settings->layout.data == gpus);
  }
  return 0;
}
