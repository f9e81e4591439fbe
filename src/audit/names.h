#pragma once
// How trainers and people write the settings of a run that an audit needs. Threads: pure.

#include <optional>
#include <string_view>

#include "catalog/devices.h"
#include "flops/count.h"

namespace flopsight::audit {

// "bf16", "fp8", "mxfp8", "nvfp4", …; nothing for what is none.
std::optional<catalog::Precision> parse_precision(std::string_view name);
// "none", "selective" or "full"; nothing for others.
std::optional<flops::Recompute> parse_recompute(std::string_view name);

}  // namespace flopsight::audit
