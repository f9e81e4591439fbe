#pragma once
// `flopsight docs PAGE`: pages printed from the tables the program works with, so that they cannot disagree with it.

#include "command_line.h"
#include "env.h"

namespace flopsight::app {

int run_docs(const DocsArguments& arguments, const Env& env);

}  // namespace flopsight::app
