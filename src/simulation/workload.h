#pragma once
// What a job does to its GPUs. A job is a sequence of modes: it starts up, then trains step after step (a computing part and
// a waiting part), is evaluated and writes checkpoints, and ends with one. How long it has spent in each mode since
// it began is a closed form, jitter included: a step does the same work however long it waits. So every mean over a window and
// every integral is exact, and costs the same for a second as for a day.
//
// A part of a job to which something happens (course.h) is a workload of its own. GPUs that are slower than the others of their job do the
// same work in more time, and the others wait for them.
//
// Within a mode all quantities stand still, but for noise that integrates to zero (meter.h).
// Threads: pure.

#include <array>
#include <cstddef>
#include <cstdint>

#include "catalog/devices.h"
#include "simulation/course.h"
#include "simulation/timetable.h"

namespace flopsight::simulation {

enum class Mode : std::uint8_t { kNobody, kStartUp, kCompute, kWait, kEvaluate, kCheckpoint, kInput, kHung };
inline constexpr std::size_t kModeCount = 8;
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
  std::uint32_t event_reasons = 0;  // bits, beside that of the power cap
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
  double input_ratio = 0;    // of a step, waiting for data or the host before it computes
  bool hung = false;         // all of it
  std::array<Level, kModeCount> levels{};
  double framebuffer_ratio = 0;
  JobKind kind = JobKind::kPretrain;

  // GPUs that are not like the others.
  Odd odd;
  double odd_compute_ratio = 0;
  std::array<Level, kModeCount> odd_levels{};

  // MFU of its steps: what a right count of the FLOPs gives, and what the job reports. 0: it reports none.
  double mfu_ratio = 0;
  double reported_mfu_ratio = 0;
  double ofu_ratio = 0;  // of its steps

  bool is_odd(std::uint32_t gpu) const { return gpu - odd.gpu_first < odd.gpu_count; }
  const Level& level(Mode mode, bool of_odd = false) const {
    return (of_odd ? odd_levels : levels)[static_cast<std::size_t>(mode)];
  }
  // Time spent in each mode in the first `x_seconds`, and the mode then.
  ModeSeconds spent(double x_seconds, Mode* now = nullptr, bool of_odd = false) const;

  // Steps that end in it, and when the nth of them begins: seconds since the start, pauses included. Of trainings.
  std::uint64_t step_count() const;
  double step_begins_seconds(std::uint64_t n) const;
  double step_length_seconds(std::uint64_t n) const;  // without pauses
};

Workload workload_of(const Timetable& timetable, const Segment& segment);

// Several jobs share a GPU, whose clocks are locked then.
bool has_locked_clocks(const Options& options);
// The job trains, in steps that wait for each other.
constexpr bool is_training(JobKind kind) { return kind != JobKind::kInference && kind != JobKind::kNotebook; }
// What a step of a training reads of its GPUs' OFU is above its MFU by: tiles, and the cycles that a block-scaled format costs.
double cycles_per_useful_cycle(Format format);
// A GPU that nobody holds.
Level idle_level(const catalog::Device& device, bool locked_clock);

double idle_watts(const catalog::Device& device);

}  // namespace flopsight::simulation
