#include "gemm/suggest.h"

#include <gtest/gtest.h>

#include "gemm/attainable.h"
#include "gemm/tile_choice.h"

namespace flopsight::gemm {
namespace {

using catalog::Precision;

std::optional<Suggestion> by_tile(const Shape& shape, const Tile& tile, Precision precision, std::optional<int> sm_count) {
  return suggest(shape, tile, precision, predict_by_tile(tile, 1, sm_count));
}

TEST(Suggest, never_further_than_an_eighth_from_the_size_that_was_asked_about) {
  for (const std::uint64_t size : {1u, 3u, 7u, 9u, 33u, 57u, 63u, 100u, 127u, 513u, 1001u, 4097u, 50257u}) {
    for (const std::size_t dimension : {0u, 1u, 2u}) {
      Shape shape{4096, 4096, 4096, 1};
      (dimension == 0 ? shape.m : dimension == 1 ? shape.n : shape.k) = size;
      for (const Precision precision : {Precision::kBf16, Precision::kFp8, Precision::kFp4, Precision::kTf32}) {
        const auto s = by_tile(shape, {128, 256, 64}, precision, 132);
        if (!s) continue;
        const std::uint64_t to = s->dimension == 'm' ? s->shape.m : s->dimension == 'n' ? s->shape.n : s->shape.k;
        EXPECT_LE(to > s->from ? to - s->from : s->from - to, s->from / 8) << s->dimension << " " << s->from << " to " << to;
      }
    }
  }
}

TEST(Suggest, the_next_tile_for_one_row_too_few) {
  const auto s = by_tile({127, 8192, 8192, 1}, {128, 128, 64}, Precision::kBf16, 132);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->dimension, 'm');
  EXPECT_EQ(s->shape.m, 128u);
  EXPECT_NEAR(s->gain_ratio, 1.00787, 1e-4);
  EXPECT_EQ(s->reason, Reason::kTile);
}

TEST(Suggest, a_vocabulary_is_padded_for_alignment) {
  const auto s = by_tile({8192, 50257, 768, 1}, {128, 128, 64}, Precision::kBf16, std::nullopt);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->dimension, 'n');
  EXPECT_EQ(s->shape.n, 50304u);
  EXPECT_TRUE(s->aligns);
  EXPECT_EQ(s->reason, Reason::kAlignment);
  EXPECT_LT(s->gain_ratio, 1.005);
}

TEST(Suggest, a_wave_that_is_nearly_empty_is_left_out) {
  const auto s = by_tile({4352, 4096, 4096, 1}, {128, 256, 64}, Precision::kBf16, 132);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->reason, Reason::kWave);
  EXPECT_GT(s->gain_ratio, 1.19);
  EXPECT_EQ(s->quantized.waves->efficiency_ratio, 1.0);
}

TEST(Suggest, nothing_for_a_shape_that_fits) {
  EXPECT_FALSE(by_tile({4224, 4096, 4096, 1}, {128, 256, 64}, Precision::kBf16, 132));
}

TEST(Suggest, one_row_into_the_next_tile_costs_nothing_where_it_fills_a_single_wave) {
  EXPECT_FALSE(by_tile({129, 4096, 4096, 1}, {128, 128, 64}, Precision::kBf16, 132)) << "32 tiles are no faster than 64 on 132 SMs";
  EXPECT_FALSE(by_tile({130, 512, 512, 1}, {128, 128, 64}, Precision::kBf16, 132));
  const auto without_waves = by_tile({129, 4096, 4096, 1}, {128, 128, 64}, Precision::kBf16, std::nullopt);
  ASSERT_TRUE(without_waves);
  EXPECT_NEAR(without_waves->gain_ratio, 256.0 / 129, 1e-9) << "by tiles, which is all that is known";
}

TEST(Suggest, a_single_wave_is_not_filled_up) {
  const auto s = by_tile({128, 4000, 4096, 1}, {128, 128, 64}, Precision::kBf16, 132);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->shape.n, 4096u) << "the tiles at hand, used whole";
  EXPECT_FALSE(by_tile({128, 4096, 4096, 1}, {128, 128, 64}, Precision::kBf16, 132));
}

Predict predict_on(const catalog::Device& device, std::optional<Tile> given) {
  return [&device, given](const Shape& shape) -> std::optional<Prediction> {
    const ChosenTile chosen = given ? ChosenTile{*given, 1} : choose_tile(shape, Precision::kBf16, device, device.sm_count);
    return Prediction{*quantize(shape, chosen.tile, device.sm_count, chosen.splits), *predicted_rate(shape, chosen.tile, chosen.splits, Precision::kBf16, device)};
  };
}

TEST(Suggest, the_gain_is_what_is_predicted_of_both_shapes_and_never_denied_by_either_figure) {
  const catalog::Device& h100 = *catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3");
  std::size_t made = 0;
  for (const std::optional<Tile> given : {std::optional<Tile>(), std::optional<Tile>(Tile{128, 128, 64}), std::optional<Tile>(Tile{128, 256, 64})}) {
    const Predict predict = predict_on(h100, given);
    for (const std::uint64_t m : {1u, 63u, 127u, 129u, 130u, 257u, 1000u, 4352u, 8193u}) {
      for (const std::uint64_t n : {512u, 1001u, 4096u, 4100u, 14336u, 50257u}) {
        for (const std::uint64_t k : {65u, 512u, 520u, 4096u, 11008u}) {
          const Shape shape{m, n, k, 1};
          const auto now = predict(shape);
          const Tile tile = given ? *given : choose_tile(shape, Precision::kBf16, h100, h100.sm_count).tile;
          const auto s = suggest(shape, tile, Precision::kBf16, predict);
          if (!s) continue;
          const auto then = predict(s->shape);
          ++made;
          const std::string what = std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + ", " + s->dimension;
          EXPECT_NEAR(s->gain_ratio, *then->rate / *now->rate, 1e-12) << what;
          if (s->reason == Reason::kAlignment) continue;
          EXPECT_GE(s->gain_ratio, 1.005) << what;
          EXPECT_GE(then->quantized.efficiency_ratio() / now->quantized.efficiency_ratio(), 1.005) << what;
        }
      }
    }
  }
  EXPECT_GT(made, 100u);
}

}  // namespace
}  // namespace flopsight::gemm
