// Known mistakes, and by how much they are off at 8192 tokens unless said otherwise.
#include "flops/rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/count.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::model_of;
using test::tokens;

const std::string kLlama8 = "made--Llama-3-8B", kLlama70 = "made--Llama-3-70B", kMixtral = "mistralai--Mixtral-8x7B-v0.1",
                  kQwen30 = "Qwen--Qwen3-30B-A3B", kQwen235 = "made--Qwen3-235B-A22B", kV3 = "deepseek-ai--DeepSeek-V3",
                  kNano = "made--Nemotron-3-Nano-30B-A3B", kSuper = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
                  kNemotronH = "made--Nemotron-H-8B", kOss = "made--gpt-oss-120b", kGemma = "made--Gemma-3-27B",
                  kNext = "made--Qwen3-Next-80B-A3B";

struct Case {
  const char* what;
  std::string model;
  std::uint64_t sequence_tokens;
  double ratio;  // wrong over right
  std::function<void(CountingRules&)> mistake;
  double tolerance = 6e-3;
};

using R = CountingRules;
const auto latent = [](R& r) { r.ignore_latent = true; };
const auto all = [](R& r) { r.experts = ExpertRule::kAll; };
const auto one = [](R& r) { r.experts = ExpertRule::kOne; };
const auto none = [](R& r) { r.ignore_moe_layers = true; };
const auto hybrid = [](R& r) { r.hybrid_as_attention = true; };
const auto recurrent = [](R& r) { r.recurrent_layers_as_attention = true; };
const auto width = [](R& r) { r.recurrent_width_twice_hidden = true; };
const auto three = [](R& r) { r.matrices = MatrixRule::kThree; };
const auto two = [](R& r) { r.matrices = MatrixRule::kTwo; };
const auto four = [](R& r) { r.matrices = MatrixRule::kTwoOfFourHidden; };
const auto heads = [](R& r) { r.kv_heads_as_heads = true; };
const auto dim = [](R& r) { r.head_dim_from_hidden = true; };
const auto full = [](R& r) { r.causal = CausalRule::kFull; };
const auto window = [](R& r) { r.window = WindowRule::kIgnored; };
const auto both = [](R& r) { full(r), window(r); };
const auto mha = [](std::uint64_t head_dim) { return [head_dim](R& r) { r.latent_attention_as_head_dim = head_dim; }; };
const auto shared = [](R& r) { r.ignore_shared_experts = true; };
const auto dense = [](R& r) { r.experts_at_intermediate_size = true; };
const auto embedding = [](R& r) { r.count_embedding = true; };
const auto head = [](R& r) { r.count_head = false; };
const auto no_attention = [](R& r) { r.causal = CausalRule::kNone; };

const std::vector<Case> kCases = {
    {"latent ignored", kSuper, 8192, 2.124, latent},
    {"all experts", kMixtral, 8192, 3.45, all, 0.02},
    {"all experts", kQwen30, 8192, 6.84, all, 0.05},
    {"all experts", kNano, 8192, 9.07, all, 0.09},
    {"all experts", kV3, 8192, 14.5, all, 0.15},
    {"one expert", kMixtral, 8192, 0.592, one},
    {"one expert", kQwen30, 8192, 0.659, one},
    {"one expert", kV3, 8192, 0.618, one, 0.05},
    {"no MoE layers", kNano, 8192, 0.468, none},
    {"no MoE layers", kSuper, 8192, 0.444, none},
    {"hybrid as transformer", kNemotronH, 8192, 1.75, hybrid},
    {"hybrid as transformer", kNemotronH, 131072, 4.07, hybrid, 0.02},
    {"hybrid as transformer", kNano, 8192, 2.15, hybrid, 0.02},
    {"hybrid as transformer", kSuper, 8192, 1.73, hybrid, 0.02},
    {"recurrent layers as attention", kNemotronH, 8192, 0.885, recurrent},
    {"recurrent layers as attention", kNemotronH, 32768, 1.19, recurrent},
    {"recurrent layers as attention", kNemotronH, 131072, 2.14, recurrent},
    {"recurrent layers as attention", kNano, 131072, 2.84, recurrent, 0.02},
    {"width 2h", kNano, 8192, 1.072, width},
    {"width 2h", kNemotronH, 8192, 1.000, width},
    {"ungated as gated", kNemotronH, 8192, 1.27, three},
    {"ungated as gated", kNano, 8192, 1.27, three, 0.02},
    {"gated as two matrices", kLlama8, 8192, 0.781, two},
    {"gated as two matrices", kLlama70, 8192, 0.749, two},
    {"gated as two matrices", kMixtral, 8192, 0.728, two},
    {"gated as two matrices", kOss, 8192, 0.792, two},
    {"gated as two matrices", kQwen30, 8192, 0.870, two},
    {"4h, two matrices", kLlama8, 8192, 0.844, four},
    {"GQA ignored", kLlama8, 8192, 1.094, heads},
    {"GQA ignored", kLlama70, 8192, 1.125, heads},
    {"GQA ignored", kMixtral, 8192, 1.058, heads},
    {"GQA ignored", kQwen30, 8192, 1.151, heads},
    {"head size h/heads", kQwen30, 4096, 0.778, dim},
    {"head size h/heads", kQwen30, 32768, 0.613, dim},
    {"head size h/heads", kQwen235, 4096, 0.801, dim},
    {"head size h/heads", kQwen235, 32768, 0.659, dim},
    {"head size h/heads", kOss, 8192, 0.931, dim, 0.02},
    {"head size h/heads", kGemma, 8192, 1.05, dim},
    {"causal counted full", kLlama8, 4096, 1.067, full},
    {"causal counted full", kLlama8, 8192, 1.125, full},
    {"causal counted full", kLlama8, 131072, 1.70, full},
    {"causal counted full", kLlama70, 131072, 1.55, full},
    {"causal counted full", kV3, 8192, 1.218, full},
    {"window ignored", kOss, 4096, 1.05, window},
    {"window ignored", kOss, 131072, 1.65, window},
    {"window ignored", kGemma, 131072, 1.84, window},
    {"window and causal ignored", kOss, 8192, 1.31, both},
    {"window and causal ignored", kGemma, 131072, 2.85, both},
    {"MLA as MHA of 56", kV3, 4096, 0.947, mha(0)},
    {"MLA as MHA of 56", kV3, 131072, 0.474, mha(0)},
    {"MLA as MHA of 128", kV3, 4096, 1.39, mha(128)},
    {"MLA as MHA of 192", kV3, 4096, 1.78, mha(192)},
    {"shared expert ignored", kV3, 8192, 0.945, shared},
    {"shared expert ignored", kNano, 8192, 0.868, shared},
    {"shared expert ignored", kSuper, 8192, 0.861, shared},
    {"shared expert ignored", kNext, 8192, 0.963, shared},
    {"experts at intermediate_size", kV3, 8192, 4.92, dense, 0.02},
    {"experts at intermediate_size", kQwen30, 4096, 4.30, dense, 0.02},
    {"embedding counted", kLlama8, 8192, 1.061, embedding},
    {"embedding counted", kNano, 8192, 1.102, embedding},
    {"head dropped", kQwen30, 8192, 0.933, head},
    {"head dropped", kGemma, 8192, 0.949, head},
    // 6N of the table holds norms and the embedding; this leaves attention out of the audit's count.
    {"no attention", kLlama8, 131072, 0.304, no_attention},
};

