#include "gemm/suggest.h"

#include <cmath>
#include <vector>

namespace flopsight::gemm {
namespace {

constexpr double kGainLeast = 1.005;
constexpr double kChangeMax = 0.125;
constexpr std::uint64_t kTilesAround = 8;  // tiles up and down that are looked at

std::uint64_t Shape::* const kDimensions[] = {&Shape::m, &Shape::n, &Shape::k};
std::uint64_t Tile::* const kSides[] = {&Tile::m, &Tile::n, &Tile::k};
constexpr char kNames[] = {'m', 'n', 'k'};

std::uint64_t multiple_up(std::uint64_t size, std::uint64_t step) { return (size + step - 1) / step * step; }

std::uint64_t row_elements(catalog::Precision precision, double bytes) {
  const double elements = bytes / element_bytes(precision);
  return precision == catalog::Precision::kFp6 ? static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(elements);
}

bool near(std::uint64_t from, std::uint64_t to) {
  const double a = static_cast<double>(from), b = static_cast<double>(to);
  return to > 0 && to != from && to <= kDimensionMax && std::abs(b - a) <= kChangeMax * a;
}

std::vector<std::uint64_t> sizes_near(std::uint64_t size, std::uint64_t side) {
  std::vector<std::uint64_t> sizes;
  if (side == 0) return sizes;
  const std::uint64_t up = multiple_up(size, side);
  for (std::uint64_t i = 0; i <= 2 * kTilesAround; ++i) {
    const std::uint64_t tiles = up / side + i;
    if (tiles <= kTilesAround) continue;
    const std::uint64_t to = (tiles - kTilesAround) * side;
    if (near(size, to)) sizes.push_back(to);
  }
  return sizes;
}

struct Search {
  const Shape& shape;
  catalog::Precision precision;
  const Predict& predict;
  Prediction now;

  std::optional<Suggestion> at(std::size_t dimension, std::uint64_t to) const {
    Suggestion out;
    out.dimension = kNames[dimension];
    out.from = shape.*kDimensions[dimension];
    out.shape = shape;
    out.shape.*kDimensions[dimension] = to;
    const auto then = predict(out.shape);
    if (!then) return std::nullopt;
    out.quantized = then->quantized;
    out.gain_ratio = now.rate && then->rate ? *then->rate / *now.rate : by_tiles_and_waves_ratio_of(out);
    out.aligns = dimension != 0 && out.from % row_elements(precision, 16) != 0 && to % row_elements(precision, 128) == 0;
    const double by_tiles = now.quantized.overhead_ratio() / out.quantized.overhead_ratio();
    out.reason = by_tiles >= std::sqrt(out.gain_ratio) ? Reason::kTile : Reason::kWave;
    return out;
  }

  double by_tiles_and_waves_ratio_of(const Suggestion& s) const { return s.quantized.efficiency_ratio() / now.quantized.efficiency_ratio(); }

  bool gains(const Suggestion& s) const {
    const bool more_in_one_wave = now.quantized.waves && now.quantized.waves->waves == 1 && s.quantized.executed_flops > now.quantized.executed_flops * (1 + 1e-9);
    return !more_in_one_wave && s.gain_ratio >= kGainLeast && by_tiles_and_waves_ratio_of(s) >= kGainLeast;
  }
};

}  // namespace

std::string_view reason_name(Reason reason) {
  return reason == Reason::kTile ? "tile" : reason == Reason::kWave ? "wave" : "alignment";
}

Predict predict_by_tile(const Tile& tile, std::uint64_t splits, std::optional<int> sm_count) {
  return [tile, splits, sm_count](const Shape& shape) -> std::optional<Prediction> {
    const auto quantized = quantize(shape, tile, sm_count, splits);
    if (!quantized.ok()) return std::nullopt;
    return Prediction{*quantized, std::nullopt};
  };
}

std::optional<Suggestion> suggest(const Shape& shape, const Tile& tile, catalog::Precision precision, const Predict& predict) {
  const auto now = predict(shape);
  if (!now) return std::nullopt;
  const Search search{shape, precision, predict, *now};
  std::optional<Suggestion> best;
  // Of equal gains the smaller change; n and k are chosen by who shapes the model, so they go before m.
  for (const std::size_t dimension : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
    for (const std::uint64_t to : sizes_near(shape.*kDimensions[dimension], tile.*kSides[dimension])) {
      const auto found = search.at(dimension, to);
      if (!found || !search.gains(*found)) continue;
      const auto change = [&](const Suggestion& s) { return std::abs(static_cast<double>(s.shape.*kDimensions[dimension]) / static_cast<double>(s.from) - 1); };
      const bool better = !best || found->gain_ratio > best->gain_ratio * (1 + 1e-9) ||
                          (best->dimension == found->dimension && found->gain_ratio > best->gain_ratio * (1 - 1e-9) && change(*found) < change(*best));
      if (better) best = found;
    }
  }
  if (best) return best;
  for (const std::size_t dimension : {std::size_t{1}, std::size_t{2}}) {
    const std::uint64_t size = shape.*kDimensions[dimension];
    if (size % row_elements(precision, 16) == 0) continue;
    const std::uint64_t to = multiple_up(size, row_elements(precision, 128));
    if (!near(size, to)) continue;
    auto found = search.at(dimension, to);
    if (!found || found->gain_ratio * kGainLeast < 1) continue;  // what it costs is predicted, what it gains is not
    found->reason = Reason::kAlignment;
    return found;
  }
  return std::nullopt;
}

}  // namespace flopsight::gemm
