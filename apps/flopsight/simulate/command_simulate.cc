#include "simulate/command_simulate.h"

#include <atomic>
#include <csignal>
#include <ostream>

#include "base/file.h"
#include "base/text.h"
#include "simulate/simulate_targets.h"

namespace flopsight::app {
namespace {

std::atomic<bool> stop_asked = false;

void ask_to_stop(int) { stop_asked = true; }

// While it lives, Ctrl-C and SIGTERM end the command in order instead of killing it.
class StopSignals {
 public:
  StopSignals() : interrupt_(std::signal(SIGINT, ask_to_stop)), terminate_(std::signal(SIGTERM, ask_to_stop)) {
    stop_asked = false;
  }
  ~StopSignals() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGTERM, terminate_);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

base::Status run(SimulateArguments a, const Env& env, bool& all_taken) {
  if (!a.out.empty()) return simulate_to_folder(a, env);
  const StopSignals signals;
  if (a.exporter_port) return simulate_as_exporter(a, env, stop_asked);
  if (!a.bearer_token_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string token, base::read_file(a.bearer_token_path));
    a.http.auth.bearer_token = std::string(base::trim(token));
  }
  return simulate_to_remote_write(a, env, stop_asked, all_taken);
}

}  // namespace

int run_simulate(const SimulateArguments& arguments, const Env& env) {
  bool all_taken = true;
  if (const base::Status status = run(arguments, env, all_taken); !status.ok()) {
    env.err << "flopsight simulate: " << base::printable(status.error().message, 2000) << "\n";
    return kExitUsage;
  }
  return all_taken ? kExitDone : kExitFailure;
}

}  // namespace flopsight::app
