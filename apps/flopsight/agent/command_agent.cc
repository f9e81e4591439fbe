#include "agent/command_agent.h"

#include <chrono>
#include <csignal>
#include <ostream>
#include <thread>

#include <malloc.h>

#include "agent/code_pages.h"
#include "base/file.h"
#include "base/text.h"
#include "hostgpus/gpu_watch.h"
#include "net/http_server.h"
#include "parse_file.h"
#include "serve/access.h"
#include "serve/serve_config.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using net::ServerRequest;
using net::ServerResponse;

constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";

int fail(const base::Error& error, const Env& env) { return fail(env, "agent", error); }

base::Result<std::string> text_of(const std::string& path) { return path.empty() ? base::Result<std::string>(std::string()) : base::read_file(path); }

base::Result<std::unique_ptr<GpuReader>> open_reader(const AgentArguments& a) {
  auto devices = std::shared_ptr<const catalog::DeviceCatalog>(std::shared_ptr<void>(), &catalog::DeviceCatalog::builtin());
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(catalog::DeviceCatalog with_rows, parse_file(a.catalog_path, catalog::DeviceCatalog::with_user_rows));
    devices = std::make_shared<const catalog::DeviceCatalog>(std::move(with_rows));
  }
  GpuWatchOptions options;
  options.nvml.library_path = a.library_path;
  options.owners.root = a.root;
  options.jobs = !a.no_jobs;
  options.host = a.host;
  return GpuReader::open(std::move(options), std::move(devices));
}

ServerResponse answer(const ServerRequest& request, const GpuWatch& watch, const Access& access) {
  ServerResponse response;
  if (request.path == "/metrics") {
    if (access.has_users()) {
      const auto caller = access.caller(request);
      if (!caller || !caller->may_read || !caller->sees_all()) return unauthorized(access, caller.has_value());
    }
    response.content_type = kText;
    response.body = watch.page();
  } else if (request.path == "/healthz") {
    const std::string problem = watch.problem();
    response.status = problem.empty() ? 200 : 503;
    response.body = problem.empty() ? "ok\n" : base::printable(problem, 300) + "\n";
  } else if (request.path == "/") {
    response.body = "flopsight agent: this machine's GPUs are at /metrics\n";
  } else {
    response.status = 404;
    response.body = "expected /metrics or /healthz\n";
  }
  return response;
}

std::optional<ServerResponse> refuse(const ServerRequest& head, const Access& access) {
  if (head.method != "GET" && head.method != "HEAD") {
    ServerResponse out;
    out.status = 405;
    out.headers.emplace_back("Allow", "GET, HEAD");
    out.body = "expected GET\n";
    return out;
  }
  if (head.path == "/metrics" && access.has_users() && access.surely_refused(head)) return unauthorized(access, false);
  return std::nullopt;
}

// Small: it answers a scraper or two.
net::ServerOptions server_options(const ListenAddress& listen, const Access& access) {
  net::ServerOptions options;
  options.address = listen.address;
  options.port = listen.port;
  options.tls = access.tls();
  options.body_bytes_max = 64 << 10;
  options.bodies_bytes_max = 1 << 20;
  options.connections_max = 64;
  options.handler_threads = 1;
  options.handler_queue_max = 64;
  return options;
}

// What somebody who starts it by hand wants to know at once.
void announce(const GpuWatch& watch, const Env& env) {
  for (const HostGpu& gpu : watch.latest().gpus) {
    const bool passes = gpu.sample.activity_absence == nvml::Absence::kNotYetSampled;
    const std::string line = missing_ofu(gpu);
    if (!passes && !line.empty()) env.err << error_line("agent", line);
  }
  const std::string no_jobs = watch.latest().processes_problem;
  if (!no_jobs.empty()) env.err << error_line("agent", "no jobs: " + no_jobs);
  env.err << std::flush;
}

base::Status serve_metrics(const AgentArguments& a, std::unique_ptr<GpuReader> reader, const Access& access, const sigset_t& signals, const Env& env) {
  const auto listen = parse_listen(a.listen);
  const GpuWatch watch(std::move(reader), a.interval, env.now, nullptr);
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto server, net::HttpServer::start(
                                                    server_options(*listen, access), [&](const ServerRequest& head) { return refuse(head, access); },
                                                    [&](const ServerRequest& request) { return answer(request, watch, access); }));
  announce(watch, env);
  const std::string host = listen->address.find(':') == std::string::npos ? listen->address : "[" + listen->address + "]";
  env.out << "flopsight agent: " << watch.latest().gpus.size() << " GPUs at " << (access.tls() ? "https" : "http") << "://" << host << ":"
          << server->port() << "/metrics\n"
          << std::flush;
  // What starting needed goes back to the system.
  malloc_trim(0);
  let_go_of_code_pages();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  server->stop();
  return {};
}

base::Status run(const AgentArguments& a, const sigset_t& signals, const Env& env) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string web, text_of(a.web_config));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string tokens, text_of(a.tokens_path));
  FLOPSIGHT_ASSIGN_OR_RETURN(const Access access, Access::parse(a.web_config, web, a.tokens_path, tokens));
  if (!a.once) FLOPSIGHT_RETURN_IF_ERROR(check_exposure(a.listen, parse_listen(a.listen)->is_loopback, a.allow_insecure, a.web_config, access));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<GpuReader> reader, open_reader(a));
  const HostGpus& first = reader->read(env.now());
  if (first.gpus.empty()) return base::Error{base::ErrorCode::kNotFound, "the NVIDIA driver lists no GPU"};
  if (!a.once) return serve_metrics(a, std::move(reader), access, signals, env);
  std::this_thread::sleep_for(std::chrono::duration<double>(a.interval.value));
  env.out << gpu_page(reader->read(env.now()), false);
  return {};
}

}  // namespace

int run_agent(const AgentArguments& arguments, const Env& env) {
  // Before any thread starts, so that all inherit it and only sigwait() sees them.
  sigset_t signals;
  sigemptyset(&signals);
  if (!arguments.once) {
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  // One arena for all threads: they hold little, and each of its own would keep more than that.
  mallopt(M_ARENA_MAX, 1);
  const base::Status done = run(arguments, signals, env);
  return done.ok() ? kExitDone : fail(done.error(), env);
}

}  // namespace flopsight::app
