#include "simulate_targets.h"

namespace flopsight::app {
base::Status simulate_as_exporter(const SimulateArguments&, const Env&, const std::atomic<bool>&) {
  return base::Error{base::ErrorCode::kUnsupported, "--exporter is not built yet"};
}
}
