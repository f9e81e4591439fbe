#pragma once
// `flopsight flops CONFIG.json`: parameters, FLOPs of a token in one convention or all, cache and layers of a model.
// Exit codes: 0; 2 when the configuration cannot be read, is not known, or an option does not fit the model.

#include "env.h"
#include "flopcount/flops_options.h"

namespace flopsight::app {

int run_flops(const FlopsArguments& arguments, const Env& env);

}  // namespace flopsight::app
