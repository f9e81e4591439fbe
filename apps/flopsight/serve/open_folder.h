#pragma once
// A store folder opened to be read, also while the service runs on it: rollups and the book of jobs, of which one may be missing.

#include <memory>
#include <string>

#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

// `rollups` are of nothing where there are none yet; `service` is null where there is no book. Errors: kNotFound where there is neither.
base::Status open_folder(const std::string& folder, std::unique_ptr<store::Reader>& rollups, std::unique_ptr<JobService>& service);

}  // namespace flopsight::app
