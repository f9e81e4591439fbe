#pragma once
// The experiment: a matrix product runs over and over for a while, the counters are read meanwhile, and both ways to the share of the
// peak are compared:
//
//   MFU      = 2 m n k * launches / (elapsed * peak)              from time alone
//   OFU      = mean(tensor activity * SM clock) / reference clock  from counters alone
//   OFU_adj  = OFU / overhead of the kernel's tile                 (gemm/tile.h)
//   error    = OFU - MFU, in the published table as points
//
// Source: arXiv 2605.20799, section on validation, as digested publicly. The reference clock of FP64 on tensor cores is the maximum SM
// clock, at which its peak is quoted; of every other format the catalogue's tensor-peak clock.
//
// Whoever runs products (Runner) and reads counters (CounterSource) is a seam: a GPU through cublasLt (cuda/), NVML or an exporter (apps/),
// or a simulated GPU that is both (simulated_gpu.h). Nothing here reads a clock: elapsed time is the Runner's.
// Units: ratios of the dense peak, seconds, FLOPs. Threads: one.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "gemm/tile.h"
#include "units/units.h"
#include "validation/sweep.h"

namespace flopsight::validation {

// What the library will run for a case.
struct Prepared {
  std::optional<gemm::Tile> tile;  // along m, n, k of the case; nothing where the library does not say
  std::uint64_t splits = 1;        // of k
  std::string kernel;              // how the library calls its choice; empty where it does not say
};

class Runner {
 public:
  virtual ~Runner() = default;
  // Errors: kUnsupported for a case that this GPU, or the library on it, cannot do (it is left out, and said); others end the experiment.
  virtual base::Result<Prepared> prepare(const Case& one) = 0;
  // From here on time counts.
  virtual base::Status mark() = 0;
  // Launches that often and waits; the time since mark(), gaps between launches included, by the GPU's own clock where it has one.
  virtual base::Result<units::Seconds> run(std::uint64_t launches) = 0;
};

struct Counted {
  double tensor_active_ratio = 0;    // mean
  double sm_clock_hertz_mean = 0;
  double active_hertz_mean_ratio = 0;  // mean of activity times clock, in hertz: what OFU is made of
  std::uint64_t samples = 0;

  // One reading into sums, and the means of sums. Errors: kUnavailable where there were none.
  void add(double tensor_active, double clock_hertz);
  base::Result<Counted> mean() const;
};

class CounterSource {
 public:
  virtual ~CounterSource() = default;
  virtual base::Status start() = 0;
  // Called between launches, as often as they allow; takes a reading if one is due.
  virtual base::Status poll() = 0;
  // Whether the readings since start() are enough to say anything; the product runs on until they are.
  virtual bool enough() const = 0;
  // Errors: kUnavailable where the counters said nothing.
  virtual base::Result<Counted> stop() = 0;
};

enum class TileSource : std::uint8_t { kLibrary, kModelled };
std::string_view tile_source_name(TileSource source);  // "library", "modelled"

struct Point {
  Case what;
  Prepared prepared;
  gemm::Tile tile;
  TileSource tile_source = TileSource::kModelled;
  gemm::Quantized quantized;
  std::uint64_t launches = 0;
  units::Seconds elapsed;
  Counted counted;
  double reference_clock_hertz = 0;
  double mfu_ratio = 0;
  double ofu_ratio = 0;
  std::optional<double> true_ofu_ratio = {};  // of a simulated GPU

  double ofu_adjusted_ratio() const { return ofu_ratio / quantized.overhead_ratio(); }
  double error_ratio() const { return ofu_ratio - mfu_ratio; }
  double error_adjusted_ratio() const { return ofu_adjusted_ratio() - mfu_ratio; }
};

struct LeftOut {
  Case what;
  std::string reason;
};

struct ExperimentOptions {
  units::Seconds settle{1};    // before time counts: clock and power settle
  units::Seconds batch{0.05};  // of launches between two looks at the counters, about
  double elapsed_seconds_max = 3600;  // for one case, whatever the counters say
};

struct Experiment {
  std::vector<Point> points;
  std::vector<LeftOut> left_out;
};

// `seen`: called after each case with how many are done; false ends the experiment with what there is.
base::Result<Experiment> run_experiment(const std::vector<Case>& cases, const catalog::Device& device, Runner& runner, CounterSource& counters,
                                        const ExperimentOptions& options, const std::function<bool(std::size_t done)>& seen);

// The clock at which the peak of a format is quoted. Errors: kUnsupported where the catalogue has none.
base::Result<units::Hertz> reference_clock_of(const catalog::Device& device, catalog::Precision precision);

// Of the published table: how far OFU is from MFU, in ratios.
struct Agreement {
  std::size_t points = 0;
  double error_mean_ratio = 0;  // of absolute values: MAE
  double error_max_ratio = 0;
  double bias_ratio = 0;        // mean of OFU - MFU
  double within_2_points_ratio = 0;
  double within_5_points_ratio = 0;
};
struct PrecisionRow {
  catalog::Precision precision = catalog::Precision::kBf16;
  Agreement ofu;
  Agreement adjusted;
  double overhead_max_ratio = 1;
  std::size_t tiles_modelled = 0;  // points whose tile the library did not say
};
// In order of precision; nothing for a precision without a point.
std::vector<PrecisionRow> agreement_by_precision(const std::vector<Point>& points);

}  // namespace flopsight::validation
