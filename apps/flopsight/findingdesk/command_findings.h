#pragma once
// `flopsight findings`: what is the matter with jobs and GPUs, and what people say of it, out of a store folder or of a service that runs.
// Exit codes: 0 done; 1 `list --fail-on` found one that is so severe; 2 what was asked for is not there, or cannot be read.

#include "env.h"
#include "findingdesk/findings_options.h"

namespace flopsight::app {

int run_findings(const FindingsArguments& arguments, const Env& env);

}  // namespace flopsight::app
