#include "audit/names.h"

#include <utility>

#include "base/text.h"

namespace flopsight::audit {

std::optional<catalog::Precision> parse_precision(std::string_view name) {
  using catalog::Precision;
  constexpr std::pair<std::string_view, Precision> kNames[] = {
      {"bf16", Precision::kBf16}, {"bfloat16", Precision::kBf16}, {"fp16", Precision::kFp16},  {"float16", Precision::kFp16},
      {"fp8", Precision::kFp8},   {"mxfp8", Precision::kFp8},     {"fp4", Precision::kFp4},    {"nvfp4", Precision::kFp4},
      {"mxfp4", Precision::kFp4}, {"fp6", Precision::kFp6},       {"tf32", Precision::kTf32},  {"fp32", Precision::kFp32},
  };
  const std::string lower = base::to_lower(name);
  for (const auto& [known, precision] : kNames) {
    if (lower == known) return precision;
  }
  if (lower.starts_with("fp8_")) return Precision::kFp8;  // "fp8_mx", "fp8_cs": recipes of Megatron-Bridge
  return std::nullopt;
}

std::optional<flops::Recompute> parse_recompute(std::string_view name) {
  const std::string lower = base::to_lower(name);
  if (lower == "none") return flops::Recompute::kNone;
  if (lower == "selective") return flops::Recompute::kSelective;
  if (lower == "full") return flops::Recompute::kFull;
  return std::nullopt;
}

}  // namespace flopsight::audit
