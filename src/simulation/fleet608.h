#pragma once
// The jobs of scenario fleet608: sizes, OFU and reported MFU of 608 jobs, made up so that the figures of a published study come out
// (arXiv 2605.20799, section IV, by its public digests: 608 jobs of 8 to 5,888 GPUs; Pearson r between reported MFU and OFU 0.53, and
// 0.78 without the jobs whose FLOPs formula is known to be wrong; mean absolute error 6.2 points; 79.4 % of jobs within 10 points; most
// jobs of more than 768 GPUs within 5).
//
// What is assumed, and fitted to those figures: OFU spreads evenly over 0.16 to 0.42; 44 jobs count the experts of a mixture at
// full width (reported 2.12 times OFU) and 36 count recurrent layers as attention (1.575 times), all with an OFU in the lower 40 % of the
// range; the others report OFU less 2 % for tiles, with a normal error of 6 points, or 3 above 768 GPUs. So that these
// figures come out says that the reader's arithmetic is right, and nothing about real fleets.
//
// Threads: pure.

#include <cstdint>

namespace flopsight::simulation {

inline constexpr std::uint32_t kFleet608Jobs = 608;

enum class Miscount : std::uint8_t { kNone, kLatentExperts, kHybridAsAttention };

struct Fleet608Job {
  std::uint32_t gpus = 0;
  double ofu_ratio = 0;
  double reported_mfu_ratio = 0;
  Miscount miscount = Miscount::kNone;
};
// `number` below kFleet608Jobs.
Fleet608Job fleet608_job(std::uint64_t seed, std::uint32_t number);
// That of the job.
Miscount fleet608_miscount(std::uint64_t seed, std::uint32_t number);
// Of all jobs.
std::uint32_t fleet608_gpus();

}  // namespace flopsight::simulation
