#pragma once
// How trainers and people write whether activations are computed again. Threads: pure.

#include <optional>
#include <string_view>

#include "flops/count.h"

namespace flopsight::audit {

// "none", "selective" or "full"; nothing for others.
std::optional<flops::Recompute> parse_recompute(std::string_view name);

}  // namespace flopsight::audit
