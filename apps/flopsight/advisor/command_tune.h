#pragma once
// `flopsight tune`: what to change next, and what it will bring, by a model of the step (docs/tune.md).
// Exit codes: 0, also where the run does not fit into memory (`fits` says so); 2 when something given cannot be read or does not fit each other.

#include "env.h"
#include "advisor/tune_options.h"

namespace flopsight::app {

int run_tune(const TuneArguments& arguments, const Env& env);

}  // namespace flopsight::app
