#pragma once
// A model's description from a file that the user names.

#include <string>

#include "base/result.h"
#include "flops/hf_config.h"

namespace flopsight::app {

// A config.json, a folder that has one, or "-" for standard input. Errors begin with the path.
base::Result<flops::Model> read_model_file(const std::string& path, const flops::ReadOptions& options = {});

}  // namespace flopsight::app
