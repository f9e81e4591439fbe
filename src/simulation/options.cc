#include "simulation/options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "simulation/fleet608.h"

namespace flopsight::simulation {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::array<std::pair<std::string_view, Scenario>, 13> kScenarios = {{
    {"steady", Scenario::kSteady},
    {"restart_storm", Scenario::kRestartStorm},
    {"shared_gpus", Scenario::kSharedGpus},
    {"mig", Scenario::kMig},
    {"moe_miscount", Scenario::kMoeMiscount},
    {"hybrid_miscount", Scenario::kHybridMiscount},
    {"debug_flag_regression", Scenario::kDebugFlagRegression},
    {"mixed_precision", Scenario::kMixedPrecision},
    {"straggler", Scenario::kStraggler},
    {"thermal", Scenario::kThermal},
    {"hang", Scenario::kHang},
    {"input_starved", Scenario::kInputStarved},
    {"fleet608", Scenario::kFleet608},
}};
// A course is start-up, some minutes as it should be, what happens, and some minutes after it.
constexpr double kCourseSecondsMin = 600, kCourseSecondsMax = 6 * 3600.0;

Error invalid(std::string message) { return Error{ErrorCode::kInvalid, std::move(message)}; }

// Data-centre GPUs since Ampere; the layouts of timetable.cc are of seven slices.
bool has_mig(const catalog::Device& device) {
  for (const std::string_view family : {"A100", "A800", "H100", "H200", "H800", "H20", "GH200", "B1", "B2", "B3", "GB2", "GB3"}) {
    if (device.model.starts_with(family)) return device.mig_slices() == 7;
  }
  return false;
}

// What the scenarios need in which something happens to a job.
base::Result<Options> check_course(Options options) {
  if (options.course.value == 0) {
    options.course = units::Seconds(std::clamp(options.window.length().value, kCourseSecondsMin, kCourseSecondsMax));
  }
  if (options.course.value < kCourseSecondsMin) return invalid("a course of a scenario takes 10 minutes at least");
  const auto needs = [&](std::uint32_t gpus, const char* why) {
    return Error{ErrorCode::kInvalid, "scenario " + std::string(scenario_name(options.scenario)) + ": expected at least " +
                                          std::to_string(gpus) + " GPUs, " + why};
  };
  if (options.scenario == Scenario::kStraggler && options.gpus < 2) return needs(2, "one that is slow and one that waits");
  if (options.scenario == Scenario::kFleet608 && (options.gpus < 8 || 8 % options.gpus_per_host != 0)) {
    if (options.gpus < 8) return needs(8, "as its smallest job has");
    return invalid("scenario fleet608: expected 1, 2, 4 or 8 GPUs per host, as its jobs are of whole hosts");
  }
  return options;
}

}  // namespace

std::string_view scenario_name(Scenario scenario) { return kScenarios[static_cast<std::size_t>(scenario)].first; }

std::string scenario_names() {
  std::string out;
  for (const auto& [name, scenario] : kScenarios) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

base::Result<Scenario> parse_scenario(std::string_view name) {
  for (const auto& [known, scenario] : kScenarios) {
    if (known == name) return scenario;
  }
  return Error{ErrorCode::kNotFound, "scenario " + base::printable(name, 40) + ": expected one of " + scenario_names()};
}

std::string_view default_model(Scenario scenario) {
  return scenario == Scenario::kMixedPrecision ? "NVIDIA GB200" : kDefaultModel;
}

std::uint32_t default_gpus(Scenario scenario) {
  return scenario == Scenario::kFleet608 ? fleet608_gpus() : 16;
}

base::Result<Options> check(Options options) {
  if (options.gpus < 1 || options.gpus > kGpusMax) {
    return invalid("GPUs: expected 1 to " + std::to_string(kGpusMax));
  }
  if (options.gpus_per_host < 1 || options.gpus_per_host > 16) return invalid("GPUs per host: expected 1 to 16");
  if (options.interval.value < 1 || options.interval.value > 300) {
    return invalid("interval: expected 1s to 300s, as a longer one has no place in a job of minutes");
  }
  if (options.window.end <= options.window.start) return invalid("a simulation ends after it starts");
  constexpr units::Instant kYear2000{946'684'800'000}, kYear2100{4'102'444'800'000};
  if (options.window.start < kYear2000 || options.window.start > kYear2100) {
    return invalid("start: expected a time between 2000 and 2100");
  }
  options.device = catalog::DeviceCatalog::builtin().find_whole(options.model);
  if (options.device == nullptr) {
    return Error{ErrorCode::kNotFound, "model " + catalog::DeviceCatalog::builtin().not_found(options.model) +
                                           ", expected a name as an exporter prints it, such as " + std::string(kDefaultModel)};
  }
  const catalog::Device& device = *options.device;
  if (!device.tensor_peak_clock || !device.nvml_max_sm_clock || !device.board_power || !device.sm_count ||
      device.memory_gigabytes.empty()) {
    return Error{ErrorCode::kUnsupported, "model " + options.model + ": the catalogue lacks its clocks, power or memory"};
  }
  if (options.scenario == Scenario::kMig && !has_mig(device)) {
    return Error{ErrorCode::kUnsupported, "model " + options.model + ": scenario mig needs a GPU with MIG of seven slices, such as A100 or H100"};
  }
  return check_course(std::move(options));
}

}  // namespace flopsight::simulation
