#pragma once
// What fleet is to be simulated. Everything the generator says is a function of these options, a GPU and a time.
// Errors: kInvalid for an option that cannot be, kNotFound for an unknown scenario or GPU model (naming those there
// are), kUnsupported for a scenario that has a name and is not built.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "catalog/devices.h"
#include "catalog/metrics.h"
#include "units/time.h"

namespace flopsight::simulation {

// Every scrape carries it with the value 1: readers then say "simulated" of all they answer.
using catalog::kSimulatedMetric;

enum class Scenario {
  kSteady,        // jobs of all sizes come and go; nothing is wrong
  kRestartStorm,  // jobs die and come back under new names, exporters fall silent, counters restart
  kSharedGpus,    // time-slicing: several pods on a GPU at once
  kMig,           // GPUs divided into instances, a pod on each
};
std::string_view scenario_name(Scenario scenario);
base::Result<Scenario> parse_scenario(std::string_view name);

enum class LabelStyle { kKubernetes, kSlurm };

// What --out uses unless told: 2026-01-01T00:00:00Z.
inline constexpr units::Instant kDefaultStart{1'767'225'600'000};
inline constexpr std::string_view kDefaultModel = "NVIDIA H100 80GB HBM3";
inline constexpr std::uint32_t kGpusMax = 4'000'000;

struct Options {
  Scenario scenario = Scenario::kSteady;
  std::uint32_t gpus = 16;
  std::uint32_t gpus_per_host = 8;
  std::uint64_t seed = 1;
  // [start, end): what is written, and what the truth is about. Jobs may have begun before and go on after.
  units::Window window{kDefaultStart, kDefaultStart + units::Seconds(3600)};
  units::Seconds interval{15};  // between scrapes, and the window that hardware averages over
  std::string model{kDefaultModel};  // as the exporter prints it
  LabelStyle labels = LabelStyle::kKubernetes;
  std::uint32_t metrics = 0;  // the first so many of metric_list.h; 0: the default list
  const catalog::Device* device = nullptr;  // found by check()

  std::int64_t start_milliseconds() const { return window.start.unix_milliseconds; }
  std::int64_t end_milliseconds() const { return window.end.unix_milliseconds; }
  std::int64_t interval_milliseconds() const { return static_cast<std::int64_t>(interval.value * 1000 + 0.5); }
  std::uint32_t hosts() const { return (gpus + gpus_per_host - 1) / gpus_per_host; }
};

// The options with `device` looked up, if they can be simulated.
base::Result<Options> check(Options options);

}  // namespace flopsight::simulation
