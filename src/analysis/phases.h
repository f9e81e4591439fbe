#pragma once
// What a job did when, told from its minute rollups alone: start-up, training, evaluation, checkpoint, restart, stalled, idle tail.
//
// What is normal is taken from the job itself: its typical slot is the median of those that deliver at least half of what its best tenth does. A slot is
// then divided by how much more idle its SMs are than typically (a pause), and by how much less its links carry while it works (an evaluation,
// which needs no gradients of other GPUs); the rest is training. So pauses shorter than a slot count with their length. Where links carry under half of what
// they do typically for as much work, SMs that idle more are the evaluation's. One that lasts for over 20 minutes and is followed by no training is none.
// A slot that delivers a tenth of the typical OFU trains, however slowly: it is no idle tail. What a pause is follows from what
// is around it and from its counters:
//   before the first training: start-up; after the last: idle tail, or a checkpoint where the GPUs send over PCIe;
//   nothing runs, or kernels wait on silent links (rollups/causes.h): stalled;
//   after a stall, or after the job had lost its GPUs: restart, until it trains again;
//   GPUs send at least kCheckpointBytesPerSecond over PCIe, and more than twice as much as they do typically: checkpoint;
//   else: slowed, time that a step waits for its host or its input.
// These rules are assumptions, and answers say them (kPhaseRules). Nothing is concluded from slots that are not measured by half, or
// without SM activity: their time is unmeasured.
//
// A job that delivers no tensor work to speak of (an inference server), or works in bursts and stands for longer between them, three times and more, with links
// that carry nothing (a notebook), has no phases: `absent_reason` says so.
//
// Units: GPU-seconds unless a name says otherwise. Threads: pure.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rollups/totals.h"
#include "units/time.h"

namespace flopsight::analysis {

enum class Phase : std::uint8_t { kStartUp, kTraining, kEvaluation, kCheckpoint, kRestart, kStalled, kSlowed, kIdleTail, kUnmeasured };
inline constexpr std::size_t kPhaseCount = 9;
std::string_view phase_name(Phase phase);  // "start_up", "training", …

inline constexpr double kCheckpointBytesPerSecond = 5e8;  // of one GPU, while it pauses
inline constexpr std::string_view kPhaseRules =
    "phases: a pause is SM idle time beyond the job's own median; a checkpoint where GPUs meanwhile send 0.5 GB/s over PCIe and twice "
    "what they do typically; an evaluation where links carry under half of what they do typically for as much work; training from a tenth of the typical OFU on; "
    "a failure where all of it stops, and not some GPUs; stalled as in the waterfall";

// The rollup of one slot of a job, all of its GPUs.
struct PhaseSlot {
  units::Instant start;
  rollups::Totals totals;
};

struct PhaseSpan {
  Phase phase = Phase::kTraining;
  units::Instant start;
  units::Instant end;
};

struct Phases {
  std::string absent_reason;      // why there are none; empty: there are
  std::vector<PhaseSpan> spans;   // of each slot what it is most, neighbours joined; ascending
  std::array<double, kPhaseCount> gpu_seconds{};  // adds up to the allocated time of the slots
  double wall_seconds = 0;        // from the first slot to the end of the last, gaps included
  double away_wall_seconds = 0;   // of it, without GPUs between two slots
  // When it stopped training and started again: a stall or a loss of its GPUs with training before and after.
  struct Failure {
    units::Instant stopped;
    units::Instant training_again;
    double since_checkpoint_wall_seconds = 0;  // of training before it, back to the last checkpoint that was seen, or to the start
    bool checkpoint_seen = false;
  };
  std::vector<Failure> failures;
  std::uint64_t checkpoint_count = 0;
  double checkpoint_wall_seconds = 0;  // of all of them

  double of(Phase phase) const { return gpu_seconds[static_cast<std::size_t>(phase)]; }
};

// `slots` ascending, each `slot` long.
Phases phases_of(std::span<const PhaseSlot> slots, units::Seconds slot);

}  // namespace flopsight::analysis
