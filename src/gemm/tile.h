#pragma once
// Tile and wave quantization of a matrix product C(m x n) = A(m x k) * B(k x n).
//
// A kernel computes C in tiles of one size, each by one group of threads (CTA): every dimension is executed as if it were rounded up
// to a multiple of its tile's. CTAs run on the SMs in waves, of which the last may be partly empty.
//
//   executed FLOPs = 2 * batch * ceil(m/Tm)Tm * ceil(n/Tn)Tn * ceil(k/Tk)Tk
//   overhead       = executed / (2 * batch * m*n*k)                                       >= 1
//   CTAs           = batch * ceil(m/Tm) * ceil(n/Tn);  waves = ceil(CTAs / SMs)
//   wave efficiency = CTAs / (waves * SMs)                                                0 to 1
//
// Source: "Instant GPU Efficiency Visibility at Fleet Scale" (arXiv 2605.20799) for the first two; Anthony et al. 2024
// (arXiv 2401.14489) for waves. One CTA a SM is assumed: small tiles share one, and persistent, split-K and stream-K
// kernels fill the last wave, so wave efficiency is a lower bound there.
// Only the overhead makes a tensor-pipe counter count more than was useful; an empty wave lowers counter and
// useful rate alike. Units: elements, FLOPs. Threads: pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "catalog/devices.h"

namespace flopsight::gemm {

inline constexpr std::uint64_t kDimensionMax = 0x7FFF'FFFF;  // what BLAS interfaces take
inline constexpr std::uint64_t kCtasMax = std::uint64_t{1} << 53;
inline constexpr std::uint64_t kTileMax = 4096;

struct Shape {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;  // products of one launch

  auto operator<=>(const Shape&) const = default;
};

// Along m, n and k of the Shape. k 0: not known, no padding of k is counted.
struct Tile {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;

  auto operator<=>(const Tile&) const = default;
  Tile swapped() const { return {n, m, k}; }
};
std::string tile_text(const Tile& tile);  // "128x256x64", "128x256" where k is not known

// Errors: kInvalid, naming the dimension; kLimit above the maxima.
base::Status check_shape(const Shape& shape);
// "128x256x64" or "128x256", or a tile id of cublasLt as "cublaslt:20". Errors: kInvalid.
base::Result<Tile> parse_tile(std::string_view text);
// Of cublasLtMatmulTile_t (CUDA 13.0's cublasLt.h), without a k; nothing for others. m and n are rows and columns of C in column-major
// order.
std::optional<Tile> tile_of_cublaslt_id(int id);
// Of cublasLtMatmulStages_t: the k of the tile.
std::optional<std::uint64_t> tile_k_of_cublaslt_stages(int id);

struct Waves {
  std::uint64_t waves = 0;
  double efficiency_ratio = 0;
};

struct Quantized {
  double theoretical_flops = 0;
  double executed_flops = 0;
  std::uint64_t ctas = 0;
  std::optional<Waves> waves;  // where the number of SMs is known

  double overhead_ratio() const { return executed_flops / theoretical_flops; }
  // Useful share of a launch by tiles and waves; of tiles alone where waves are not known.
  double efficiency_ratio() const { return (waves ? waves->efficiency_ratio : 1.0) / overhead_ratio(); }
};

// splits: parts that k is split into, 1 or more, which fill the SMs together; `ctas` is of one part.
// Errors: as check_shape(); kLimit for more than kCtasMax CTAs; kInvalid for a tile of nothing.
base::Result<Quantized> quantize(const Shape& shape, const Tile& tile, std::optional<int> sm_count, std::uint64_t splits = 1);

// Bytes of an element of A and B; 0.5 for FP4.
double element_bytes(catalog::Precision precision);
// Whether tensor cores have it on some GPU: all but FP32 and FP64 outside of them.
bool is_tensor_precision(catalog::Precision precision);

}  // namespace flopsight::gemm
