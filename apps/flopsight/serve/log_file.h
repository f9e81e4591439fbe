#pragma once
// A log file, read in pieces from a place on, plain or compressed (gzip, zstd; told by its first bytes, not its name).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "wire/inflate_stream.h"

namespace flopsight::app {

// Which file it is, whatever it is called.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

class LogFile {
 public:
  using Sink = std::function<void(std::string_view)>;
  static constexpr std::size_t kHeadBytes = 1024;
  static constexpr std::size_t kReadBytes = std::size_t{1} << 20;

  // Errors: kNotFound, kIo, naming the path; kUnsupported for what is no regular file (and no pipe, with allow_pipe). "-" is standard
  // input with allow_pipe.
  static base::Result<LogFile> open(const std::string& path, bool allow_pipe);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  FileIdentity identity() const { return identity_; }
  bool compressed() const { return inflate_ != nullptr; }

  // Reads up to `bytes_max` bytes of the file (compressed bytes, if it is) and hands on what they say. How many were read; 0 at the
  // end, for now. Errors: kIo, kCorrupt.
  base::Result<std::size_t> read(std::size_t bytes_max, const Sink& sink);
  // At the end: a compressed file that is cut short is kCorrupt.
  base::Status finish() const;

  // The size now.
  base::Result<std::uint64_t> size_bytes() const;
  void seek(std::uint64_t offset_bytes) { offset_bytes_ = offset_bytes; }
  std::uint64_t offset_bytes() const { return offset_bytes_; }
  // The first bytes as they are now, at most `bytes`.
  base::Result<std::string> head(std::size_t bytes) const;

 private:
  LogFile() = default;
  int descriptor_ = -1;
  bool pipe_ = false;
  std::string path_;
  FileIdentity identity_;
  std::uint64_t offset_bytes_ = 0;
  std::unique_ptr<wire::InflateStream> inflate_;
  std::string begun_;  // what was read of a pipe to see what it is
  std::string buffer_;
};

// The paths that a pattern with * ? [ ] names now, sorted; a path without those is itself, when it exists.
std::vector<std::string> matching_paths(const std::string& pattern);

}  // namespace flopsight::app
