#pragma once
// The program but for its process: main() calls this, and so do the tests.

#include "env.h"

namespace flopsight::app {

int run(int argc, const char* const* argv, const Env& env);

}  // namespace flopsight::app
