#include "serve/reserve.h"

#include "store/disk.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kBytes = 1 << 20;

}  // namespace

void Reserve::give_back() {
  store::Disk& disk = store::real_disk();
  const auto free = disk.free_bytes(folder_);
  // Without one there is nothing to give back, and who needs room says so.
  if (free.ok() && *free < kBytes) static_cast<void>(disk.remove(path()));
}

void Reserve::keep(std::uint64_t free_bytes_min) {
  if (is_there_) return;
  store::Disk& disk = store::real_disk();
  if (const auto size = disk.size(path()); size.ok() && *size == kBytes) {
    is_there_ = true;
    return;
  }
  const auto free = disk.free_bytes(folder_);
  if (!free.ok() || *free < free_bytes_min + 4 * kBytes) return;
  const auto file = disk.create(path());
  is_there_ = file.ok() && (*file)->append("", std::string(kBytes, '\0')).ok() && (*file)->sync().ok();
  if (!is_there_) static_cast<void>(disk.remove(path()));
}

}  // namespace flopsight::app
