// Any bytes as a config.json. What is read has sizes that add up: every count is finite, a wrong count comes out of every mistake, and
// GEMMs are those of the layers; what is not read is told in one line.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/gemms.h"
#include "flops/hf_config.h"

namespace {

namespace flops = flopsight::flops;

void check_model(const flops::Model& model) {
  const flops::Parameters p = flops::count_parameters(model);
  FLOPSIGHT_CHECK(p.total >= p.vision && p.text() >= p.embedding);
  flops::Workload workload;
  workload.sequence.tokens = 4096;
  workload.prediction_steps = model.prediction_steps;
  for (const flops::Convention& convention : flops::conventions()) {
    const flops::ConventionCost cost = flops::convention_cost(convention, model, workload);
    FLOPSIGHT_CHECK(cost.flops_train.has_value() != !cost.absent_reason.empty());
    if (cost.flops_train) FLOPSIGHT_CHECK(std::isfinite(*cost.flops_train) && *cost.flops_train >= 0);
  }
  flops::CountingRules rules;
  rules.hybrid_as_attention = rules.kv_heads_as_heads = rules.ignore_latent = rules.recurrent_width_twice_hidden = rules.experts_at_intermediate_size = true;
  rules.matrices = flops::MatrixRule::kThree;
  rules.latent_attention_as_head_dim = 0;
  FLOPSIGHT_CHECK(std::isfinite(flops::train_cost(model, workload, rules).total()));
  FLOPSIGHT_CHECK(std::isfinite(flops::vision_forward_per_image(model).total()));
  flops::count_cache(model);
  (void)flops::gemms_of(model, {4096, 2, 2});
  (void)flops::with_adapters(model, {8, {"all"}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = flops::read_hf_config(text);
  if (model.ok()) {
    check_model(*model);
  } else {
    FLOPSIGHT_CHECK(!model.error().message.empty());
    FLOPSIGHT_CHECK(model.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
