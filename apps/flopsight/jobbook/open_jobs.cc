#include "jobbook/open_jobs.h"

#include "serve/open_folder.h"

namespace flopsight::app {

base::Status open_jobs(const std::string& folder, OpenedJobs& opened) {
  FLOPSIGHT_RETURN_IF_ERROR(open_folder(folder, opened.store, opened.service));
  opened.settings.fleet.catalog = &opened.catalog;
  opened.settings.simulated = opened.store->simulated();
  opened.settings.grouping = std::make_shared<const jobs::Grouping>();
  opened.settings.families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  return {};
}

}  // namespace flopsight::app
