#include "flops/conventions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

// What a formula over parameter counts leaves out and adds is said by rules: they come as near to it as norms, biases and early queries allow.
TEST(Conventions, the_nearest_rules_of_a_formula_make_its_figure) {
  for (const char* config : {"meta-llama--Meta-Llama-3.1-8B", "Qwen--Qwen3-30B-A3B", "made--Qwen3-0.6B", "made--Gemma-2-2B", "openai--gpt-oss-20b",
                             "deepseek-ai--DeepSeek-V3", "Qwen--Qwen3.5-397B-A17B", "made--GPT-2", "ai21labs--Jamba-v0.1"}) {
    const Model model = test::model_of(config);
    for (const Convention& convention : conventions()) {
      if (convention.name == "litgpt" || convention.name == "gpt_neox" || convention.name == "levanter" || convention.name == "hfu_full_recompute") continue;
      Workload workload;
      const auto figure = convention.cost(model, workload).flops_train;
      if (!figure) continue;
      EXPECT_NEAR(train_cost(model, workload, nearest_rules(convention, model)).total() / *figure, 1, 0.02) << config << " " << convention.name;
    }
  }
}

}  // namespace
}  // namespace flopsight::flops
