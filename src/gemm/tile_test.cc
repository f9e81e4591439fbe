#include "gemm/tile.h"

#include <gtest/gtest.h>


namespace flopsight::gemm {
namespace {

using catalog::Precision;

Quantized of(const Shape& shape, const Tile& tile, std::optional<int> sms = std::nullopt) {
  const auto quantized = quantize(shape, tile, sms);
  EXPECT_TRUE(quantized.ok());
  return quantized.ok() ? *quantized : Quantized{};
}

// Overhead of square products for four tiles with k 64, to three decimals.
TEST(Tile, overhead_of_square_products) {
  struct Row {
    std::uint64_t n;
    double overhead[4];
  };
  const Tile tiles[] = {{128, 256, 64}, {128, 128, 64}, {64, 256, 64}, {320, 128, 64}};
  const Row rows[] = {
      {128, {2.000, 1.000, 2.000, 2.500}},  {192, {1.778, 1.778, 1.333, 2.222}}, {256, {1.000, 1.000, 1.000, 1.250}}, {257, {3.706, 2.780, 3.089, 2.316}},
      {320, {1.920, 1.440, 1.600, 1.200}},  {384, {1.333, 1.000, 1.333, 1.667}}, {512, {1.000, 1.000, 1.000, 1.250}}, {640, {1.200, 1.000, 1.200, 1.000}},
      {1000, {1.074, 1.074, 1.074, 1.342}}, {1025, {1.490, 1.341, 1.407, 1.490}}, {2000, {1.074, 1.074, 1.074, 1.174}}, {4000, {1.057, 1.057, 1.040, 1.073}},
      {4097, {1.112, 1.079, 1.095, 1.063}}, {8200, {1.052, 1.037, 1.044, 1.037}}, {4096, {1, 1, 1, 1.016}}, {8192, {1, 1, 1, 1.016}}, {16384, {1, 1, 1, 1.016}},
  };
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(of({row.n, row.n, row.n, 1}, tiles[i]).overhead_ratio(), row.overhead[i], 0.0005) << row.n << " with " << tile_text(tiles[i]);
      EXPECT_EQ(of({row.n, row.n, row.n, 1}, tiles[i]).overhead_ratio(), of({row.n, row.n, row.n, 1}, tiles[i].swapped()).overhead_ratio());
    }
  }
}

TEST(Tile, a_tile_of_256_on_384_is_a_third_of_overhead) {
  EXPECT_DOUBLE_EQ(of({384, 384, 384, 1}, {128, 256, 64}).overhead_ratio(), 512.0 / 384.0);
}

TEST(Tile, wave_efficiency_of_published_cases) {
  struct Case {
    std::uint64_t m, n;
    Tile tile;
    int sms;
    std::uint64_t ctas, waves;
    double efficiency;
  };
  const Case cases[] = {
      {4096, 4096, {128, 256, 64}, 132, 512, 4, 0.970},  {4224, 4096, {128, 256, 64}, 132, 528, 4, 1.000}, {4352, 4096, {128, 256, 64}, 132, 544, 5, 0.824},
      {8192, 28672, {128, 256, 64}, 132, 7168, 55, 0.987}, {1792, 1792, {256, 128, 64}, 108, 98, 1, 0.907}, {2048, 2048, {128, 256, 64}, 108, 128, 2, 0.593},
      {2048, 2048, {128, 256, 64}, 132, 128, 1, 0.970},  {2048, 2048, {128, 256, 64}, 148, 128, 1, 0.865}, {2048, 2048, {128, 256, 64}, 152, 128, 1, 0.842},
      {8192, 8192, {128, 256, 64}, 108, 2048, 19, 0.998}, {8192, 8192, {128, 256, 64}, 152, 2048, 14, 0.962},
  };
  for (const Case& c : cases) {
    const Quantized q = of({c.m, c.n, 4096, 1}, c.tile, c.sms);
    ASSERT_TRUE(q.waves);
    EXPECT_EQ(q.ctas, c.ctas);
    EXPECT_EQ(q.waves->waves, c.waves);
    EXPECT_NEAR(q.waves->efficiency_ratio, c.efficiency, 0.0006) << c.m << "x" << c.n;
  }
  // One row more: 112 tiles in two waves, and the tiles of the new row nearly empty.
  EXPECT_NEAR(of({1793, 1792, 4096, 1}, {256, 128, 64}, 108).efficiency_ratio(), 0.454, 0.001);
}

