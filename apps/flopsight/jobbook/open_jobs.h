#pragma once
// A store folder opened for questions about jobs from the command line: rollups and the book of jobs, of which one may be missing. Only read,
// also while the service runs on it.

#include <memory>
#include <optional>
#include <string>

#include "analysis/job_answer.h"
#include "samples/quality.h"
#include "serve/answer.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

struct OpenedJobs {
  catalog::DeviceCatalog catalog = catalog::DeviceCatalog::builtin();
  std::unique_ptr<store::Reader> store;  // of nothing where there are no rollups yet
  std::unique_ptr<JobService> service;   // nullptr: a store of before, or of an import, has no book
  AnswerSettings settings;              // points into this
};

// `opened` must not move afterwards. Errors: of the folder or the book.
base::Status open_jobs(const std::string& folder, OpenedJobs& opened);

// The time that a question about one job names; of nothing, the 24 hours before now.
struct AskedTime {
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  std::string prefix = "--";  // of its options, for the error line
};
struct JobInTime {
  analysis::JobAnswer job;
  units::Window window;
  bool is_own_time = false;  // no time was named and the job had none in the last 24 hours: then it is from the job's first moment to its last
};
// kNotFound for a job that is nowhere in the store, and, saying when it was, for one that is not in the time that was named.
base::Result<JobInTime> answer_job_in_time(OpenedJobs& opened, const std::string& id, const AskedTime& asked, units::Instant now,
                                           samples::QualityLog& quality);

}  // namespace flopsight::app
