#pragma once
// A size near the one at hand that is predicted to be served better. One dimension is changed at a time, by at most an eighth of it:
// to a multiple of the tile, to as many tiles as fill the last wave, or, where nothing is gained by tiles, to a
// multiple of the alignment. A single wave is not filled up: that would only be more work.
//
// The gain is of useful FLOPs a second, what is predicted for the new shape over what is predicted for the old: of the rate where the caller
// predicts one, else of the efficiency by tiles and waves. Whatever gains by the one and not by the other is left out. It is for a size that is used
// whole (a batch, a hidden size), not for padding that is thrown away, which at best costs nothing. What alignment itself gains is not modelled:
// rows of n and k should be multiples of 16 bytes to be read by wide loads, and of 128 to be read well (NVIDIA, Matrix
// Multiplication Background User's Guide). Threads: pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "catalog/devices.h"
#include "gemm/tile.h"
#include "units/units.h"

namespace flopsight::gemm {

enum class Reason : std::uint8_t { kTile, kWave, kAlignment };
std::string_view reason_name(Reason reason);  // "tile", "wave", "alignment"

struct Suggestion {
  char dimension = 'n';  // m, n or k
  std::uint64_t from = 0;
  Shape shape;
  double gain_ratio = 1;  // predicted useful FLOPs a second, new / old
  Quantized quantized;
  Reason reason = Reason::kTile;
  bool aligns = false;  // from a row that is no multiple of 16 bytes to one that is a multiple of 128
};

// What the program says of a shape, with the tile that this shape gets.
struct Prediction {
  Quantized quantized;
  std::optional<units::FlopsPerSecond> rate;  // useful, where one can be predicted
};
using Predict = std::function<std::optional<Prediction>(const Shape&)>;  // nothing: cannot be predicted
// For a tile that stays, whatever the shape, with k in `splits` parts.
Predict predict_by_tile(const Tile& tile, std::uint64_t splits, std::optional<int> sm_count);

// Nothing where no size near gains half a percent or is needed for alignment. tile: the shape's, whose multiples are tried.
std::optional<Suggestion> suggest(const Shape& shape, const Tile& tile, catalog::Precision precision, const Predict& predict);

}  // namespace flopsight::gemm
