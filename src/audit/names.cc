#include "audit/names.h"

#include "base/text.h"

namespace flopsight::audit {

std::optional<flops::Recompute> parse_recompute(std::string_view name) {
  const std::string lower = base::to_lower(name);
  if (lower == "none") return flops::Recompute::kNone;
  if (lower == "selective") return flops::Recompute::kSelective;
  if (lower == "full") return flops::Recompute::kFull;
  return std::nullopt;
}

}  // namespace flopsight::audit
