#pragma once
// `flopsight notify test`: does a message reach who is to be told of findings?

#include "env.h"
#include "receivers/notify_options.h"

namespace flopsight::app {

// 1: a receiver did not take it.
int run_notify(const NotifyArguments& arguments, const Env& env);

}  // namespace flopsight::app
