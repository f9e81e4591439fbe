#include "serve/log_file.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

base::Error failure(const std::string& path, base::ErrorCode code, const std::string& what) {
  return {code, base::printable(path) + ": " + what};
}

base::Error system_failure(const std::string& path) {
  return failure(path, errno == ENOENT ? base::ErrorCode::kNotFound : base::ErrorCode::kIo, std::strerror(errno));
}

// Fills as much as there is, past interruptions.
ssize_t read_some(int descriptor, bool pipe, char* into, std::size_t size, std::uint64_t offset_bytes) {
  while (true) {
    const ssize_t got = pipe ? ::read(descriptor, into, size) : ::pread(descriptor, into, size, static_cast<off_t>(offset_bytes));
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

base::Result<LogFile> LogFile::open(const std::string& path, bool allow_pipe) {
  LogFile file;
  file.path_ = path;
  // Not to wait for the other end of a pipe that somebody put where a log should be.
  file.descriptor_ = path == "-" && allow_pipe ? ::dup(0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (allow_pipe ? 0 : O_NONBLOCK));
  if (file.descriptor_ < 0) return system_failure(path);
  struct stat info {};
  if (::fstat(file.descriptor_, &info) != 0) return system_failure(path);
  file.identity_ = {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
  file.pipe_ = !S_ISREG(info.st_mode);
  if (file.pipe_ && (!allow_pipe || S_ISDIR(info.st_mode))) {
    return failure(path, base::ErrorCode::kUnsupported, S_ISDIR(info.st_mode) ? "a folder, expected a file" : "no regular file");
  }
  std::string begins;
  if (file.pipe_) {
    file.begun_.resize(kHeadBytes);
    std::size_t size = 0;
    while (size < 4) {  // enough to tell what it is
      const ssize_t got = read_some(file.descriptor_, true, file.begun_.data() + size, file.begun_.size() - size, 0);
      if (got < 0) return system_failure(path);
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    file.begun_.resize(size);
    begins = file.begun_;
  } else {
    FLOPSIGHT_ASSIGN_OR_RETURN(begins, file.head(4));
  }
  if (begins.starts_with("\xFF\xFE") || begins.starts_with("\xFE\xFF")) {
    return failure(path, base::ErrorCode::kUnsupported, "UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8");
  }
  if (wire::looks_like_gzip(begins)) file.inflate_ = std::make_unique<wire::InflateStream>(wire::InflateStream::gzip());
  if (wire::looks_like_zstd(begins)) file.inflate_ = std::make_unique<wire::InflateStream>(wire::InflateStream::zstd());
  return file;
}

LogFile::LogFile(LogFile&& other) noexcept { *this = std::move(other); }

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  if (this == &other) return *this;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  pipe_ = other.pipe_;
  path_ = std::move(other.path_);
  identity_ = other.identity_;
  offset_bytes_ = other.offset_bytes_;
  inflate_ = std::move(other.inflate_);
  begun_ = std::move(other.begun_);
  buffer_ = std::move(other.buffer_);
  return *this;
}

LogFile::~LogFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Result<std::size_t> LogFile::read(std::size_t bytes_max, const Sink& sink) {
  std::string_view bytes;
  if (!begun_.empty()) {
    buffer_ = std::exchange(begun_, std::string());
    bytes = buffer_;
  } else {
    buffer_.resize(std::min(bytes_max, kReadBytes));
    const ssize_t got = read_some(descriptor_, pipe_, buffer_.data(), buffer_.size(), offset_bytes_);
    if (got < 0) return system_failure(path_);
    bytes = std::string_view(buffer_).substr(0, static_cast<std::size_t>(got));
  }
  offset_bytes_ += bytes.size();
  if (bytes.empty()) return std::size_t{0};
  if (inflate_ != nullptr) {
    FLOPSIGHT_RETURN_IF_ERROR(inflate_->feed(bytes, sink).within(base::printable(path_)));
  } else {
    sink(bytes);
  }
  return bytes.size();
}

base::Status LogFile::finish() const {
  if (inflate_ == nullptr) return {};
  return inflate_->finish().within(base::printable(path_));
}

base::Result<std::uint64_t> LogFile::size_bytes() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return system_failure(path_);
  return static_cast<std::uint64_t>(info.st_size);
}

base::Result<std::string> LogFile::head(std::size_t bytes) const {
  std::string out(bytes, '\0');
  const ssize_t got = read_some(descriptor_, false, out.data(), out.size(), 0);
  if (got < 0) return system_failure(path_);
  out.resize(static_cast<std::size_t>(got));
  return out;
}

std::vector<std::string> matching_paths(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  return paths;
}

}  // namespace flopsight::app
