#pragma once
// `flopsight waste`: the waste account of the same sources as a report.

#include "command_line.h"
#include "env.h"

namespace flopsight::app {

int run_waste(const WasteArguments& arguments, const Env& env);

}  // namespace flopsight::app
