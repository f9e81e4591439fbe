#include "rollups/causes.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::GpuScrape;
using samples::Reading;

constexpr std::uint64_t kThermalBits = 0x60, kPowerBits = 0x84, kSettingBits = 0x112;

void add_clock(LossCauses& out, const LossSample& sample, const GpuScrape& scrape) {
  const double loss_seconds = sample.seconds * (sample.tensor_active_ratio - sample.ofu_ratio);
  if (loss_seconds <= 0) {
    out.clock_gain_seconds -= loss_seconds;
    return;
  }
  const Reading& reasons = scrape.reading(Metric::kEventReasons);
  if (!reasons.present()) return;
  const auto bits = static_cast<std::uint64_t>(reasons.value());
  if ((bits & kThermalBits) != 0) {
    out.clock_thermal_seconds += loss_seconds;
  } else if ((bits & kPowerBits) != 0) {
    out.clock_power_seconds += loss_seconds;
  } else if ((bits & kSettingBits) != 0) {
    out.clock_setting_seconds += loss_seconds;
  }
}

// Sent and received; nothing where neither is scraped.
std::optional<double> bytes_per_second(const GpuScrape& scrape, Metric sent, Metric received) {
  const Reading &tx = scrape.reading(sent), &rx = scrape.reading(received);
  if (!tx.present() && !rx.present()) return std::nullopt;
  return (tx.present() ? tx.value() : 0) + (rx.present() ? rx.value() : 0);
}

bool draws_idle_power(const GpuScrape& scrape, const samples::GpuIdentity& gpu, const catalog::Device* device) {
  // Power is of the whole board, also where this is a part of it.
  if (!gpu.mig_instance.empty()) return false;
  const Reading& power = scrape.reading(Metric::kPower);
  return power.present() && device != nullptr && device->board_power &&
         power.value() < kIdlePowerRatio * device->board_power->value;
}

void add_sm_idle(LossCauses& out, const LossSample& sample, double sm_ratio, const GpuScrape& scrape, const samples::GpuIdentity& gpu,
                 const catalog::Device* device) {
  const Reading& engine_reading = scrape.reading(Metric::kGraphicsEngineActive);
  if (!engine_reading.present()) return;
  // The two are counted apart from each other; an engine below its SMs left them no time without a kernel.
  const double engine_ratio = std::max(engine_reading.value(), sm_ratio);
  const double no_kernel_seconds = sample.seconds * (1 - engine_ratio), kernel_seconds = sample.seconds * (engine_ratio - sm_ratio);
  const auto pcie = bytes_per_second(scrape, Metric::kPcieTx, Metric::kPcieRx);
  const auto nvlink = bytes_per_second(scrape, Metric::kNvlinkTx, Metric::kNvlinkRx);
  if (engine_ratio >= kNothingRunsRatio || (pcie && *pcie >= kHostBytesPerSecond)) {
    out.host_seconds += no_kernel_seconds;
  } else if (pcie) {
    out.stalled_seconds += no_kernel_seconds;
  }
  const bool talks = (nvlink && *nvlink >= kLinkBytesPerSecond) || (pcie && *pcie >= kPcieLinkBytesPerSecond);
  if (talks) {
    out.communication_seconds += kernel_seconds;
  } else if (!nvlink) {
    // Without NVLink's bytes neither waiting nor its absence is seen.
    return;
  } else if (sample.tensor_active_ratio > 0) {
    out.small_kernels_seconds += kernel_seconds;
  } else if (*nvlink < kSilentBytesPerSecond && draws_idle_power(scrape, gpu, device)) {
    out.stalled_seconds += kernel_seconds;
  } else if (gpu.mig_instance.empty()) {
    out.small_kernels_seconds += kernel_seconds;
  }
}

}  // namespace

void add_causes(LossCauses& out, const LossSample& sample, const GpuScrape& scrape, const samples::GpuIdentity& gpu,
                const catalog::Device* device) {
  add_clock(out, sample, scrape);
  if (!sample.sm_active.present()) return;
  // Seen above 1 on MIG instances; then nothing is idle.
  const double sm_ratio = sample.sm_active.value();
  const double busy_seconds = sample.seconds * (sm_ratio - sample.tensor_active_ratio);
  const Reading& dram = scrape.reading(Metric::kDramActive);
  if (busy_seconds > 0 && dram.present()) {
    (dram.value() >= kMemoryBoundRatio * sm_ratio ? out.memory_bound_seconds : out.other_kernels_seconds) += busy_seconds;
  }
  if (sm_ratio < 1) add_sm_idle(out, sample, sm_ratio, scrape, gpu, device);
}

}  // namespace flopsight::rollups