TEST(Rules, mistakes_are_off_by_what_they_are_known_to_be_off) {
  for (const Case& c : kCases) {
    const Model model = model_of(c.model);
    CountingRules rules;
    c.mistake(rules);
    const double ratio = train_cost(model, tokens(c.sequence_tokens), rules).total() / train_cost(model, tokens(c.sequence_tokens)).total();
    EXPECT_NEAR(ratio, c.ratio, c.tolerance) << c.what << " " << c.model << " " << c.sequence_tokens;
  }
}

TEST(Rules, a_mistake_that_cannot_be_made_with_a_model_changes_nothing) {
  const Model model = model_of(kLlama8);
  const double right = train_cost(model, tokens(8192)).total();
  for (const Case& c : kCases) {
    if (!std::string_view(c.what).starts_with("latent") && !std::string_view(c.what).starts_with("hybrid") &&
        !std::string_view(c.what).starts_with("MLA") && !std::string_view(c.what).starts_with("all") &&
        !std::string_view(c.what).starts_with("window ignored") && !std::string_view(c.what).starts_with("shared")) {
      continue;
    }
    CountingRules rules;
    c.mistake(rules);
    EXPECT_EQ(train_cost(model, tokens(8192), rules).total(), right) << c.what;
  }
}

TEST(Rules, adapters_taken_for_full_training) {
  for (const auto& [name, sequence_tokens, ratio] : {std::tuple{kLlama8, 4096, 1.45}, {kLlama8, 8192, 1.41}, {kLlama70, 4096, 1.47}, {kLlama70, 8192, 1.45}}) {
    const auto model = with_adapters(model_of(name), {1, {"q"}});
    ASSERT_TRUE(model.ok());
    CountingRules rules;
    rules.frozen_as_trained = true;
    const auto workload = tokens(static_cast<std::uint64_t>(sequence_tokens));
    EXPECT_NEAR(train_cost(*model, workload, rules).total() / train_cost(*model, workload).total(), ratio, 0.01) << name;
    EXPECT_DOUBLE_EQ(train_cost(*model, workload, rules).total(), train_cost(model_of(name), workload).total());
  }
}

TEST(Rules, what_others_print_for_adapters) {
  const Model whole = model_of(kLlama8);
  const Model adapted = *with_adapters(whole, {16, {"q", "v"}});
  const auto train = [](const char* name, const Model& model) { return *find_convention(name)->cost(model, tokens(4096)).flops_train; };
  for (const char* name : {"megatron", "megatron_bridge", "maxtext", "verl", "levanter"}) EXPECT_EQ(train(name, adapted), train(name, whole)) << name;
  EXPECT_EQ(find_convention("nemo")->cost(adapted, tokens(4096)).absent_reason, "NeMo refuses to count training of adapters");
  EXPECT_NEAR(train("litgpt", adapted) / train("litgpt", whole), 43.0 / 59, 0.01);  // 4N + 5 of attention for 6N + 5
  EXPECT_LT(train("audit_causal", adapted), 0.71 * train("audit_causal", whole));
}

TEST(Rules, mistakes_are_told_from_ways_of_counting) {
  CountingRules rules;
  rules.causal = CausalRule::kFull;
  rules.count_router = false;
  EXPECT_FALSE(rules.has_mistakes());
  rules.ignore_latent = true;
  EXPECT_TRUE(rules.has_mistakes());
  EXPECT_FALSE(rules.without_mistakes().has_mistakes());
  EXPECT_EQ(rules.without_mistakes().causal, CausalRule::kFull);
}

}  // namespace
}  // namespace flopsight::flops
