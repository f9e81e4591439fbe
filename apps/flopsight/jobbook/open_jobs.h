#pragma once
// A store folder opened for questions about jobs from the command line: rollups and the book of jobs, of which one may be missing. Only read,
// also while the service runs on it.

#include <memory>
#include <string>

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

}  // namespace flopsight::app
