#pragma once
// `flopsight import`: history into the store, from a server or from files.

#include "env.h"
#include "import/import_options.h"

namespace flopsight::app {

int run_import(const ImportArguments& arguments, const Env& env);

}  // namespace flopsight::app
