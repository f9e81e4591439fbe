#pragma once
// `flopsight report`: source -> timelines -> GPU time -> report -> text, as one straight line.

#include "command_line.h"
#include "env.h"

namespace flopsight::app {

int run_report(const ReportArguments& arguments, const Env& env);

}  // namespace flopsight::app
