#pragma once
// A disk in memory that can lose power, run full, tear a write and fail a sync: for tests.

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "store/disk.h"

namespace flopsight::store {

class TestDisk : public Disk {
 public:
  struct Bytes {
    std::string content;
    std::size_t durable_bytes = 0;
  };

  explicit TestDisk(unsigned seed = 1) : random_(seed) {}

  // What a power cut leaves: of each file its durable bytes, and of the rest any part, possibly of garbage.
  void lose_power() {
    for (auto& [path, file] : files_) {
      const std::size_t loose_bytes = file->content.size() - file->durable_bytes;
      const std::size_t kept_bytes = file->durable_bytes + (loose_bytes == 0 ? 0 : random_() % (loose_bytes + 1));
      file->content.resize(kept_bytes);
      for (std::size_t i = file->durable_bytes; i < kept_bytes; ++i) {
        if (random_() % 50 == 0) file->content[i] = static_cast<char>(random_());
      }
      file->durable_bytes = kept_bytes;
    }
  }
  std::string& content(const std::string& path) { return files_.at(path)->content; }
  std::size_t file_count() const { return files_.size(); }

  std::uint64_t space_bytes = std::uint64_t{1} << 40;  // what all files together may have
  bool sync_fails = false;
  bool truncate_fails = false;

  base::Status make_folder(const std::string&) override { return {}; }
  base::Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, file] : files_) {
      if (path.starts_with(folder + "/")) names.push_back(path.substr(folder.size() + 1));
    }
    return names;
  }
  base::Result<std::unique_ptr<DiskFile>> create(const std::string& path) override {
    auto& file = files_[path];
    file = std::make_shared<Bytes>();
    return std::unique_ptr<DiskFile>(std::make_unique<File>(*this, file));
  }
  base::Result<std::string> read(const std::string& path) override {
    const auto at = files_.find(path);
    if (at == files_.end()) return base::Error{base::ErrorCode::kNotFound, path};
    return at->second->content;
  }
  base::Result<std::uint64_t> size(const std::string& path) override {
    return std::uint64_t{files_.at(path)->content.size()};
  }
  base::Status remove(const std::string& path) override {
    files_.erase(path);
    return {};
  }
  base::Result<std::uint64_t> free_bytes(const std::string&) override {
    const std::uint64_t used = used_bytes();
    return used > space_bytes ? 0 : space_bytes - used;
  }

 private:
  class File : public DiskFile {
   public:
    File(TestDisk& disk, std::shared_ptr<Bytes> bytes) : disk_(disk), bytes_(std::move(bytes)) {}
    base::Status append(std::string_view head, std::string_view body) override {
      const std::string bytes = std::string(head) + std::string(body);
      const std::uint64_t free = disk_.free_bytes("").value();
      bytes_->content.append(bytes, 0, std::min<std::uint64_t>(bytes.size(), free));
      if (bytes.size() > free) return base::Error{base::ErrorCode::kLimit, "no space left"};
      return {};
    }
    base::Status sync() override {
      if (disk_.sync_fails) return base::Error{base::ErrorCode::kIo, "sync failed"};
      bytes_->durable_bytes = bytes_->content.size();
      return {};
    }
    base::Status truncate(std::uint64_t bytes) override {
      if (disk_.truncate_fails) return base::Error{base::ErrorCode::kIo, "truncate failed"};
      bytes_->content.resize(bytes);
      bytes_->durable_bytes = std::min(bytes_->durable_bytes, bytes_->content.size());
      return {};
    }

   private:
    TestDisk& disk_;
    std::shared_ptr<Bytes> bytes_;
  };

  std::uint64_t used_bytes() const {
    std::uint64_t used = 0;
    for (const auto& [path, file] : files_) used += file->content.size();
    return used;
  }

  std::map<std::string, std::shared_ptr<Bytes>> files_;
  std::mt19937_64 random_;
};

}  // namespace flopsight::store
