#pragma once
// `flopsight agent`: this machine's GPUs at /metrics, on a machine with an NVIDIA driver and no exporter.

#include "agent/agent_options.h"
#include "env.h"

namespace flopsight::app {

// Returns when the process is told to stop (SIGTERM, SIGINT); with --once, after one page.
int run_agent(const AgentArguments& arguments, const Env& env);

}  // namespace flopsight::app
