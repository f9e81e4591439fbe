#include "gemm/tile_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "gemm/test_traces.h"

namespace flopsight::gemm {
namespace {

using catalog::Precision;

const catalog::Device& device(const char* name) { return *catalog::DeviceCatalog::builtin().find(name); }

struct Score {
  std::size_t shapes = 0;
  double same_ratio = 0;
  double overhead_error_ratio = 0;
  double overhead_of_all_ratio = 0;
};

// Of m and n alone: k's padding comes with the kernel's stages, which are not modelled.
double padded(const Shape& shape, const Tile& tile) { return quantize(shape, {tile.m, tile.n, 0}, std::nullopt)->overhead_ratio(); }

// Over distinct shapes and kernels, each once, as it was fitted.
Score score(const char* trace_name) {
  const auto trace = test::read_text(test::fixture_text(trace_name));
  EXPECT_TRUE(trace.ok());
  Score out;
  double modelled = 0, real = 0;
  for (const TraceProduct& product : trace->products) {
    const ChosenTile chosen = choose_tile(product.shape, Precision::kTf32, device("NVIDIA A100-SXM4-80GB"), 108);
    const double a = padded(product.shape, product.tile), b = padded(product.shape, chosen.tile);
    ++out.shapes;
    out.same_ratio += chosen.tile.m == product.tile.m && chosen.tile.n == product.tile.n ? 1 : 0;
    out.overhead_error_ratio += std::abs(b / a - 1);
    real += product.quantized.theoretical_flops * a;
    modelled += product.quantized.theoretical_flops * b;
  }
  out.same_ratio /= static_cast<double>(out.shapes);
  out.overhead_error_ratio /= static_cast<double>(out.shapes);
  out.overhead_of_all_ratio = modelled / real;
  return out;
}

TEST(TileChoice, what_is_said_of_its_accuracy_is_measured_on_a_trace_it_was_not_fitted_on) {
  const Score scored = score(test::kScored);
  const auto said = measured_accuracy(device("NVIDIA A100-SXM4-80GB"), Precision::kTf32);
  ASSERT_TRUE(said);
  EXPECT_EQ(scored.shapes, 145u);
  EXPECT_NEAR(scored.same_ratio, said->same_tile_ratio, 0.01);
  EXPECT_NEAR(scored.overhead_error_ratio, said->overhead_error_ratio, 0.005);
  EXPECT_NEAR(scored.overhead_of_all_ratio, said->overhead_of_all_ratio, 0.01);
}

TEST(TileChoice, is_better_where_it_was_fitted) {
  const Score fitted = score(test::kFitted);
  EXPECT_EQ(fitted.shapes, 126u);
  EXPECT_GT(fitted.same_ratio, 0.75);
  EXPECT_LT(fitted.overhead_error_ratio, 0.01);
}

TEST(TileChoice, accuracy_is_not_said_of_what_was_not_measured) {
  EXPECT_FALSE(measured_accuracy(device("NVIDIA A100-SXM4-80GB"), Precision::kBf16));
  EXPECT_FALSE(measured_accuracy(device("NVIDIA H100 80GB HBM3"), Precision::kTf32));
  EXPECT_FALSE(measured_accuracy(device("NVIDIA A30"), Precision::kTf32));
}

TEST(TileChoice, thin_shapes_get_thin_tiles_on_hopper) {
  EXPECT_EQ(choose_tile({1, 8192, 8192, 1}, Precision::kBf16, device("NVIDIA H100 80GB HBM3"), 132).tile, (Tile{8, 64, 64}));
  EXPECT_EQ(choose_tile({8192, 16, 8192, 1}, Precision::kFp8, device("NVIDIA H100 80GB HBM3"), 132).tile, (Tile{64, 16, 128}));
  EXPECT_GE(choose_tile({1, 8192, 8192, 1}, Precision::kBf16, device("NVIDIA A100-SXM4-80GB"), 108).tile.m, 64u);
}

TEST(TileChoice, the_largest_shapes_have_one) {
  for (const Shape& shape : {Shape{kDimensionMax, kDimensionMax, kDimensionMax, 1}, Shape{1, 1, 1, kDimensionMax}, Shape{1, 1, 1, 1}}) {
    EXPECT_GE(choose_tile(shape, Precision::kBf16, device("NVIDIA A100-SXM4-80GB"), std::nullopt).tile.m, 64u);
  }
}

}  // namespace
}  // namespace flopsight::gemm
