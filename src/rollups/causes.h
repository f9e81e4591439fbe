#pragma once
// What is behind time that was lost, decided sample by sample from what else the same scrape said. Each amount is a part of a term of the
// waterfall and never more than it; what no rule covers, or what lacks the metric that the rule needs, is in none of them.
//
// The clock (tensor activity less OFU), by the clock event reasons of the sample (DCGM field 112). Where several are set, thermal ones
// (0x20, 0x40) come before power (0x4, 0x80), and power before settings (0x2, 0x10, 0x100). 0x8 alone says no cause. A clock above the
// reference is a gain, kept apart so that it hides no loss.
//
// SMs busy, tensor pipe idle: bound by memory where memory is active for at least kMemoryBoundRatio of the time that SMs are, else other
// kernels. Memory is active for 0.8 of the cycles at most in practice (DCGM user guide, profiling metrics), so that is three quarters of
// what can be had.
//
// SMs idle. The engine's activity (DCGM field 1001) divides it: without a kernel (1 - engine) and with one that leaves SMs idle (engine - SM).
//   no kernel at all in the sample (engine below kNothingRunsRatio): stalled, unless PCIe moves at least kHostBytesPerSecond: host;
//   without a kernel otherwise: the host, which has none ready (input, launches, a checkpoint being written);
//   with a kernel: communication where links move at least kLinkBytesPerSecond (NVLink, or PCIe at kPcieLinkBytesPerSecond for jobs
//   over a network card); where NVLink is silent (below kSilentBytesPerSecond), without tensor work and at less than kIdlePowerRatio of the
//   board's power: stalled (a collective that waits for ever); else small kernels, which fill only some SMs.
// These are assumptions, and answers that show the split say so (kCauseRules).
//
// Threads: pure.

#include <string_view>

#include "catalog/devices.h"
#include "rollups/totals.h"
#include "samples/gpu.h"

namespace flopsight::rollups {

inline constexpr double kMemoryBoundRatio = 0.6;
inline constexpr double kNothingRunsRatio = 0.01;
inline constexpr double kHostBytesPerSecond = 1e8;
inline constexpr double kLinkBytesPerSecond = 1e9;
inline constexpr double kPcieLinkBytesPerSecond = 4e9;
inline constexpr double kSilentBytesPerSecond = 1e6;
inline constexpr double kIdlePowerRatio = 0.35;

// The same in a sentence, for the assumptions of an answer.
inline constexpr std::string_view kCauseRules =
    "lost time by cause, sample by sample: the clock by its event reasons (thermal before power before setting); SMs busy without tensor work: "
    "memory-bound where memory is active for 60 % of the SMs' time; SMs idle: no kernel (1 - engine activity) is the host's, or stalled if "
    "nothing runs and PCIe moves under 100 MB/s; a kernel that leaves SMs idle is communication if links move 1 GB/s (PCIe 4 GB/s), stalled "
    "if they are silent, at under 35 % of the board's power and without tensor work, else a small kernel";

// Of one sample in which OFU is known.
struct LossSample {
  double seconds = 0;
  double tensor_active_ratio = 0;
  double ofu_ratio = 0;
  samples::Reading sm_active;
};

void add_causes(LossCauses& out, const LossSample& sample, const samples::GpuScrape& scrape, const samples::GpuIdentity& gpu,
                const catalog::Device* device);

}  // namespace flopsight::rollups
