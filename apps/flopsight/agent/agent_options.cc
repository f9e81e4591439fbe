#include "agent/agent_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "serve/serve_config.h"
#include "units/time.h"

namespace flopsight::app {

void add_agent(CLI::App& app, AgentArguments& a, AgentTexts& t) {
  app.add_option("--listen", a.listen, "address and port; other addresses than loopback need --web-config with TLS and users, or --allow-insecure")
      ->capture_default_str()
      ->group("Server");
  app.add_option("--web-config", a.web_config, "TLS and users, in the form of Prometheus exporters (YAML)")->group("Server");
  app.add_option("--tokens-file", a.tokens_path, "bearer tokens and what they allow, as of serve (YAML)")->group("Server");
  app.add_flag("--allow-insecure", a.allow_insecure, "listen on any address without TLS and users")->group("Server");
  app.add_option("--interval", t.interval, "between samples; activity is the mean of one (100ms to 1h)")->capture_default_str();
  app.add_flag("--once", a.once, "print one page after one interval, and end");
  app.add_option("--nvml-library", a.library_path, "path of libnvidia-ml.so.1 (default: where the system's loader finds it)");
  app.add_option("--root", a.root, "folder with the host's proc and var/log, where / is a container's (default: /)");
  app.add_option("--host", a.host, "host label (default: the machine's name)");
  app.add_flag("--no-jobs", a.no_jobs, "do not look for jobs and pods of the processes on the GPUs");
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue");
}

std::optional<std::string> set_agent(AgentArguments& a, const AgentTexts& t) {
  const auto interval = units::parse_duration(t.interval);
  // NVML refreshes clocks and power every sixth of a second to a second; GPM takes no less than 100 ms.
  if (!interval || interval->value < 0.1 || interval->value > 3600) {
    return "--interval " + base::printable(t.interval, 40) + ": expected a duration from 100ms to 1h";
  }
  a.interval = *interval;
  if (!parse_listen(a.listen)) return "--listen " + base::printable(a.listen, 80) + ": expected ADDRESS:PORT";
  while (a.root.ends_with('/')) a.root.pop_back();
  return std::nullopt;
}

}  // namespace flopsight::app
