#pragma once
// `flopsight rules`: recording and alerting rules, and a dashboard, for an engine that exists.
// Exit codes: 0; 2 when something given cannot be read or does not fit, with one line, and nothing is written.

#include "enginerules/rules_options.h"
#include "env.h"

namespace flopsight::app {

int run_rules(const RulesArguments& arguments, const Env& env);

}  // namespace flopsight::app
