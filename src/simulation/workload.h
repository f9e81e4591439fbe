#pragma once
// What a job does to its GPUs. A job is a sequence of modes: it starts up, then trains step after step (a computing part and
// a waiting part), is evaluated and writes checkpoints, and ends with one. How long it has spent in each mode since
// it began is a closed form, jitter included: a step does the same work however long it waits. So every mean over a window and
// every integral is exact, and costs the same for a second as for a day.
//
// Within a mode all quantities stand still, but for noise that integrates to zero (meter.h).
// Threads: pure.

#include <array>
#include <cstddef>
#include <cstdint>

#include "catalog/devices.h"
#include "simulation/timetable.h"

namespace flopsight::simulation {

enum class Mode : std::uint8_t { kNobody, kStartUp, kCompute, kWait, kEvaluate, kCheckpoint };
inline constexpr std::size_t kModeCount = 6;
using ModeSeconds = std::array<double, kModeCount>;

// What is proportional to the time in a mode.
enum class Rate : std::uint8_t {
  kTensor, kSm, kOccupancy, kEngine, kDram, kFp32, kFp16, kPower, kNvlinkTx, kNvlinkRx, kPcieTx, kPcieRx
};
inline constexpr std::size_t kRateCount = 12;

struct Level {
  std::array<double, kRateCount> rates{};
  double clock_hertz = 0;  // the mean; readings vary around it where power_capped
  bool power_capped = false;
  double rate(Rate r) const { return rates[static_cast<std::size_t>(r)]; }
  double& rate(Rate r) { return rates[static_cast<std::size_t>(r)]; }
};

struct Workload {
  // The course of it, in seconds since its start.
  double length_seconds = 0;
  double start_up_seconds = 0;
  double final_seconds = 0;
  double cycle_seconds = 0;  // training, evaluation, checkpoint; then again
  double evaluate_seconds = 0;
  double checkpoint_seconds = 0;
  double step_seconds = 1;
  double compute_ratio = 0;  // of a step
  double jitter_ratio = 0;   // a step begins so much of a step late at most
  std::uint64_t key = 0;     // of its jitter
  std::array<Level, kModeCount> levels{};
  double framebuffer_ratio = 0;

  const Level& level(Mode mode) const { return levels[static_cast<std::size_t>(mode)]; }
  // Time spent in each mode in the first `x_seconds`, and the mode then.
  ModeSeconds spent(double x_seconds, Mode* now = nullptr) const;
};

// `may_cap`: false where several jobs share a GPU, whose clocks are locked then.
Workload workload_of(const Segment& segment, std::uint64_t key, const catalog::Device& device, bool may_cap);
// A GPU that nobody holds.
Level idle_level(const catalog::Device& device, bool locked_clock);

double idle_watts(const catalog::Device& device);

}  // namespace flopsight::simulation
