#pragma once
// Which tile a library chooses for a shape: a model, for when neither a kernel's name nor the user says. The tile of least estimated
// time over a list of usual tiles, with k split where that fills the SMs:
//
//   time = ceil(CTAs * splits / (SMs * resident)) * Tm*Tn*resident * (k/splits + start) / speed  +  splits > 1: a fixed cost and m*n*splits
//
// Tm lies along n, as libraries see a row-major product as its transpose. `speed`, `resident` and the costs are fitted, not
// physical: by random search on the kernels that cuBLAS chose for the 126 distinct TF32 shapes of one public A100 trace
// (HolisticTraceAnalysis, trace_diff/control), and scored on the 145 of another job's trace (timeline_analysis). Scored there, not where
// it was fitted: measured_accuracy(). Other GPUs and formats use the same figures, and no trace with their kernels was at hand to
// score them. On Hopper and newer, shapes with a side of at most 32 get the thin tiles that nvjet kernels of public decode profiles
// have (64x8, 64x16, 64x32). Threads: pure.

#include <optional>
#include <string_view>

#include "catalog/devices.h"
#include "gemm/tile.h"

namespace flopsight::gemm {

struct ChosenTile {
  Tile tile;  // along the Shape's m, n, k
  std::uint64_t splits = 1;  // of k
};
// sm_count: without one, 108 as of the A100 that was fitted.
ChosenTile choose_tile(const Shape& shape, catalog::Precision precision, const catalog::Device& device, std::optional<int> sm_count);

struct ChoiceAccuracy {
  double same_tile_ratio = 0;           // of distinct shapes
  double overhead_error_ratio = 0;      // mean of |modelled / real overhead - 1|
  double overhead_of_all_ratio = 0;     // FLOP-weighted overhead, modelled / real
  std::string_view on;
};
// On the scored trace; nothing for architectures and formats that none was at hand for.
std::optional<ChoiceAccuracy> measured_accuracy(const catalog::Device& device, catalog::Precision precision);

}  // namespace flopsight::gemm
