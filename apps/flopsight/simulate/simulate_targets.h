#pragma once
// Where a simulated fleet goes. Each returns when it is done, or when the process is told to stop (SIGINT, SIGTERM), or with
// an Error for what could not be done at all.

#include <atomic>

#include "base/result.h"
#include "env.h"
#include "simulate/simulate_options.h"

namespace flopsight::app {

base::Status simulate_to_folder(const SimulateArguments& arguments, const Env& env);
// `all_taken`: false when some samples were refused or lost.
base::Status simulate_to_remote_write(const SimulateArguments& arguments, const Env& env, const std::atomic<bool>& stop,
                                      bool& all_taken);
base::Status simulate_as_exporter(const SimulateArguments& arguments, const Env& env, const std::atomic<bool>& stop);

}  // namespace flopsight::app
