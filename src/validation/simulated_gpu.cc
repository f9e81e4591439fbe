#include "validation/simulated_gpu.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "gemm/tile_choice.h"

namespace flopsight::validation {
namespace {

constexpr double kStepSeconds = 0.05;
constexpr double kJitterMemorySeconds = 1;
constexpr double kPowerLimitRatio = 0.87;
constexpr double kLaunchSeconds = 3e-6;

double normal(simulation::Draws& draws) {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(1 - draws.unit()));
  return radius * std::cos(2 * std::numbers::pi * draws.unit());
}

// What the simulated library runs: two times of three what the model says, else another usual tile.
gemm::Tile tile_of(const Case& one, const catalog::Device& device, std::uint64_t seed) {
  const gemm::Shape row_major{one.shape.n, one.shape.m, one.shape.k};
  const gemm::Tile modelled = gemm::choose_tile(row_major, one.precision, device, device.sm_count).tile.swapped();
  constexpr gemm::Tile kOthers[] = {{128, 128, 64}, {256, 128, 64}, {128, 256, 64}, {64, 64, 64}, {320, 128, 64}};
  const std::uint64_t draw = simulation::hash_of(simulation::hash_of(seed, one.shape.m, one.shape.n),
                                                 simulation::hash_of(one.shape.k, static_cast<std::uint64_t>(one.precision)));
  return draw % 3 == 0 ? kOthers[draw / 3 % std::size(kOthers)] : modelled;
}

}  // namespace

SimulatedGpu::SimulatedGpu(const catalog::Device& device, const SimulatedOptions& options)
    : device_(device), options_(options), draws_(options.seed) {
  FLOPSIGHT_CHECK(device.sm_count && device.nvml_max_sm_clock && device.tensor_peak_clock);
}

base::Result<Prepared> SimulatedGpu::prepare(const Case& one) {
  const gemm::Tile tile = tile_of(one, device_, options_.seed);
  FLOPSIGHT_ASSIGN_OR_RETURN(const gemm::Quantized work, gemm::quantize(one.shape, tile, device_.sm_count));
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Hertz reference, reference_clock_of(device_, one.precision));
  reference_hertz_ = reference.value;
  peak_seconds_ = work.executed_flops / device_.peak(one.precision)->value;
  pipe_share_ratio_ = options_.pipe_ratio * work.waves->efficiency_ratio;
  clock_hertz_ = reference_hertz_;
  const double active = peak_seconds_ / launch_seconds();
  target_hertz_ = std::min(device_.nvml_max_sm_clock->value, kPowerLimitRatio * reference_hertz_ / std::sqrt(active));
  change_clock(0);
  Prepared out;
  if (options_.says_tile) out.tile = tile;
  out.kernel = "simulated_" + gemm::tile_text(tile);
  return out;
}

double SimulatedGpu::launch_seconds() const {
  return peak_seconds_ * reference_hertz_ / (clock_hertz_ * pipe_share_ratio_) + kLaunchSeconds;
}

void SimulatedGpu::change_clock(double seconds) {
  const double keep = std::exp(-seconds / kJitterMemorySeconds);
  jitter_hertz_ = keep * jitter_hertz_ + std::sqrt(1 - keep * keep) * options_.clock_jitter_hertz * normal(draws_);
  clock_hertz_ = std::min(device_.nvml_max_sm_clock->value, target_hertz_ + jitter_hertz_);
}

void SimulatedGpu::pass(double seconds, double launches) {
  for (Cycles* cycles : {&marked_, &interval_}) {
    cycles->all_total += clock_hertz_ * seconds;
    cycles->active_total += launches * peak_seconds_ * reference_hertz_;
  }
  now_seconds_ += seconds;
  if (counting_ && now_seconds_ >= next_reading_seconds_) {
    readings_.add(interval_.active_total / interval_.all_total, clock_hertz_);
    interval_ = {};
    next_reading_seconds_ += options_.interval.value;
  }
  change_clock(seconds);
}

base::Status SimulatedGpu::mark() {
  marked_seconds_ = now_seconds_;
  marked_ = {};
  return {};
}

base::Result<units::Seconds> SimulatedGpu::run(std::uint64_t launches) {
  auto left = static_cast<double>(launches);
  while (left > 0) {
    // A step ends where the next reading is due, so that intervals are as long as they say.
    double most = kStepSeconds;
    if (counting_) most = std::min(most, std::max(next_reading_seconds_ - now_seconds_, 1e-6));
    const double one = launch_seconds();
    const double seconds = std::min(most, left * one);
    const double done = seconds / one;
    pass(seconds, done);
    left = done >= left * (1 - 1e-12) ? 0 : left - done;
  }
  return units::Seconds(now_seconds_ - marked_seconds_);
}

base::Status SimulatedGpu::start() {
  counting_ = true;
  readings_ = {};
  interval_ = {};
  next_reading_seconds_ = now_seconds_ + options_.interval.value;
  return {};
}

base::Result<Counted> SimulatedGpu::stop() {
  counting_ = false;
  return readings_.mean();
}

double SimulatedGpu::true_ofu_ratio() const { return marked_.active_total / ((now_seconds_ - marked_seconds_) * reference_hertz_); }

double SimulatedGpu::true_clock_hertz_mean() const { return marked_.all_total / (now_seconds_ - marked_seconds_); }

}  // namespace flopsight::validation
