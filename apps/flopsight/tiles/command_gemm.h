#pragma once
// `flopsight gemm`: tiles and waves of one matrix product, of a model's, of a profiler's trace; measured rates beside predicted ones.
// Exit codes: 0; 2 when something given cannot be read or does not fit, with one line.

#include "env.h"
#include "tiles/gemm_options.h"

namespace flopsight::app {

int run_gemm(const GemmArguments& arguments, const Env& env);

}  // namespace flopsight::app
