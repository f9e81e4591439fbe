#pragma once
// The options of `flopsight simulate`: registered with the parser and checked, one line for each mistake. Reads no file
// and no clock.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "simulation/options.h"
#include "wire/remote_write.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct SimulateArguments {
  simulation::Options fleet;  // its window is set when the command runs
  std::optional<units::Instant> start;
  std::optional<units::Seconds> length;
  // Exactly one of the three.
  std::optional<std::uint16_t> exporter_port;
  std::string remote_write;
  std::string out;
  bool force = false;  // write over files that are there
  bool quiet = false;
  // --remote-write
  std::optional<std::uint64_t> rounds;  // as fast as they are taken, instead of as time goes by
  unsigned concurrency = 2;
  std::uint32_t batch_series = 2000;
  wire::RemoteWriteVersion version = wire::RemoteWriteVersion::kV1;
  std::uint32_t labels_min = 0;
  net::HttpOptions http;
  std::string bearer_token_path;
};

// As text; turned into settings after parsing.
struct SimulateTexts {
  std::string scenario, hours, interval, start, course, model, metrics = "default", labels, seed = "1";
  std::optional<std::int64_t> gpus, exporter;
  std::int64_t gpus_per_host = 8, rounds = 0, concurrency = 2, batch = 2000, version = 1,
               labels_min = 0;
  std::vector<std::string> headers;
};

void add_simulate(CLI::App& app, SimulateArguments& arguments, SimulateTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_simulate(SimulateArguments& arguments, const SimulateTexts& texts);

}  // namespace flopsight::app
