// Any bytes as a price list. A price that is read is a number, zero or more, and the same for every question.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/prices.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto prices = flopsight::analysis::Prices::parse(text);
  if (!prices.ok()) {
    FLOPSIGHT_CHECK(!prices.error().message.empty());
    FLOPSIGHT_CHECK(prices.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const std::string_view model : {"H100-SXM5-80GB", "*", "x", "", "a"}) {
    const auto usd = prices->of(model, "NVIDIA H100 80GB HBM3");
    if (!usd) continue;
    FLOPSIGHT_CHECK(usd->value >= 0 && std::isfinite(usd->value));
    FLOPSIGHT_CHECK(!prices->empty());
  }
  return 0;
}
