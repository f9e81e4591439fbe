#include "serve/open_folder.h"

#include "store/no_rollups.h"

namespace flopsight::app {

base::Status open_folder(const std::string& folder, std::unique_ptr<store::Reader>& rollups, std::unique_ptr<JobService>& service) {
  store::SqliteStoreOptions how;
  how.read_only = true;
  auto stored = store::open_sqlite_store(folder, how);
  if (!stored.ok() && stored.error().code != base::ErrorCode::kNotFound) return stored.error();
  auto book = JobService::open(folder, true);
  if (!book.ok() && book.error().code != base::ErrorCode::kNotFound) return book.error();
  if (!stored.ok() && !book.ok()) return stored.error();
  if (stored.ok()) {
    rollups = std::move(stored).value();
  } else {
    rollups = std::make_unique<store::NoRollups>();
  }
  if (book.ok()) service = std::move(book).value();
  return {};
}

}  // namespace flopsight::app
