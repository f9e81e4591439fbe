#pragma once
// Files that a command writes where the user says: complete or not there, and never over what is there already unless asked.
// Errors name the path: kIo, kInvalid. Threads: one.

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::app {

// What the help of every option says that writes files: prepare_folder(), prepare_file() and make_folder_of() make folders that are missing.
inline constexpr std::string_view kFoldersAreMade = "; folders that are missing are made";

// Makes the folder where it is missing. Without `force` none of the files may be there.
base::Status prepare_folder(const std::string& folder, const std::vector<std::string>& paths, bool force);

// The same for one file, which is no folder.
base::Status prepare_file(const std::string& path, bool force);
// Makes the folder that the file lies in; the error names the option.
base::Status make_folder_of(std::string_view option, const std::string& path);

// Written beside its place and moved there by close(); without that it is gone.
class NewFile {
 public:
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  base::Status write(std::string_view bytes);
  base::Status close();

 private:
  std::string path_;
  std::string part_;
  std::ofstream file_;
  bool done_ = false;
};

}  // namespace flopsight::app
