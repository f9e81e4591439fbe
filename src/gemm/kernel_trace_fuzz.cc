#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gemm/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  gemm::TraceReader reader;
  for (std::size_t at = 0; at < text.size(); at += 61) {
    if (!reader.feed(text.substr(at, 61)).ok()) return 0;
  }
  const auto summary = reader.finish(catalog::DeviceCatalog::builtin(), nullptr);
  if (!summary.ok()) {
    if (summary.error().message.empty()) __builtin_trap();
    return 0;
  }
  const auto overhead = summary->overhead_ratio();
  if (overhead && !(*overhead >= 1)) __builtin_trap();
  for (const gemm::TraceProduct& product : summary->products) {
    if (product.quantized.waves && !(product.quantized.waves->efficiency_ratio <= 1)) __builtin_trap();
  }
  return 0;
}
