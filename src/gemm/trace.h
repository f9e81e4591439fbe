#pragma once
// Matrix products in a profiler's trace: Kineto's JSON, which PyTorch writes ({"traceEvents": [...]} or Chrome's bare list), fed in pieces
// of any size. Kernels whose names say a tile are joined to the operator that launched them, whose "Input Dims" (record_shapes=True)
// say the shape.
//
// Join: a kernel's correlation id names its launch (cuda_runtime event); the innermost matrix product on that thread that was
// running then is its operator. Without a launch, "External id" names the operator, where it is not the correlation id
// itself, as older versions of Kineto have it. An operator that launched several tensor kernels has no shape for each, and none is
// guessed. Which way a tile lies is decided by the launch grid where that tells, else by the kernel's family (kernel_name.h).
//
// Memory: 40 bytes or less for an operator, launch or product, one copy of each name; no more than kTraceRecordsMax of them.
// Units: FLOPs, seconds of kernel time (kernels that ran side by side count both). Threads: one.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "gemm/kernel_name.h"
#include "gemm/tile.h"
#include "units/units.h"

namespace flopsight::gemm {

inline constexpr std::uint64_t kTraceRecordsMax = 20'000'000;
inline constexpr std::size_t kTraceNamesMax = 200'000;
inline constexpr std::size_t kKernelKinds = 7;
// A duration is the difference of two times that were each rounded to a microsecond.
inline constexpr double kClockMicroseconds = 2;

struct TraceProduct {  // launches of one kernel on one shape
  std::string kernel;  // its name, short
  KernelName read;
  Shape shape;
  Tile tile;  // along the shape's m, n, k
  std::uint64_t count = 0;
  units::Seconds time;
  std::uint64_t splits = 1;  // of k, by the grid
  Quantized quantized;       // of one launch; waves with the splits
};

struct TraceNamed {
  std::string kernel;
  KernelKind kind = KernelKind::kOther;
  std::uint64_t count = 0;
  units::Seconds time;
};

struct TraceSummary {
  std::string gpu_name;          // as the trace says, empty where it does not
  std::optional<int> sm_count;   // likewise
  std::uint64_t events = 0;
  std::uint64_t operators = 0;   // matrix products among the operators
  std::uint64_t operators_without_shape = 0;
  std::array<std::uint64_t, kKernelKinds> count{};  // of kernels, by kind
  std::array<units::Seconds, kKernelKinds> time{};
  std::vector<TraceProduct> products;  // by time lost to tiles, most first
  std::vector<TraceNamed> unread;      // may use tensor cores, and have no tile: by time, most first
  std::uint64_t without_shape = 0;     // tensor products with a tile and no operator, or one without a shape
  units::Seconds time_without_shape;
  std::uint64_t several_of_one = 0;    // likewise, of an operator with several; part of without_shape
  std::uint64_t impossible = 0;        // launches that would be faster than the GPU's peak had they run kClockMicroseconds longer
  std::string impossible_example;
  std::uint64_t malformed = 0;         // kernels, operators and launches with an impossible time or size; kernels among them are not counted
  std::string malformed_example;
  std::uint64_t operators_with_unusable_shape = 0;  // among those without one: sizes are said, and are none of a product
  double theoretical_flops = 0;  // of all products
  double executed_flops = 0;

  units::Seconds total() const;
  // Products, attention and convolutions; names that only may be products are not among them.
  units::Seconds tensor_time() const;
  units::Seconds joined_time() const;
  // Executed / theoretical FLOPs of the joined products; nothing where there are none.
  std::optional<double> overhead_ratio() const;
};

class TraceReader {
 public:
  TraceReader();
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  // Errors: as wire/json_stream.h; kLimit for more records or names than the maxima.
  base::Status feed(std::string_view json);
  // device: whose SMs and peaks count, over what the trace says of itself; nullptr: the trace's own GPU, as far as the catalogue knows it.
  // Errors: also kInvalid for a document without a list traceEvents, or without a kernel in it.
  base::Result<TraceSummary> finish(const catalog::DeviceCatalog& catalog, const catalog::Device* device);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::gemm
