#pragma once
// `flopsight serve`: the continuous service; `flopsight check-config`: is a configuration right.

#include <string>
#include <vector>

#include "env.h"
#include "serve/serve_config.h"

namespace flopsight::app {

struct ServeArguments {
  std::string config_path;
  std::vector<Setting> flags;
  bool demo = false;  // exporters of this machine, else a simulated fleet
};

struct CheckConfigArguments {
  std::string config_path;
};

// Returns when the process is told to stop (SIGTERM, SIGINT) and everything taken is durable.
int run_serve(const ServeArguments& arguments, const Env& env);
int run_check_config(const CheckConfigArguments& arguments, const Env& env);

}  // namespace flopsight::app
