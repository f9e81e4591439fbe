#pragma once
// What fleet is to be simulated. Everything the generator says is a function of these options, a GPU and a time.
// Errors: kInvalid for an option that cannot be, kNotFound for an unknown scenario or GPU model (naming those there
// are).

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
  // From here on one job, or a few, to which something happens; course.h says what.
  kMoeMiscount,          // its framework counts the experts of a mixture as if they had the full width
  kHybridMiscount,       // its framework counts recurrent layers as attention
  kDebugFlagRegression,  // a debugging switch makes every step 2.5 times as long
  kMixedPrecision,       // a chain of jobs in NVFP4, FP8 and BF16
  kStraggler,            // one GPU is slow and the others wait for it
  kThermal,              // the GPUs of one host are too hot
  kHang,                 // a collective never ends
  kInputStarved,         // data comes too slowly
  kFleet608,             // 608 jobs that report their MFU, some of them wrongly
};
std::string_view scenario_name(Scenario scenario);
std::string scenario_names();  // all, with commas
base::Result<Scenario> parse_scenario(std::string_view name);

enum class LabelStyle { kKubernetes, kSlurm };

// What --out uses unless told: 2026-01-01T00:00:00Z.
inline constexpr units::Instant kDefaultStart{1'767'225'600'000};
inline constexpr std::string_view kDefaultModel = "NVIDIA H100 80GB HBM3";
// What a scenario simulates unless told: mixed_precision needs a GPU that has NVFP4.
std::string_view default_model(Scenario scenario);
// How many GPUs unless told: those of all jobs in fleet608, else 16.
std::uint32_t default_gpus(Scenario scenario);
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
  // How long one course of what a scenario is about takes; then it begins anew. 0: the window, up to 6 hours.
  units::Seconds course{0};
  const catalog::Device* device = nullptr;  // found by check()

  std::int64_t start_milliseconds() const { return window.start.unix_milliseconds; }
  std::int64_t end_milliseconds() const { return window.end.unix_milliseconds; }
  std::int64_t interval_milliseconds() const { return static_cast<std::int64_t>(interval.value * 1000 + 0.5); }
  std::int64_t course_milliseconds() const { return static_cast<std::int64_t>(course.value * 1000 + 0.5); }
  // Some jobs report the MFU that they reached, or believe to have.
  bool reports_mfu() const { return scenario >= Scenario::kMoeMiscount; }
  std::uint32_t hosts() const { return (gpus + gpus_per_host - 1) / gpus_per_host; }
};

// The options with `device` looked up, if they can be simulated.
base::Result<Options> check(Options options);

}  // namespace flopsight::simulation
