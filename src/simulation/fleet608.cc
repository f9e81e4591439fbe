#include "simulation/fleet608.h"

#include <algorithm>
#include <cmath>

namespace flopsight::simulation {
namespace {

constexpr double kOfuLow = 0.16, kOfuHigh = 0.42, kWrongPart = 0.4;
constexpr double kErrorSmall = 0.06, kErrorLarge = 0.03;
constexpr std::uint32_t kLargeGpus = 768, kLatentJobs = 44, kHybridJobs = 36;
constexpr double kTileOverhead = 1.02;
constexpr double kReportedMin = 0.02;

// Quantiles that fill (0, 1) evenly over the jobs, so that the figures hardly depend on the seed: a lattice with one
// multiplier for each property, shifted by the seed. The multipliers have no divisor in common with 608.
double quantile(std::uint64_t multiplier, std::uint64_t shift, std::uint32_t number) {
  return (static_cast<double>((multiplier * number + shift) % kFleet608Jobs) + 0.5) / kFleet608Jobs;
}

// The quantile of the normal distribution. Bisection on std::erfc, which has no closed inverse, to the last digits of a double.
double normal_quantile(double u) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < u ? low : high) = middle;
  }
  return (low + high) / 2;
}

// By size, in an order in which every run of jobs has all sizes.
std::uint32_t rank_of(std::uint32_t number) { return number * 173 % kFleet608Jobs; }

// From 8 to 5,888 GPUs in whole hosts of 8, small ones far more often.
std::uint32_t gpus_of(std::uint32_t number) {
  const double u = static_cast<double>(rank_of(number)) / (kFleet608Jobs - 1);
  return 8 * static_cast<std::uint32_t>(std::lround(std::pow(736.0, u * u * u)));
}

}  // namespace

Miscount fleet608_miscount(std::uint64_t seed, std::uint32_t number) {
  const auto wrong = static_cast<std::uint32_t>(quantile(89, seed % kFleet608Jobs * 3, rank_of(number)) * kFleet608Jobs);
  return wrong < kLatentJobs                 ? Miscount::kLatentExperts
         : wrong < kLatentJobs + kHybridJobs ? Miscount::kHybridAsAttention
                                             : Miscount::kNone;
}

Fleet608Job fleet608_job(std::uint64_t seed, std::uint32_t number) {
  const std::uint64_t shift = seed % kFleet608Jobs;
  // Properties go by size, so that large jobs have all of them as well.
  const std::uint32_t rank = rank_of(number);
  Fleet608Job job;
  job.gpus = gpus_of(number);
  job.miscount = fleet608_miscount(seed, number);
  const double part = job.miscount == Miscount::kNone ? 1 : kWrongPart;
  job.ofu_ratio = kOfuLow + (kOfuHigh - kOfuLow) * part * quantile(235, shift * 13, rank);
  switch (job.miscount) {
    case Miscount::kLatentExperts: job.reported_mfu_ratio = 2.12 * job.ofu_ratio; break;
    case Miscount::kHybridAsAttention: job.reported_mfu_ratio = 1.575 * job.ofu_ratio; break;
    case Miscount::kNone: {
      const double spread = job.gpus > kLargeGpus ? kErrorLarge : kErrorSmall;
      const double error = spread * normal_quantile(quantile(367, shift * 29, rank));
      job.reported_mfu_ratio = std::max(kReportedMin, job.ofu_ratio / kTileOverhead + error);
    }
  }
  return job;
}

std::uint32_t fleet608_gpus() {
  std::uint32_t gpus = 0;
  for (std::uint32_t number = 0; number < kFleet608Jobs; ++number) gpus += gpus_of(number);
  return gpus;
}

}  // namespace flopsight::simulation
