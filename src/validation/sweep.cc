#include "validation/sweep.h"

#include <algorithm>
#include <cmath>

#include "simulation/random.h"

namespace flopsight::validation {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Precision;

constexpr std::uint64_t kAligned = 128;
constexpr std::uint64_t kSquares[] = {128, 256, 384, 512, 640, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536};

std::uint64_t granularity(Precision precision) {
  const double bytes = gemm::element_bytes(precision);
  return bytes <= 1 ? static_cast<std::uint64_t>(16 / bytes) : 1;
}

// Between the bounds, evenly on a logarithmic scale, and no multiple of 128.
std::uint64_t unaligned_size(simulation::Draws& draws, const SweepOptions& options, std::uint64_t grain) {
  const auto low = static_cast<double>(options.size_min), high = static_cast<double>(options.size_max);
  auto size = static_cast<std::uint64_t>(draws.log_between(low, high + 1));
  size = std::max(grain, size / grain * grain);
  if (size % kAligned == 0) size = size > options.size_min + grain ? size - grain : size + grain;
  return std::clamp(size, options.size_min, options.size_max);
}

base::Status check(const SweepOptions& options) {
  if (options.size_min < kSizeMin || options.size_max > kSizeMax || options.size_min > options.size_max) {
    return Error{ErrorCode::kInvalid, "sizes " + std::to_string(options.size_min) + " to " + std::to_string(options.size_max) + ": expected " +
                                          std::to_string(kSizeMin) + " to " + std::to_string(kSizeMax) + ", the smaller first"};
  }
  if (options.durations.empty()) return Error{ErrorCode::kInvalid, "no duration"};
  for (const units::Seconds duration : options.durations) {
    if (!(duration.value > 0) || duration.value > 3600) return Error{ErrorCode::kInvalid, "a duration of more than nothing and at most an hour is expected"};
  }
  return {};
}

void add(std::vector<Case>& out, const SweepOptions& options, Precision precision, gemm::Shape shape) {
  const bool aligned = shape.m % kAligned == 0 && shape.n % kAligned == 0 && shape.k % kAligned == 0;
  for (const units::Seconds duration : options.durations) out.push_back({precision, shape, duration, aligned});
}

}  // namespace

const std::vector<Precision>& default_precisions() {
  static const std::vector<Precision> kAll = {Precision::kFp64Tensor, Precision::kTf32, Precision::kFp16,
                                              Precision::kBf16,       Precision::kFp8,  Precision::kFp4};
  return kAll;
}

base::Result<std::vector<Case>> sweep(const SweepOptions& options, const catalog::Device& device) {
  FLOPSIGHT_RETURN_IF_ERROR(check(options));
  std::vector<Precision> precisions = options.precisions;
  if (precisions.empty()) {
    for (const Precision precision : default_precisions()) {
      if (device.peak(precision)) precisions.push_back(precision);
    }
  }
  std::vector<Case> out;
  for (const Precision precision : precisions) {
    if (!gemm::is_tensor_precision(precision) || !device.peak(precision)) {
      return Error{ErrorCode::kUnsupported, device.model + " has no tensor peak for " + std::string(catalog::precision_name(precision)) + " in the catalogue"};
    }
    for (const std::uint64_t size : kSquares) {
      if (size >= options.size_min && size <= options.size_max) add(out, options, precision, {size, size, size});
    }
    // The same sizes whatever else is asked for.
    simulation::Draws draws(simulation::hash_of(options.seed, static_cast<std::uint64_t>(precision)));
    const std::uint64_t grain = granularity(precision);
    for (std::uint64_t i = 0; i < options.unaligned_count; ++i) {
      const std::uint64_t m = unaligned_size(draws, options, grain);
      const gemm::Shape shape = i % 2 == 0 ? gemm::Shape{m, m, m}
                                           : gemm::Shape{m, unaligned_size(draws, options, grain), unaligned_size(draws, options, grain)};
      add(out, options, precision, shape);
      if (out.size() > kCasesMax) return Error{ErrorCode::kLimit, "more than " + std::to_string(kCasesMax) + " products"};
    }
  }
  if (out.empty()) return Error{ErrorCode::kInvalid, "no product: no size of the sweep lies between the bounds"};
  if (out.size() > kCasesMax) return Error{ErrorCode::kLimit, "more than " + std::to_string(kCasesMax) + " products"};
  return out;
}

}  // namespace flopsight::validation
