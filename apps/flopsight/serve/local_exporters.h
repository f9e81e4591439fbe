#pragma once
// Finds GPU exporters on this machine, by asking the ports that they have by default.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::app {

struct ExporterPort {
  std::uint16_t port = 0;
  std::string_view exporter;
  std::string_view source;  // where the port is documented
};
std::span<const ExporterPort> exporter_ports();

struct LocalExporter {
  std::string url;
  std::string exporter;  // by whom the port is known: a guess
  std::uint64_t gpu_samples = 0;
};

// Those whose /metrics has at least one GPU metric, in the order of `ports`. Takes at most `timeout`.
std::vector<LocalExporter> discover_local(std::span<const ExporterPort> ports = exporter_ports(),
                                          std::chrono::milliseconds timeout = std::chrono::milliseconds(2'000));

}  // namespace flopsight::app
