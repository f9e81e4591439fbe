#include "flops/gemms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "flops/adapters.h"
#include "flops/count.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::model_of;
using test::tokens;

double total(const std::vector<Gemm>& list, bool replicated_too = true) {
  double sum = 0;
  for (const Gemm& gemm : list) sum += gemm.replicated && !replicated_too ? 0 : gemm.flops();
  return sum;
}

std::vector<Gemm> gemms(const Model& model, const GemmOptions& options) {
  auto list = gemms_of(model, options);
  EXPECT_TRUE(list.ok()) << (list.ok() ? "" : list.error().message);
  return list.ok() ? *list : std::vector<Gemm>{};
}

// What the products of a model must add up to, for a token.
double matmul_flops(const Model& model, bool training) {
  const Cost cost = training ? train_cost(model, tokens(4096)) : forward_cost(model, tokens(4096));
  double cores = cost.of(Part::kAttentionCore) + cost.of(Part::kRecurrentCore) + cost.of(Part::kScan) + cost.of(Part::kConvolution);
  return cost.total() - cores;
}

TEST(Gemms, are_the_models_matrix_products) {
  for (const char* name : {"meta-llama--Meta-Llama-3.1-8B", "deepseek-ai--DeepSeek-V3", "openai--gpt-oss-20b", "ai21labs--Jamba-v0.1",
                           "nvidia--Nemotron-H-56B-Base-8K", "Qwen--Qwen3.5-397B-A17B"}) {
    const Model model = model_of(name);
    for (const bool fuse : {false, true}) {
      const GemmOptions forward{4096, 1, 1, fuse, false, 0}, both{4096, 1, 1, fuse, true, 0};
      EXPECT_NEAR(total(gemms(model, forward)) / (4096 * matmul_flops(model, false)), 1, 1e-12) << name;
      EXPECT_NEAR(total(gemms(model, both)) / (4096 * matmul_flops(model, true)), 1, 1e-12) << name;
    }
  }
}

TEST(Gemms, doubling_the_tokens_doubles_them) {
  const Model model = model_of("mistralai--Mixtral-8x7B-v0.1");
  EXPECT_DOUBLE_EQ(total(gemms(model, {8192, 1, 1})), 2 * total(gemms(model, {4096, 1, 1})));
}

TEST(Gemms, tensor_parallelism_conserves_flops) {
  for (const char* name : {"meta-llama--Meta-Llama-3.1-70B", "mistralai--Mixtral-8x7B-v0.1", "deepseek-ai--DeepSeek-V3", "nvidia--Nemotron-H-56B-Base-8K"}) {
    const Model model = model_of(name);
    const std::vector<Gemm> whole = gemms(model, {4096, 1, 1});
    for (const std::uint64_t degree : {2U, 4U, 8U}) {
      const std::vector<Gemm> part = gemms(model, {4096, degree, 1});
      const double replicated = total(part) - total(part, false);
      EXPECT_NEAR((total(part, false) * static_cast<double>(degree) + replicated) / total(whole), 1, 1e-12) << name << " " << degree;
    }
  }
}

TEST(Gemms, queries_and_keys_of_different_sequences_are_not_one_product) {
  const std::vector<Gemm> list = gemms(model_of("made--T5-small"), {512, 1, 1});
  const auto of_cross = [&](Operation operation) {
    return *std::find_if(list.begin(), list.end(), [&](const Gemm& g) {
      return g.layer == LayerKind::kCrossAttention && g.pass == Pass::kForward && std::find(g.operations.begin(), g.operations.end(), operation) != g.operations.end();
    });
  };
  EXPECT_EQ(of_cross(Operation::kQuery).operations.size(), 1u);
  EXPECT_EQ(of_cross(Operation::kKey).operations.size(), 2u) << "keys and values are of the source";
}

TEST(Gemms, experts_that_are_cut_over_fewer_gpus_share_the_tokens_of_their_group) {
  const Model model = model_of("mistralai--Mixtral-8x7B-v0.1");
  GemmOptions options{4096, 4, 8};
  const std::vector<Gemm> cut = gemms(model, options);
  options.expert_tensor_parallel = 1;
  const std::vector<Gemm> whole = gemms(model, options);
  EXPECT_NEAR(total(whole) / total(cut), 1, 1e-12);
  const auto up = [](const std::vector<Gemm>& list) {
    return *std::find_if(list.begin(), list.end(), [](const Gemm& g) { return g.expert == Expert::kRouted && g.pass == Pass::kForward; });
  };
  EXPECT_EQ(up(whole).m * 4, up(cut).m) << "a quarter of the tokens";
  EXPECT_EQ(up(whole).n, up(cut).n * 4) << "through the whole weight";
  options.expert_tensor_parallel = 3;
  EXPECT_EQ(gemms_of(model, options).error().message, "experts cut over 3 GPUs, expected a divisor of the 4 of tensor parallelism");
}

