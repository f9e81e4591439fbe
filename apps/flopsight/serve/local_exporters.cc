#include "serve/local_exporters.h"

#include <algorithm>
#include <array>

#include "catalog/metrics.h"
#include "net/http_client.h"
#include "wire/exposition.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{64} << 20;

constexpr std::array<ExporterPort, 7> kPorts = {{
    {9400, "dcgm-exporter", "docs.nvidia.com/datacenter/dcgm, command line reference of dcgm-exporter"},
    {9835, "nvidia_gpu_exporter", "github.com/utkuozdemir/nvidia_gpu_exporter, docs/CONFIGURE.md"},
    {9445, "nvidia_gpu_prometheus_exporter", "github.com/mindprince/nvidia_gpu_prometheus_exporter, README.md"},
    {5000, "AMD device-metrics-exporter", "github.com/ROCm/device-metrics-exporter, docs/installation/docker.md"},
    {9798, "slurm-job-exporter", "github.com/guilbaults/slurm-job-exporter, default of --port"},
    {9401, "flopsight agent", "docs/agent.md"},
    {9010, "ceems_exporter", "ceems-dev.github.io/ceems, configuration of the exporter"},
}};

class GpuSamples : public wire::ExpositionSink {
 public:
  void sample(const wire::ExpositionSample& sample) override {
    if (sample.metric != last_) {
      last_ = sample.metric;
      const auto aliases = catalog::metric_aliases();
      is_gpu_ = catalog::is_gpu_metric_name(last_) ||
                std::any_of(aliases.begin(), aliases.end(), [&](const auto& alias) { return alias.raw_name == last_; });
    }
    if (is_gpu_) ++count;
  }
  void malformed(const wire::ExpositionError&) override {}
  std::uint64_t count = 0;

 private:
  std::string last_;
  bool is_gpu_ = false;
};

}  // namespace

std::span<const ExporterPort> exporter_ports() { return kPorts; }

std::vector<LocalExporter> discover_local(std::span<const ExporterPort> ports, std::chrono::milliseconds timeout) {
  net::HttpOptions options;
  options.retries = 0;
  options.connect_timeout = options.total_timeout = timeout;
  options.body_bytes_max = kBodyBytesMax;
  auto http = net::HttpClient::create(options);
  std::vector<net::HttpRequest> requests;
  for (const ExporterPort& port : ports) {
    requests.emplace_back().url = "http://127.0.0.1:" + std::to_string(port.port) + "/metrics";
  }
  std::vector<std::uint64_t> counts(ports.size());
  if (!http.ok()) return {};
  http->send_all(requests, [&](std::size_t i, const base::Result<net::HttpResponse>& response) {
    if (!response.ok()) return;
    GpuSamples samples;
    wire::ExpositionParser parser;
    parser.parse(response->body, samples);
    counts[i] = samples.count;
  });
  std::vector<LocalExporter> out;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (counts[i] > 0) out.push_back({requests[i].url, std::string(ports[i].exporter), counts[i]});
  }
  return out;
}

}  // namespace flopsight::app
