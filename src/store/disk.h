#pragma once
// The few things that the write-ahead log asks of a disk, as a seam: tests put a disk behind it that loses power, runs full or
// tears a write, and the log's own code runs unchanged.
//
// Errors: kIo, naming the path; kLimit when the disk is full (ENOSPC, EDQUOT), which may pass.
// Threads: a Disk may be used by several; one DiskFile by one at a time, but for sync(), which may run beside write().

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::store {

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // At the end. All or nothing is not promised: after an error the file may have grown by a part of it.
  virtual base::Status append(std::string_view head, std::string_view body) = 0;
  // Everything appended so far survives a power cut once this returns.
  virtual base::Status sync() = 0;
  virtual base::Status truncate(std::uint64_t bytes) = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual base::Status make_folder(const std::string& path) = 0;
  // Names of files in a folder, sorted.
  virtual base::Result<std::vector<std::string>> list(const std::string& folder) = 0;
  // A new file; its name survives a power cut once this returns.
  virtual base::Result<std::unique_ptr<DiskFile>> create(const std::string& path) = 0;
  virtual base::Result<std::string> read(const std::string& path) = 0;
  virtual base::Result<std::uint64_t> size(const std::string& path) = 0;
  virtual base::Status remove(const std::string& path) = 0;
  virtual base::Result<std::uint64_t> free_bytes(const std::string& folder) = 0;
};

// The disk of this machine.
Disk& real_disk();

// Holds a folder for this process: kUnavailable, naming the process that has it, when another one does. Released
// with the object, also by kill -9.
class FolderLock {
 public:
  static base::Result<FolderLock> take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace flopsight::store
