#pragma once
// What is true of a simulated fleet: for every job the report can name, what it was given, delivered and lost, computed from
// the closed forms and not from samples. docs/simulate.md says what each key of truth.json means.
// Threads: one thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "simulation/rows.h"

namespace flopsight::simulation {

// GPU time in seconds. allocated = delivered + the three losses.
struct TrueTime {
  double allocated_seconds = 0;
  double delivered_seconds = 0;
  double clock_loss_seconds = 0;  // negative: the clock was above the reference
  double tensor_idle_seconds = 0;  // while SMs were busy
  double sm_idle_seconds = 0;
  // The same losses by what is behind them.
  double clock_power_seconds = 0, clock_thermal_seconds = 0, clock_setting_seconds = 0;  // the rest of the clock's: none of these
  double memory_bound_seconds = 0;  // of tensor_idle; the rest: other kernels
  double stalled_seconds = 0, communication_seconds = 0, host_seconds = 0;  // of sm_idle; the rest: kernels that leave SMs idle
  // GPU time by phase, of the allocated time.
  double start_up_seconds = 0, training_seconds = 0, evaluation_seconds = 0, checkpoint_seconds = 0, hung_seconds = 0;
  // Integrals of the true and the reported MFU over the training time of jobs that report.
  double mfu_known_seconds = 0, mfu_seconds = 0, reported_mfu_seconds = 0;
  // Among them, time of which no scrape tells, and what was delivered in it.
  double unmeasured_seconds = 0;
  double unmeasured_delivered_seconds = 0;

  void add(const TrueTime& other);
};

struct TrueJob {
  JobNames names;
  std::vector<std::uint32_t> hosts;
  std::uint32_t gpus = 0;
  std::string mistake;  // of what it reports; empty: none
  std::int64_t start = 0;  // within the window
  std::int64_t end = 0;
  TrueTime time;
};

struct TrueEvent {
  std::string kind;  // job_restart, host_reboot, exporter_restart, precision_switch, or a condition_name()
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string workload;
  std::string host;                     // empty: of all hosts of the job
  XidError xid;
  // Of what happens to a job: OFU of its steps before it and during it, and the GPUs that are not like the others.
  std::optional<double> step_ofu_before_ratio, step_ofu_ratio;
  Odd odd;
  std::string format;  // that it changes to
};

struct TrueFleet {
  double present_seconds = 0;  // GPUs times window
  std::uint64_t jobs = 0;
  TrueTime held;
};

// Calls for every job and event that touches the window.
TrueFleet for_each_truth(const Timetable& timetable, const std::function<void(const TrueJob&)>& job,
                         const std::function<void(const TrueEvent&)>& event);

// The document truth.json, piece by piece.
base::Status write_truth(const Timetable& timetable, const std::function<base::Status(std::string_view)>& sink);

}  // namespace flopsight::simulation