TEST(Gemms, expert_parallelism_conserves_flops) {
  const Model model = model_of("Qwen--Qwen3-30B-A3B");
  EXPECT_DOUBLE_EQ(total(gemms(model, {4096, 1, 8})), total(gemms(model, {4096, 1, 1})));
}

TEST(Gemms, of_llama_8b_by_hand) {
  const std::vector<Gemm> list = gemms(model_of("meta-llama--Meta-Llama-3.1-8B"), {8192, 2, 1});
  const auto find = [&](Operation operation, Pass pass) {
    for (const Gemm& gemm : list) {
      if (gemm.pass == pass && gemm.operations.front() == operation) return gemm;
    }
    return Gemm{};
  };
  const auto shape = [](const Gemm& g) { return std::vector<std::uint64_t>{g.m, g.n, g.k, g.count}; };
  EXPECT_EQ(shape(find(Operation::kQuery, Pass::kForward)), (std::vector<std::uint64_t>{8192, (4096 + 2 * 1024) / 2, 4096, 32}));
  EXPECT_EQ(shape(find(Operation::kGate, Pass::kForward)), (std::vector<std::uint64_t>{8192, 14336, 4096, 32}));
  EXPECT_EQ(shape(find(Operation::kDown, Pass::kForward)), (std::vector<std::uint64_t>{8192, 4096, 7168, 32}));
  EXPECT_EQ(shape(find(Operation::kDown, Pass::kInputGradient)), (std::vector<std::uint64_t>{8192, 7168, 4096, 32}));
  EXPECT_EQ(shape(find(Operation::kDown, Pass::kWeightGradient)), (std::vector<std::uint64_t>{7168, 4096, 8192, 32}));
  EXPECT_EQ(shape(find(Operation::kHead, Pass::kForward)), (std::vector<std::uint64_t>{8192, 64128, 4096, 1}));
  EXPECT_EQ(find(Operation::kQuery, Pass::kForward).operations.size(), 3U);
}

TEST(Gemms, frozen_weights_have_no_gradient) {
  const auto model = with_adapters(model_of("meta-llama--Meta-Llama-3.1-8B"), {16, {"q"}});
  ASSERT_TRUE(model.ok());
  const std::vector<Gemm> list = gemms(*model, {4096, 1, 1});
  for (const Gemm& gemm : list) {
    const bool adapter = gemm.operations.front() == Operation::kAdapterDown || gemm.operations.front() == Operation::kAdapterUp;
    EXPECT_TRUE(gemm.pass != Pass::kWeightGradient || adapter) << operation_name(gemm.operations.front());
  }
  EXPECT_NEAR(total(list) / (4096 * matmul_flops(*model, true)), 1, 1e-12);
}

TEST(Gemms, fewer_heads_of_keys_than_gpus_are_copied) {
  const std::vector<Gemm> list = gemms(model_of("Qwen--Qwen3-30B-A3B"), {4096, 8, 1, false, false, 0});
  for (const Gemm& gemm : list) {
    if (gemm.operations.front() == Operation::kKey) {
      EXPECT_EQ(gemm.n, 128U);
    }
  }
}

TEST(Gemms, sizes_that_do_not_divide_are_told) {
  const Model model = model_of("meta-llama--Meta-Llama-3.1-8B");
  EXPECT_EQ(gemms_of(model, {4096, 3, 1}).error().message, "attention: heads 32 of query cannot be divided by 3");
  EXPECT_FALSE(gemms_of(model, {0, 1, 1}).ok());
  EXPECT_FALSE(gemms_of(model, {16, 0, 1}).ok());
  EXPECT_FALSE(gemms_of(model, {16, 1, 65537}).ok());
  EXPECT_TRUE(gemms_of(model, {std::uint64_t{1} << 31, 1, 1}).ok());
  EXPECT_EQ(gemms_of(model, {(std::uint64_t{1} << 31) + 1, 1, 1}).error().message, "tokens of a micro-batch: 2147483649, expected 1 to 2147483648");
  EXPECT_FALSE(gemms_of(model_of("Qwen--Qwen3-30B-A3B"), {4096, 1, 3}).ok());
}

}  // namespace
}  // namespace flopsight::flops
