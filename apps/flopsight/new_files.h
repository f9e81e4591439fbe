#pragma once
// Files that a command writes into a folder of the user's: complete or not there, and never over what is there already unless asked.
// Errors name the path: kIo, kInvalid. Threads: one.

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::app {

// Makes the folder where it is missing. Without `force` none of the files may be there.
base::Status prepare_folder(const std::string& folder, const std::vector<std::string>& paths, bool force);

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
