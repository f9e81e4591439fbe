// Any bytes as what is told of a job's model. What is read can be audited, and the answer is finite.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "audit/audit.h"
#include "audit/told_model.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto run = flopsight::audit::parse_told_model({reinterpret_cast<const char*>(data), size});
  if (!run.ok()) {
    FLOPSIGHT_CHECK(!run.error().message.empty());
    return 0;
  }
  flopsight::audit::Claim claim;
  claim.mfu_ratio = 0.4;
  claim.flops_per_second_per_gpu = 4e14;
  claim.tokens_per_second_per_gpu = 1e4;
  const auto audit = flopsight::audit::audit(*run, claim, {0.3, false}, flopsight::catalog::DeviceCatalog::builtin());
  FLOPSIGHT_CHECK(std::isfinite(audit.flops_per_token) && audit.flops_per_token >= 0);
  for (const auto& ranked : audit.hypotheses) FLOPSIGHT_CHECK(std::isfinite(ranked.hypothesis.ratio) && std::isfinite(ranked.distance_ratio));
  return 0;
}
