#include "gemm/tile_choice.h"

#include <algorithm>
#include <cmath>

namespace flopsight::gemm {
namespace {

using catalog::Precision;

struct Candidate {
  std::uint64_t along_n;
  std::uint64_t along_m;
  double speed;     // relative, of one SM
  double resident;  // CTAs of an SM at once
};

constexpr Candidate kCandidates[] = {
    {256, 128, 1.194, 1}, {128, 256, 0.875, 2}, {128, 128, 1.147, 1}, {256, 64, 0.397, 4},
    {128, 64, 0.683, 1},  {64, 128, 0.454, 3},  {64, 64, 0.566, 1},
};
constexpr double kStart = 596;           // in steps of k
constexpr double kSplitFixed = 787e3;
constexpr double kSplitEach = 182;       // for each element of C, split and SM
constexpr double kSplitDepthLeast = 64;  // of k in a split
constexpr std::uint64_t kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr int kFittedSms = 108;
constexpr std::uint64_t kThinMax = 32;

double tiles(std::uint64_t size, std::uint64_t tile) { return static_cast<double>((size + tile - 1) / tile); }

double time_of(const Shape& shape, const Candidate& candidate, std::uint64_t splits, double sms) {
  const double parts = static_cast<double>(splits), k = static_cast<double>(shape.k);
  const double ctas = tiles(shape.n, candidate.along_n) * tiles(shape.m, candidate.along_m) * static_cast<double>(shape.batch) * parts;
  const double waves = std::ceil(ctas / (sms * candidate.resident));
  const double area = static_cast<double>(candidate.along_n * candidate.along_m) * candidate.resident;
  const double time = waves * area * (std::ceil(k / parts) + kStart) / candidate.speed;
  if (splits == 1) return time;
  return time + kSplitFixed + kSplitEach * static_cast<double>(shape.m) * static_cast<double>(shape.n) * parts / sms;
}

// 128 bytes of k, as the names of CUTLASS 3 and nvjet kernels have it; 32 elements of TF32 in those of Ampere.
std::uint64_t tile_depth(Precision precision) {
  const double elements = 128 / element_bytes(precision);
  return precision == Precision::kFp6 ? 128 : static_cast<std::uint64_t>(elements);
}

bool hopper_or_newer(const catalog::Device& device) {
  return device.architecture == "Hopper" || device.architecture.starts_with("Blackwell");
}

std::optional<Tile> thin_tile(const Shape& shape, Precision precision, const catalog::Device& device) {
  const std::uint64_t thin = std::min(shape.m, shape.n);
  if (!hopper_or_newer(device) || element_bytes(precision) > 2 || thin > kThinMax) return std::nullopt;
  const std::uint64_t side = thin <= 8 ? 8 : thin <= 16 ? 16 : 32;
  const Tile tile{side, 64, tile_depth(precision)};
  return shape.m <= shape.n ? tile : tile.swapped();
}

}  // namespace

ChosenTile choose_tile(const Shape& shape, Precision precision, const catalog::Device& device, std::optional<int> sm_count) {
  if (const auto thin = thin_tile(shape, precision, device)) return {*thin, 1};
  const double sms = sm_count.value_or(kFittedSms);
  const Candidate* best = nullptr;
  std::uint64_t best_splits = 1;
  double best_time = 0;
  for (const Candidate& candidate : kCandidates) {
    for (const std::uint64_t splits : kSplits) {
      const bool deep = static_cast<double>(shape.k) / static_cast<double>(splits) >= kSplitDepthLeast;
      if (splits > 1 && (shape.batch > 1 || !deep)) break;
      const double time = time_of(shape, candidate, splits, sms);
      if (best == nullptr || time < best_time) {
        best = &candidate;
        best_splits = splits;
        best_time = time;
      }
    }
  }
  return {{best->along_m, best->along_n, tile_depth(precision)}, best_splits};
}

std::optional<ChoiceAccuracy> measured_accuracy(const catalog::Device& device, Precision precision) {
  const bool a100 = device.architecture == "Ampere" && device.sm_count == kFittedSms;
  if (!a100 || precision != Precision::kTf32) return std::nullopt;
  // tile_choice_test.cc measures these.
  return ChoiceAccuracy{0.63, 0.060, 1.09, "145 distinct TF32 shapes of a public A100 trace that it was not fitted on"};
}

}  // namespace flopsight::gemm
