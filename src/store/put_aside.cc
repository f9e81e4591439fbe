#include "store/put_aside.h"

#include <filesystem>

namespace flopsight::store {

base::Result<std::string> put_aside(const std::string& path) {
  std::string aside;
  for (int n = 1; aside.empty() || std::filesystem::exists(aside); ++n)
    aside = path + ".damaged-" + std::to_string(n);
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error)
    return base::Error{base::ErrorCode::kIo, path + ": cannot be renamed: " + error.message()};
  for (const char* companion : {"-wal", "-shm"}) {
    if (std::filesystem::exists(path + companion))
      std::filesystem::rename(path + companion, aside + companion, error);
  }
  return aside;
}

}  // namespace flopsight::store
