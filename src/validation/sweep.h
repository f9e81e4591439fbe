#pragma once
// Which matrix products an experiment runs: for each precision that the GPU has, squares whose sides are multiples of 128 and sizes
// that are not, from small to large, each for each duration.
//
// Sizes: 128 to 16384, as of the published experiment (arXiv 2605.20799; digests differ on the upper end: 16384 or 32768). Sides of 8-bit
// formats are multiples of 16 and of FP4 multiples of 32 also where they are not aligned, because cublasLt takes no others (16 bytes,
// cuBLAS documentation, "cublasLtMatmul", alignment). Units: elements, seconds. Threads: pure.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "gemm/tile.h"
#include "units/units.h"

namespace flopsight::validation {

inline constexpr std::uint64_t kSizeMin = 16;
inline constexpr std::uint64_t kSizeMax = 65'536;
inline constexpr std::size_t kCasesMax = 10'000;

struct Case {
  catalog::Precision precision = catalog::Precision::kBf16;
  gemm::Shape shape;  // of column-major matrices, as cuBLAS sees them
  units::Seconds duration{3};
  bool aligned = false;  // every side a multiple of 128
};

struct SweepOptions {
  std::vector<catalog::Precision> precisions;  // empty: all of default_precisions() that the GPU has
  std::uint64_t size_min = 128;
  std::uint64_t size_max = 16'384;
  std::uint64_t unaligned_count = 12;  // for each precision; every other one has three different sides
  std::vector<units::Seconds> durations = {units::Seconds(3)};
  std::uint64_t seed = 1;  // of the unaligned sizes
};

// FP64, TF32, FP16, BF16, FP8 and FP4, on tensor cores.
const std::vector<catalog::Precision>& default_precisions();

// In order of precision, alignment, size. Errors: kInvalid where a size or duration cannot be; kUnsupported, naming it, for a precision
// that was asked for and has no tensor peak in the GPU's row; kLimit for more than kCasesMax.
base::Result<std::vector<Case>> sweep(const SweepOptions& options, const catalog::Device& device);

}  // namespace flopsight::validation
