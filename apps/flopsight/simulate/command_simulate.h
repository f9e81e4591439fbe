#pragma once
// `flopsight simulate`: a fleet that does not exist, as a file with its truth, as exporters, or as remote write.

#include "env.h"
#include "simulate/simulate_options.h"

namespace flopsight::app {

int run_simulate(const SimulateArguments& arguments, const Env& env);

}  // namespace flopsight::app
