#pragma once
// Goodput of a job: what part of the time that it held its GPUs moved it forward, from its phases, and from its log where there is one.
//
//   productive  training and evaluation, less what was lost
//   lost        work that was done and thrown away: steps that were repeated after a restart. By the log where it has numbers of
//               steps; else what the job had trained since the last checkpoint that its counters showed, where they showed one before
//               every failure; else not known, and then productive contains it
//
// ETTR, the effective training time ratio, is productive time over the time from its first to its last slot, in which it may have had no
// GPUs (Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", arXiv 2410.21680, section II; without the time in
// the queue, which is not known here).
//
// The interval between checkpoints that costs least follows from how long one takes (d) and how long the job runs until it fails (M):
//   Young:  sqrt(2 d M)                                                     J. W. Young, CACM 17(9), 1974
//   Daly:   sqrt(2 d M) (1 + sqrt(d / (2 M)) / 3 + d / (18 M)) - d,  d < 2 M     J. T. Daly, FGCS 22(3), 2006, equation 37
// Both are only there where failures and checkpoints were observed: nothing is assumed about a job that never failed.
//
// GPU-seconds unless a name says otherwise. Threads: pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/phases.h"
#include "training_logs/report.h"

namespace flopsight::analysis {

// Steps of a log that were done twice.
struct RepeatedSteps {
  std::uint64_t steps = 0;
  double seconds = 0;  // by their median
  std::uint64_t restarts = 0;
};
// `steps` ascending by attempt and number; nothing when none has a number and a time that it took.
std::optional<RepeatedSteps> repeated_steps(std::span<const training_logs::Step> steps);

// Moments at which the peak that a log divides by changes for good: another number format. Only where steps have times.
std::vector<units::Instant> precision_switches(std::span<const training_logs::Step> steps);

double young_interval_seconds(double checkpoint_seconds, double failure_seconds);
// Above d = 2 M it is M.
double daly_interval_seconds(double checkpoint_seconds, double failure_seconds);

struct Goodput {
  double allocated_seconds = 0;
  double productive_seconds = 0;
  double starting_seconds = 0;
  double checkpointing_seconds = 0;
  double restarting_seconds = 0;
  double stalled_seconds = 0;
  double slowed_seconds = 0;  // waiting beyond the usual, between its steps
  double ending_seconds = 0;  // idle after the last step
  double unmeasured_seconds = 0;
  std::optional<double> lost_seconds;
  std::string_view lost_source;  // "log", "checkpoints seen"; empty: not known
  std::optional<std::uint64_t> lost_steps;
  std::optional<double> goodput_ratio;  // productive over what was measured
  std::optional<double> ettr_ratio;
  std::uint64_t failure_count = 0;
  std::optional<double> failure_interval_wall_seconds;     // M
  std::optional<double> checkpoint_wall_seconds;           // d
  std::optional<double> checkpoint_interval_wall_seconds;  // as observed
  std::optional<double> young_interval_wall_seconds;
  std::optional<double> daly_interval_wall_seconds;
};

// `repeated`: of its log; nothing where there is none.
Goodput goodput_of(const Phases& phases, const std::optional<RepeatedSteps>& repeated);

}  // namespace flopsight::analysis
