#include "new_files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

Status io_error(const std::string& path, const std::string& what) {
  return Error{ErrorCode::kIo, path + ": " + what + ": " + std::strerror(errno)};
}

Status make_folder(std::string_view option, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{ErrorCode::kIo, std::string(option) + " " + folder + ": cannot be made a folder: " + error.message()};
  return {};
}

}  // namespace

Status make_folder_of(std::string_view option, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? Status() : make_folder(option, folder);
}

Status prepare_file(const std::string& path, bool force) {
  std::error_code error;
  if (path.ends_with('/') || std::filesystem::is_directory(path, error)) return Error{ErrorCode::kInvalid, "--out " + path + ": is a folder, expected a file"};
  FLOPSIGHT_RETURN_IF_ERROR(make_folder_of("--out", path));
  if (!force && std::filesystem::exists(path, error)) return Error{ErrorCode::kInvalid, path + ": is there already; --force replaces it"};
  return {};
}

Status prepare_folder(const std::string& folder, const std::vector<std::string>& paths, bool force) {
  FLOPSIGHT_RETURN_IF_ERROR(make_folder("--out", folder));
  if (force) return {};
  std::error_code error;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path, error)) return Error{ErrorCode::kInvalid, path + ": is there already; --force replaces it"};
  }
  return {};
}

NewFile::NewFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
  errno = 0;
  file_.open(part_, std::ios::binary | std::ios::trunc);
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!done_) std::filesystem::remove(part_, ignored);
}

Status NewFile::write(std::string_view bytes) {
  if (!file_.is_open()) return io_error(path_, "cannot be written");
  errno = 0;
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file_ ? Status() : io_error(path_, "cannot be written");
}

Status NewFile::close() {
  errno = 0;
  file_.close();
  if (!file_) return io_error(path_, "cannot be written");
  std::error_code error;
  std::filesystem::rename(part_, path_, error);
  if (error) return Error{ErrorCode::kIo, path_ + ": cannot be written: " + error.message()};
  done_ = true;
  return {};
}

}  // namespace flopsight::app
