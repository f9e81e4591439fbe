#pragma once
// What the configuration says of the engine; reads the files of its credentials. Errors: of a file that cannot be read. Threads: any.

#include <optional>

#include "base/result.h"
#include "serve/ingest.h"
#include "serve/serve_config.h"

namespace flopsight::app {

// Nothing without an engine.
base::Result<std::optional<EngineSettings>> engine_settings(const ServeConfig& config);

}  // namespace flopsight::app
