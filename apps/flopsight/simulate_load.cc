#include "simulate_targets.h"

namespace flopsight::app {
base::Status simulate_to_remote_write(const SimulateArguments&, const Env&, const std::atomic<bool>&, bool&) {
  return base::Error{base::ErrorCode::kUnsupported, "--remote-write is not built yet"};
}
}
