#include "simulate/command_simulate.h"

#include <ostream>

#include "base/file.h"
#include "base/text.h"
#include "simulate/simulate_targets.h"
#include "stop_signals.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

base::Status run(SimulateArguments a, const Env& env, bool& all_taken) {
  if (!a.out.empty()) return simulate_to_folder(a, env);
  const StopSignals stop;
  if (a.exporter_port) return simulate_as_exporter(a, env, stop.asked());
  if (!a.bearer_token_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string token, base::read_file(a.bearer_token_path));
    a.http.auth.bearer_token = std::string(base::trim(token));
  }
  return simulate_to_remote_write(a, env, stop.asked(), all_taken);
}

}  // namespace

int run_simulate(const SimulateArguments& arguments, const Env& env) {
  bool all_taken = true;
  if (const base::Status status = run(arguments, env, all_taken); !status.ok()) {
    return fail(env, "simulate", status.error());
  }
  return all_taken ? kExitDone : kExitFailure;
}

}  // namespace flopsight::app
