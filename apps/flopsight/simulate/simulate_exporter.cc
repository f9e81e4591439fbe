#include <charconv>
#include <chrono>
#include <mutex>
#include <ostream>
#include <thread>

#include "base/json.h"
#include "net/http_server.h"
#include "simulate/simulate_targets.h"
#include "simulation/text.h"

namespace flopsight::app {
namespace {

constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";

// The exporters of all hosts behind one address.
class Exporters {
 public:
  Exporters(const simulation::Timetable& timetable, const Env& env)
      : timetable_(timetable), env_(env), scraper_(timetable) {}

  net::ServerResponse answer(const net::ServerRequest& request) {
    if (request.path == "/metrics") return scrape(0);
    if (request.path == "/sd.json") return targets(request);
    if (request.path == "/") return overview();
    if (const auto host = host_of(request.path)) return scrape(*host);
    net::ServerResponse none;
    none.status = 404;
    none.body = "expected /metrics, /host/<0 to " + std::to_string(timetable_.options().hosts() - 1) +
                ">/metrics or /sd.json\n";
    return none;
  }

 private:
  // N of "/host/N/metrics", of a host that there is.
  std::optional<std::uint32_t> host_of(std::string_view path) const {
    constexpr std::string_view kBefore = "/host/", kAfter = "/metrics";
    if (!path.starts_with(kBefore) || !path.ends_with(kAfter) || path.size() <= kBefore.size() + kAfter.size()) {
      return std::nullopt;
    }
    const std::string_view digits = path.substr(kBefore.size(), path.size() - kBefore.size() - kAfter.size());
    std::uint32_t host = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), host);
    if (error != std::errc() || end != digits.data() + digits.size() || host >= timetable_.options().hosts()) {
      return std::nullopt;
    }
    return host;
  }

  net::ServerResponse scrape(std::uint32_t host) {
    net::ServerResponse out;
    out.content_type = kText;
    {
      const std::lock_guard lock(mutex_);
      out.body = scraper_.scrape(host, env_.now().unix_milliseconds);
    }
    if (out.body.empty()) {
      out.status = 503;
      out.body = "simulated: this exporter is down\n";
    }
    return out;
  }

  // For Prometheus' http_sd_configs, or saved for file_sd_configs.
  net::ServerResponse targets(const net::ServerRequest& request) const {
    base::json::Array all;
    for (std::uint32_t host = 0; host < timetable_.options().hosts(); ++host) {
      base::json::Object labels = {{"__metrics_path__", "/host/" + std::to_string(host) + "/metrics"},
                                   {"instance", simulation::host_name(host) + ":9400"}};
      all.emplace_back(base::json::Object{{"targets", base::json::Array{std::string(request.header("host"))}},
                                          {"labels", std::move(labels)}});
    }
    net::ServerResponse out;
    out.content_type = "application/json";
    out.body = base::json::dump(base::json::Value(std::move(all)), 0) + "\n";
    return out;
  }

  net::ServerResponse overview() const {
    net::ServerResponse out;
    out.body = "SIMULATED fleet of " + std::to_string(timetable_.options().gpus) + " GPUs on " +
               std::to_string(timetable_.options().hosts()) +
               " hosts\n/metrics            host 0\n/host/<i>/metrics   host i\n/sd.json            all hosts, for http_sd_configs\n";
    return out;
  }

  const simulation::Timetable& timetable_;
  const Env& env_;
  std::mutex mutex_;
  simulation::Scraper scraper_;  // guarded by mutex_
};

std::optional<net::ServerResponse> refuse(const net::ServerRequest& head) {
  if (head.method == "GET" || head.method == "HEAD") return std::nullopt;
  net::ServerResponse out;
  out.status = 405;
  out.headers.emplace_back("Allow", "GET, HEAD");
  out.body = "expected GET\n";
  return out;
}

}  // namespace

base::Status simulate_as_exporter(const SimulateArguments& a, const Env& env, const std::atomic<bool>& stop) {
  simulation::Options options = a.fleet;
  const units::Instant start = env.now();
  options.window = {start, start + a.length.value_or(units::Seconds(366 * 86400.0))};
  FLOPSIGHT_ASSIGN_OR_RETURN(options, simulation::check(options));
  const simulation::Timetable timetable(options);
  Exporters exporters(timetable, env);
  net::ServerOptions server_options;
  server_options.port = *a.exporter_port;
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const auto server, net::HttpServer::start(server_options, refuse, [&](net::ServerRequest request) {
        return exporters.answer(request);
      }));
  const std::string address = "http://127.0.0.1:" + std::to_string(server->port());
  env.out << "SIMULATED fleet of " << options.gpus << " GPUs on " << options.hosts() << " hosts: " << address
          << "/metrics, " << address << "/sd.json" << std::endl;
  while (!stop && env.now() < options.window.end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server->stop();
  return {};
}

}  // namespace flopsight::app
