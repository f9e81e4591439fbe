#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/stat.h>

namespace flopsight::base {

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  struct Closer {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Closer> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) {
    const int cause = errno;
    return Error{cause == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 path + ": cannot open: " + std::strerror(cause)};
  }
  struct stat status {};
  if (fstat(fileno(file.get()), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::kIo, path + ": is a directory, expected a file"};
  }
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const std::size_t got = std::fread(buffer, 1, sizeof buffer, file.get());
    bytes.append(buffer, got);
    if (bytes.size() > bytes_max) {
      return Error{ErrorCode::kLimit,
                   path + ": larger than " + std::to_string(bytes_max) + " bytes"};
    }
    if (got < sizeof buffer) break;
  }
  if (std::ferror(file.get()) != 0) {
    return Error{ErrorCode::kIo, path + ": cannot read: " + std::strerror(errno)};
  }
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    return Error{ErrorCode::kUnsupported, path + ": UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8"};
  }
  // What editors on Windows put before UTF-8 is no part of the text.
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  return bytes;
}

}  // namespace flopsight::base
