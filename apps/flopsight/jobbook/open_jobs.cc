#include "jobbook/open_jobs.h"

namespace flopsight::app {

base::Status open_jobs(const std::string& folder, OpenedJobs& opened) {
  store::SqliteStoreOptions how;
  how.read_only = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(opened.store, store::open_sqlite_store(folder, how));
  auto service = JobService::open(folder, true);
  if (!service.ok() && service.error().code != base::ErrorCode::kNotFound) return service.error();
  if (service.ok()) opened.service = std::move(service).value();
  opened.settings.fleet.catalog = &opened.catalog;
  opened.settings.simulated = opened.store->simulated();
  opened.settings.grouping = std::make_shared<const jobs::Grouping>();
  opened.settings.families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  return {};
}

Caller everybody() { return {"", true, true, true, {}, {}}; }

}  // namespace flopsight::app
