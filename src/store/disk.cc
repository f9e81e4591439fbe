#include "store/disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"

namespace flopsight::store {
namespace {

base::Error failed(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return {full ? base::ErrorCode::kLimit : base::ErrorCode::kIo, what + ": " + std::strerror(error)};
}

class RealFile : public DiskFile {
 public:
  RealFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~RealFile() override { ::close(descriptor_); }

  base::Status append(std::string_view head, std::string_view body) override {
    while (!head.empty() || !body.empty()) {
      iovec parts[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body.data()), body.size()}};
      const ssize_t written = ::writev(descriptor_, parts, 2);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed(path_, written == 0 ? EIO : errno);
      const auto bytes = static_cast<std::size_t>(written);
      const std::size_t of_head = std::min(bytes, head.size());
      head.remove_prefix(of_head);
      body.remove_prefix(bytes - of_head);
    }
    return {};
  }
  base::Status sync() override {
    if (::fdatasync(descriptor_) != 0) return failed(path_, errno);
    return {};
  }
  base::Status truncate(std::uint64_t bytes) override {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) return failed(path_, errno);
    return {};
  }

 private:
  int descriptor_;
  std::string path_;
};

base::Status sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failed(path, errno);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (result != 0) return failed(path, error);
  return {};
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

class RealDisk : public Disk {
 public:
  base::Status make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return failed(path, error.value());
    return sync_folder(folder_of(path));
  }
  base::Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error);
    if (error) return failed(folder, error.value());
    for (const auto& entry : at) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  base::Result<std::unique_ptr<DiskFile>> create(const std::string& path) override {
    const int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0640);
    if (descriptor < 0) return failed(path, errno);
    auto file = std::make_unique<RealFile>(descriptor, path);
    FLOPSIGHT_RETURN_IF_ERROR(sync_folder(folder_of(path)));
    return std::unique_ptr<DiskFile>(std::move(file));
  }
  base::Result<std::string> read(const std::string& path) override { return base::read_file(path); }
  base::Result<std::uint64_t> size(const std::string& path) override {
    struct stat found = {};
    if (::stat(path.c_str(), &found) != 0) return failed(path, errno);
    return static_cast<std::uint64_t>(found.st_size);
  }
  base::Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return failed(path, errno);
    return sync_folder(folder_of(path));
  }
  base::Result<std::uint64_t> free_bytes(const std::string& folder) override {
    struct statvfs found = {};
    if (::statvfs(folder.c_str(), &found) != 0) return failed(folder, errno);
    return static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}

base::Result<FolderLock> FolderLock::take(const std::string& folder) {
  const std::string path = folder + "/LOCK";
  const int descriptor = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0640);
  if (descriptor < 0) return failed(path, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    char text[32] = {};
    const ssize_t size = ::read(descriptor, text, sizeof(text) - 1);
    ::close(descriptor);
    if (error != EWOULDBLOCK) return failed(path, error);
    std::string who(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    return base::Error{base::ErrorCode::kUnavailable,
                       folder + ": in use by another flopsight" + (who.empty() ? "" : " (process " + who + ")") +
                           "; one store belongs to one process"};
  }
  const std::string self = std::to_string(::getpid());
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, self.data(), self.size(), 0) < 0) {
    const int error = errno;
    ::close(descriptor);
    return failed(path, error);
  }
  return FolderLock(descriptor);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace flopsight::store
