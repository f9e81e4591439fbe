#pragma once
// Who tells the service of jobs by itself: Slurm, which is asked, logs of training jobs, which are followed, and metrics that trainers
// export among the samples. All of it goes into the book of jobs.
//
// Threads: of whom it starts; the functions are for the one that flushes, but health(), which any may call.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/ingest.h"
#include "serve/job_service.h"
#include "serve/log_reading.h"
#include "serve/self_metrics.h"
#include "serve/serve_config.h"
#include "serve/slurm_poller.h"

namespace flopsight::app {

class Telling {
 public:
  // Begins at once. `ingest` and `jobs` are borrowed. Errors: of what the configuration says.
  static base::Result<std::unique_ptr<Telling>> start(const ServeConfig& config, Ingest& ingest, JobService& jobs,
                                                      std::function<units::Instant()> now);
  ~Telling();  // stops

  // From now on by another configuration: Slurm and the files of logs as that says, positions in the logs as they were. Nothing where both ask for
  // the same.
  base::Status reload(const ServeConfig& config);

  // Before a flush: what trainers exported goes to the book while the log still has it.
  void keep_reported(units::Instant now);
  TellingHealth health() const;
  // What changed since the last call, one line each: Slurm that does not answer, steps that could not be kept.
  std::vector<std::string> take_notes();

 private:
  Telling(Ingest& ingest, JobService& jobs, std::function<units::Instant()> now)
      : ingest_(ingest), jobs_(jobs), now_(std::move(now)) {}
  base::Status begin(const ServeConfig& config);
  void take(const SlurmTelling& told, const ServeConfig& config);

  Ingest& ingest_;
  JobService& jobs_;
  std::function<units::Instant()> now_;
  // Taken from the ingest and not kept yet, because the book could not be written.
  std::vector<training_logs::ExportedSteps::OfJob> unkept_;
  std::vector<std::string> notes_;
  std::string slurm_trouble_, reported_trouble_;  // said last

  ServeConfig config_;

  mutable std::mutex mutex_;  // before those of the logs' and of Slurm's; not held where these are stopped
  std::string trouble_;       // of what Slurm told last
  std::vector<std::string> slurm_notes_;
  std::unique_ptr<LogReading> logs_;
  std::unique_ptr<SlurmPoller> slurm_;
};

// How long slots have to wait for what is told of them: late samples, and the next answer of Slurm.
units::Seconds slot_wait(const ServeConfig& config);

}  // namespace flopsight::app
