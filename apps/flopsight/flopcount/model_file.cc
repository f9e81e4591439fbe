#include "flopcount/model_file.h"

#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::app {

base::Result<flops::Model> read_model_file(const std::string& path, const flops::ReadOptions& options) {
  std::error_code ignored;
  const bool folder = path != "-" && std::filesystem::is_directory(path, ignored);
  const std::string file = folder ? path + "/config.json" : path;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text, base::read_file(file, flops::kConfigBytesMax));
  return flops::read_hf_config(text, options).within(path == "-" ? "standard input" : base::printable(file));
}

}  // namespace flopsight::app
