#include <cstddef>
#include <cstdint>
#include <string_view>

#include "schedulers/gres.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::schedulers;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& counts : {gpus_of_tres(text), [&]() -> flopsight::base::Result<GpuCounts> {
                               auto gres = gpus_of_gres(text);
                               if (!gres.ok()) return gres.error();
                               return gres->counts;
                             }()}) {
    if (!counts.ok()) continue;
    std::uint64_t sum = 0;
    for (const GpuGroup& group : counts->groups) sum += group.count;
    if (!counts->groups.empty() && (!counts->count || (sum != *counts->count && sum <= UINT32_MAX)))
      __builtin_trap();
  }
  return 0;
}
