#pragma once
// What to change next: rules, each small, with its own formula, prediction, confidence and source. A rule that has nothing to say says nothing;
// one whose gain the counters contradict is told as rejected, with the reason. Rules are in advice_*.cc; docs/tune.md lists them.
//
// The gain of a change is in tokens a second, new / old - 1, predicted with everything else as it is: gains of several do not add up.
// Threads: pure, but for StepModel's memory of results.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuning/memory.h"
#include "tuning/step.h"

namespace flopsight::tuning {

enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };
std::string_view confidence_name(Confidence confidence);

// Which time a change saves: what counters can confirm or contradict.
enum class Saves : std::uint8_t { kCompute, kMemory, kIdle, kOther };

struct Advice {
  std::string id;      // "micro_batch"
  std::string change;  // "micro-batches of 4 sequences instead of 1 (--micro-batch 4)": in words, then the options of `flopsight tune`
  std::optional<double> tokens_per_second;  // predicted with the change
  std::optional<double> step_seconds;    // of training
  std::optional<double> gain_ratio;      // tokens a second, new / old - 1; absent: known to cost, but not how much here, or it makes fit what did not
  std::optional<double> usd_saved_per_day;  // for the same tokens, where a price is known
  Confidence confidence = Confidence::kMedium;
  std::string why;
  std::string price;   // what it costs or risks; empty: nothing known
  std::string source;
  Saves saves = Saves::kOther;
  bool makes_it_fit = false;  // what did not fit into memory, and so has no speed that a gain could be over
  bool goes_first = false;  // before all others, as what is wrong now is mostly this
};

struct Rejected {
  std::string id;
  std::string change;
  std::string why;
};

struct Findings {
  std::vector<Advice> advice;      // what is most wrong first, then what has no figure, then by gain
  std::vector<Rejected> rejected;
};

// What counters say of the job, in shares of its measured time. Absent: not scraped.
struct Measured {
  std::optional<double> ofu_ratio;
  std::optional<double> tensor_active_ratio;
  std::optional<double> clock_loss_ratio;
  std::optional<double> tensor_idle_sm_busy_ratio;
  std::optional<double> sm_idle_ratio;
  // Parts of the two, where their causes are known.
  std::optional<double> memory_bound_ratio;   // of tensor_idle_sm_busy_ratio
  std::optional<double> other_kernels_ratio;  // of tensor_idle_sm_busy_ratio
  std::optional<double> waiting_ratio;        // of sm_idle_ratio: for messages, or stalled
  std::optional<double> host_ratio;           // of sm_idle_ratio: the host, input, kernels that are too short
  std::optional<double> mfu_ratio;         // as the job reports it
  std::optional<double> tokens_per_second;  // of the whole job
  std::optional<double> step_seconds;
};

// What a measured run makes of a prediction: compare.h. `seconds` is a step's time, put right.
struct Calibration {
  double busy_scale = 1;
  double idle_scale = 1;
  double idle_extra_seconds = 0;

  double seconds(const Step& step) const;
};
// Messages, bubble and launches of a step.
double idle_seconds(const Breakdown& breakdown);

// Lengths of training documents: how many there are of each.
using Histogram = std::vector<std::pair<std::uint64_t, double>>;  // tokens, weight

struct TrainCase {
  TrainSettings settings;
  Step step;
  Memory memory;
  std::optional<Measured> measured;
  std::optional<Calibration> calibration;       // by what was measured; changes are then predicted with it
  Histogram lengths;                            // empty: not known
  std::optional<double> checkpoint_seconds;     // that training stands still for one
  std::optional<double> checkpoint_interval_seconds;
  std::optional<double> failure_seconds;        // mean time between failures of the whole job
  std::optional<double> restart_seconds;
  std::vector<std::string> environment;         // "NAME=value"
  std::optional<double> usd_per_gpu_hour;
};

// Errors: none of its own; a change that cannot be predicted is not advised.
Findings advise_training(StepModel& steps, const TrainCase& one);

// Moves advice that the counters contradict to the rejected ones.
void contradict(const Measured& measured, Findings& findings);
// Orders by gain, adds money.
void finish(const std::optional<double>& usd_per_gpu_hour, std::uint64_t gpus, Findings& findings);

}  // namespace flopsight::tuning
