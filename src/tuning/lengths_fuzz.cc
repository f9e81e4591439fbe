// Any bytes as lengths of documents. What is read can be packed and padded, with finite figures.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tuning/formulas.h"
#include "tuning/lengths.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lengths = flopsight::tuning::read_lengths({reinterpret_cast<const char*>(data), size});
  if (!lengths.ok()) {
    FLOPSIGHT_CHECK(!lengths.error().message.empty());
    return 0;
  }
  const double efficiency = flopsight::tuning::packing_efficiency_ratio(*lengths, 4096);
  FLOPSIGHT_CHECK(efficiency >= 0 && efficiency <= 1 + 1e-9);
  FLOPSIGHT_CHECK(std::isfinite(flopsight::tuning::padded_in_batch_ratio(*lengths, 8)));
  return 0;
}
