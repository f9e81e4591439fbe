#pragma once
// What rate a matrix product can reach on a GPU, predicted from published figures alone, and how far measured rates are from it.
//
//   time = max(executed FLOPs / (peak * attainable * wave efficiency), bytes of A, B and C / (bandwidth * 0.8)) + 3 us
//
// attainable: the best that anybody measured of the peak ("MAMF", Bekman's ml-engineering, accelerator chapter): BF16 A100 86.9 %, H100
// 80.3 %, B200 77.6 %, GB200 72.9 %, B300 78.6 %; FP8 H100 70.9 %, H200 73.4 %, B200 76.3 %, GB200 72.3 %; TF32 and FP16 are taken as
// BF16. 0.8 and 3 us: aiconfigurator's system descriptions (ai-dynamo, Apache-2.0), which call them corrections from observation.
// Nothing here is fitted to the rates that it is compared with. C is written in as many bytes as BF16 has, or A's where those are
// more. Units: FLOP/s, ratios. Threads: pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "gemm/tile.h"
#include "units/units.h"

namespace flopsight::gemm {

// Of the dense peak; nothing where none was published for the GPU and format.
std::optional<double> attainable_ratio(const catalog::Device& device, catalog::Precision precision);

// Time of one product, where `share_ratio` of the peak is attainable and k is split into `splits` parts, which together fill the SMs.
// Errors: as predicted_rate() but for the share.
base::Result<units::Seconds> predicted_time(const Shape& shape, const Tile& tile, std::uint64_t splits, catalog::Precision precision, const catalog::Device& device,
                                            double share_ratio);
// Bytes a second that kernels reach of the catalogue's bandwidth (0.8), and what a kernel takes to start (3 us).
inline constexpr double kBandwidthRatio = 0.8;
inline constexpr double kStartSeconds = 3e-6;

// Useful FLOPs a second, splits as above. Errors: as quantize(); kUnsupported where peak, attainable share, bandwidth or SM count is not known.
base::Result<units::FlopsPerSecond> predicted_rate(const Shape& shape, const Tile& tile, std::uint64_t splits, catalog::Precision precision, const catalog::Device& device);

struct MeasuredRate {
  Shape shape;
  catalog::Precision precision = catalog::Precision::kBf16;
  units::FlopsPerSecond rate;
  std::size_t line = 0;  // of the file
};

struct RateCheck {
  MeasuredRate measured;
  std::optional<units::FlopsPerSecond> predicted;  // with the modelled tile
  bool impossible = false;                         // above the dense peak
};

struct RateErrors {  // of predicted / measured - 1, over rows that are possible and predicted
  std::size_t rows = 0;
  double median_ratio = 0;
  double p10_ratio = 0;
  double p90_ratio = 0;
  double median_absolute_ratio = 0;
  double within_quarter_ratio = 0;  // share of rows with |error| <= 25 %
};

// CSV with the columns m, n, k, precision, tflops and, if there, batch. Errors: kInvalid with line and column.
base::Result<std::vector<MeasuredRate>> read_measured_rates(std::string_view csv);
base::Result<std::vector<RateCheck>> check_rates(const std::vector<MeasuredRate>& rates, const catalog::Device& device);
// Of rows with at least so many FLOPs; nothing where there are none.
std::optional<RateErrors> rate_errors(const std::vector<RateCheck>& checks, double flops_least);

}  // namespace flopsight::gemm
