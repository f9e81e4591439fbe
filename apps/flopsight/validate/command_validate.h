#pragma once
// `flopsight validate`: can OFU be trusted on this GPU? Matrix products run, time and counters are compared.

#include "env.h"
#include "validate/validate_options.h"

namespace flopsight::app {

int run_validate(const ValidateArguments& arguments, const Env& env);

}  // namespace flopsight::app
