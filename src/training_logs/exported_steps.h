#pragma once
// Figures that trainers export (exported_metrics.h), sample by sample, to steps of jobs: a step for each slot of time, with the median of
// each figure over the series and scrapes in it, at the end of the slot. A gauge repeats what it last was, so there are more samples
// than steps of the trainer, or fewer; either way a slot says how fast the job said that it went in it.
//
// Time is the samples' own: a slot of a job is closed when a sample of that job comes `late` after its end, or when none came for `idle`
// on the wall's clock. What comes for a closed slot is late, and left out.
// Memory: open slots only, with a limit on jobs and on values. Threads: one.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samples/gpu.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {

class ExportedSteps {
 public:
  struct Options {
    units::Seconds slot{60};
    units::Seconds late{60};
    units::Seconds idle{600};
    units::Seconds future_max{600};
    std::size_t jobs_max = 100'000;      // with an open slot
    std::size_t values_max = 1'000'000;  // in open slots
  };
  enum class Added : std::uint8_t {
    kKept,
    kOutOfTime,  // its slot is closed, or too far in the future
    kLimit,      // jobs_max or values_max
  };

  explicit ExportedSteps(Options options) : options_(options) {}

  // One sample: the step has its time (checked) and what it says. `now` is the wall's clock, `segment` of the log that has the sample.
  Added add(const samples::Holder& holder, const Step& sample, units::Instant now, std::uint32_t segment);

  struct OfJob {
    std::string job;  // as in samples::Holder
    std::string name_space;
    std::vector<Step> steps;  // ascending in time; excluded where they cannot be (merge_steps.h)
  };
  // The slots that are closed since the last call, by job.
  std::vector<OfJob> take(units::Instant now);

  // The oldest segment with a sample of an open slot; nothing when none is open.
  std::optional<std::uint32_t> oldest_segment() const;
  std::size_t job_count() const { return jobs_.size(); }

 private:
  struct Slot {
    std::uint32_t segment = 0;
    std::vector<std::pair<std::uint8_t, double>> values;  // by place in kStepFigures; past them, the loss
  };
  struct Job {
    std::map<std::int64_t, Slot> slots;  // by start, in milliseconds
    std::int64_t closed_until = INT64_MIN;
    std::int64_t newest = INT64_MIN;
    std::int64_t arrived = 0;
  };
  Step step_of(std::int64_t end, const Slot& slot) const;

  Options options_;
  std::map<std::pair<std::string, std::string>, Job> jobs_;  // by job and namespace
  std::size_t values_total_ = 0;
};

}  // namespace flopsight::training_logs
