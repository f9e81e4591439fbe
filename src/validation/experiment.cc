#include "validation/experiment.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gemm/tile_choice.h"

namespace flopsight::validation {
namespace {

using base::Error;
using base::ErrorCode;

std::uint64_t launches_for(units::Seconds time, units::Seconds one) {
  return static_cast<std::uint64_t>(std::clamp(time.value / std::max(one.value, 1e-7), 1.0, 1e6));
}

// One case on a runner that is prepared for it.
base::Status measure(Runner& runner, CounterSource& counters, const ExperimentOptions& options, Point& point) {
  // The first launch loads the kernel; the second says how long one takes.
  FLOPSIGHT_RETURN_IF_ERROR(runner.mark());
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Seconds first, runner.run(1));
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Seconds second, runner.run(1));
  const std::uint64_t batch = launches_for(options.batch, second - first);
  units::Seconds settled = second;
  while (settled < options.settle) {
    FLOPSIGHT_ASSIGN_OR_RETURN(settled, runner.run(batch));
  }
  FLOPSIGHT_RETURN_IF_ERROR(counters.start());
  FLOPSIGHT_RETURN_IF_ERROR(runner.mark());
  while (point.elapsed < point.what.duration || !counters.enough()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(point.elapsed, runner.run(batch));
    point.launches += batch;
    FLOPSIGHT_RETURN_IF_ERROR(counters.poll());
    if (point.elapsed.value > options.elapsed_seconds_max) return Error{ErrorCode::kUnavailable, "the counters were not read often enough within an hour"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(point.counted, counters.stop());
  if (!(point.elapsed.value > 0)) return Error{ErrorCode::kUnavailable, "no time passed while products ran"};
  return {};
}

base::Result<Point> run_case(const Case& one, const catalog::Device& device, Runner& runner, CounterSource& counters,
                             const ExperimentOptions& options) {
  Point point;
  point.what = one;
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Hertz reference, reference_clock_of(device, one.precision));
  point.reference_clock_hertz = reference.value;
  FLOPSIGHT_ASSIGN_OR_RETURN(point.prepared, runner.prepare(one));
  point.tile_source = point.prepared.tile ? TileSource::kLibrary : TileSource::kModelled;
  if (point.prepared.tile) {
    point.tile = *point.prepared.tile;
  } else {
    // The model's shapes are a framework's, row-major: its m is our n.
    const gemm::Shape row_major{one.shape.n, one.shape.m, one.shape.k};
    point.tile = gemm::choose_tile(row_major, one.precision, device, device.sm_count).tile.swapped();
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(point.quantized, gemm::quantize(one.shape, point.tile, device.sm_count));
  FLOPSIGHT_RETURN_IF_ERROR(measure(runner, counters, options, point));
  const units::FlopsPerSecond peak = *device.peak(one.precision);
  point.mfu_ratio = point.quantized.theoretical_flops * static_cast<double>(point.launches) / (point.elapsed.value * peak.value);
  point.ofu_ratio = point.counted.active_hertz_mean_ratio / reference.value;
  return point;
}

void add(Agreement& out, double error) {
  ++out.points;
  out.error_mean_ratio += std::abs(error);
  out.error_max_ratio = std::max(out.error_max_ratio, std::abs(error));
  out.bias_ratio += error;
  out.within_2_points_ratio += std::abs(error) <= 0.02 ? 1 : 0;
  out.within_5_points_ratio += std::abs(error) <= 0.05 ? 1 : 0;
}

void finish(Agreement& out) {
  const auto n = static_cast<double>(out.points);
  for (double* mean : {&out.error_mean_ratio, &out.bias_ratio, &out.within_2_points_ratio, &out.within_5_points_ratio}) *mean /= n;
}

}  // namespace

void Counted::add(double tensor_active, double clock_hertz) {
  tensor_active_ratio += tensor_active;
  sm_clock_hertz_mean += clock_hertz;
  active_hertz_mean_ratio += tensor_active * clock_hertz;
  ++samples;
}

base::Result<Counted> Counted::mean() const {
  if (samples == 0) return Error{ErrorCode::kUnavailable, "the counters said nothing while the product ran"};
  const auto n = static_cast<double>(samples);
  return Counted{tensor_active_ratio / n, sm_clock_hertz_mean / n, active_hertz_mean_ratio / n, samples};
}

std::string_view tile_source_name(TileSource source) { return source == TileSource::kLibrary ? "library" : "modelled"; }

base::Result<units::Hertz> reference_clock_of(const catalog::Device& device, catalog::Precision precision) {
  const bool is_fp64 = precision == catalog::Precision::kFp64Tensor;
  const std::optional<units::Hertz>& clock = is_fp64 ? device.nvml_max_sm_clock : device.tensor_peak_clock;
  if (!clock) {
    return Error{ErrorCode::kUnsupported, device.model + ": the catalogue has no " + (is_fp64 ? "maximum SM clock" : "tensor-peak clock") + " for it"};
  }
  return *clock;
}

base::Result<Experiment> run_experiment(const std::vector<Case>& cases, const catalog::Device& device, Runner& runner, CounterSource& counters,
                                        const ExperimentOptions& options, const std::function<bool(std::size_t done)>& seen) {
  Experiment out;
  std::size_t done = 0;
  for (const Case& one : cases) {
    base::Result<Point> point = run_case(one, device, runner, counters, options);
    if (point.ok()) {
      out.points.push_back(std::move(point).value());
    } else if (point.error().code == ErrorCode::kUnsupported) {
      out.left_out.push_back({one, point.error().message});
    } else {
      return point.error();
    }
    if (!seen(++done)) break;
  }
  return out;
}

std::vector<PrecisionRow> agreement_by_precision(const std::vector<Point>& points) {
  std::map<catalog::Precision, PrecisionRow> rows;
  for (const Point& point : points) {
    PrecisionRow& row = rows[point.what.precision];
    row.precision = point.what.precision;
    add(row.ofu, point.error_ratio());
    add(row.adjusted, point.error_adjusted_ratio());
    row.overhead_max_ratio = std::max(row.overhead_max_ratio, point.quantized.overhead_ratio());
    if (point.tile_source == TileSource::kModelled) ++row.tiles_modelled;
  }
  std::vector<PrecisionRow> out;
  for (auto& [precision, row] : rows) {
    finish(row.ofu);
    finish(row.adjusted);
    out.push_back(row);
  }
  return out;
}

}  // namespace flopsight::validation