// A widely repeated claim has utilization rise from 61 to 94 % when a batch of 127 becomes 128. By tiles it is 0.8 %; what
// costs is one row too many.
TEST(Tile, a_batch_of_127_is_no_cliff_before_128) {
  const Tile tile{128, 128, 64};
  const double before = of({127, 8192, 8192, 1}, tile, 132).efficiency_ratio(), full = of({128, 8192, 8192, 1}, tile, 132).efficiency_ratio(), after = of({129, 8192, 8192, 1}, tile, 132).efficiency_ratio();
  EXPECT_NEAR(full / before, 128.0 / 127.0, 1e-12);
  EXPECT_LT(full / before, 1.008);
  EXPECT_NEAR(of({129, 8192, 8192, 1}, tile).efficiency_ratio(), 0.504, 0.001);
  // All in the same single wave of 132 SMs.
  EXPECT_NEAR(after / full, 129.0 / 128.0, 1e-9);
  // In training m is batch x sequence, so 127 sequences of 4096 are whole tiles.
  EXPECT_EQ(of({127 * 4096, 8192, 8192, 1}, tile).overhead_ratio(), 1.0);
}

TEST(Tile, a_batch_of_products_is_tiles_of_each) {
  const Quantized q = of({160, 300, 40, 2048}, {64, 256, 16}, 108);
  EXPECT_EQ(q.ctas, 2048u * 3 * 2);
  EXPECT_DOUBLE_EQ(q.overhead_ratio(), 192.0 * 512 * 48 / (160.0 * 300 * 40));
}

TEST(Tile, without_its_k_a_tile_does_not_pad_k) {
  EXPECT_EQ(of({256, 256, 257, 1}, {128, 128, 0}).overhead_ratio(), 1.0);
}

TEST(Tile, impossible_sizes_are_refused) {
  const Tile tile{128, 128, 64};
  EXPECT_EQ(quantize({0, 1, 1, 1}, tile, 132).error().message, "m 0: expected 1 or more");
  EXPECT_EQ(quantize({1, 1, 0, 1}, tile, 132).error().message, "k 0: expected 1 or more");
  EXPECT_EQ(quantize({1, kDimensionMax + 1, 1, 1}, tile, 132).error().code, base::ErrorCode::kLimit);
  EXPECT_TRUE(quantize({kDimensionMax, kDimensionMax, kDimensionMax, 1}, tile, 132).ok());
  EXPECT_EQ(quantize({kDimensionMax, kDimensionMax, 1, kDimensionMax}, {1, 1, 1}, 132).error().code, base::ErrorCode::kLimit);
  EXPECT_FALSE(quantize({1, 1, 1, 1}, {0, 128, 64}, 132).ok());
}

TEST(Tile, is_read_as_text) {
  EXPECT_EQ(*parse_tile("128x256x64"), (Tile{128, 256, 64}));
  EXPECT_EQ(*parse_tile("64x8"), (Tile{64, 8, 0}));
  EXPECT_EQ(*parse_tile("cublaslt:23"), (Tile{128, 256, 0}));
  EXPECT_EQ(*parse_tile("cublaslt:634"), (Tile{512, 1024, 0}));
  EXPECT_EQ(tile_k_of_cublaslt_stages(15), 64U);
  EXPECT_EQ(tile_k_of_cublaslt_stages(29), std::nullopt);
  for (const char* wrong : {"", "128", "0x128", "128x", "x128", "128x128x64x1", "128X128", "-1x128", "1e2x128", "128x4097", "cublaslt:0", "cublaslt:635", "cublaslt:", "128x128x0", " 1x1", "1x1 "}) {
    EXPECT_FALSE(parse_tile(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace flopsight::gemm
