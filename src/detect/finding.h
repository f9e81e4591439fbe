#pragma once
// What a detector concludes: what is the matter, with whom, since when, on what evidence, what it costs and what to do. It carries all
// that a person needs to judge it, so that it can be shown, stored and delivered without asking again.
//
// Times are starts of minutes. Costs are GPU-hours; dollars are made where prices are. Threads: values, pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "units/time.h"
#include "units/units.h"

namespace flopsight::detect {

enum class FindingKind : std::uint8_t {
  kRegression,      // a job delivers less than it did
  kBelowFamily,     // a job delivers less than the other runs of its family
  kHang,            // kernels wait on the GPUs for ever: no tensor work, little power
  kStall,           // a job that worked does nothing
  kStraggler,       // a GPU or host takes longer over the same work than its peers, which wait
  kSlowClock,       // a GPU or host runs at a lower clock than its peers
  kLowPower,        // a GPU draws much less power than its peers at the same work
  kThermal,         // clocks are lowered because of heat
  kPowerBrake,      // clocks are lowered by the power supply's brake signal
  kStuckClock,      // the clock stays far below what the same GPU had, without heat, brake or power cap
  kPowerCapped,     // the same with the power cap as its reason
  kCounterDead,     // readings that were values are none any more
  kCounterFrozen,   // readings repeat exactly
  kProfilerPause,   // a profiler holds the counters of a host
  kUnseen,          // nothing is scraped any more
  kUnmeasurable,    // OFU cannot be made of what is scraped, and never could
};
inline constexpr std::size_t kFindingKindCount = 16;

enum class Severity : std::uint8_t { kInfo, kWarning, kCritical };
std::string_view severity_name(Severity severity);  // "info", "warning", "critical"

struct FindingKindInfo {
  std::string_view name;  // of JSON and keys: "regression"
  Severity severity = Severity::kWarning;
  bool data_quality = false;  // of the measurement, not of the work
  std::string_view action;    // what to do, one sentence
};
const FindingKindInfo& info_of(FindingKind kind);

// A number that speaks for the finding. Names carry their unit last: "ofu_before_ratio".
struct Evidence {
  std::string name;
  double value = 0;
};

struct EvidencePoint {
  units::Instant time;
  double value = 0;
};

enum class SuspectKind : std::uint8_t { kLabelChange, kSlowGpu, kClock, kHostOrInput, kCommunication, kKernels };
std::string_view suspect_name(SuspectKind kind);

struct Suspect {
  SuspectKind kind = SuspectKind::kKernels;
  // How much of the logarithm of the drop it accounts for. Nothing where it only coincides in time.
  std::optional<double> explained_ratio;
  std::string text;
};

struct Finding {
  FindingKind kind = FindingKind::kRegression;
  Severity severity = Severity::kWarning;
  std::string job;   // jobs::job_text(); empty: not of a job
  std::string host;  // empty: not of one host
  std::string gpu;   // empty: not of one GPU
  units::Instant first;  // the first minute in which it shows
  units::Instant last;   // the last one
  std::vector<Evidence> evidence;
  std::string series_name;  // what `series` shows, with its unit; empty without one
  std::vector<EvidencePoint> series;
  std::vector<Suspect> suspects;  // most likely first
  std::optional<units::GpuHours> cost;  // lost since `first`; nothing where it cannot be told
  std::string text;  // one sentence with the numbers
};

// The same for the same matter with the same subject, whenever it is seen: "regression/job=ns%2Fname". Names are escaped, so that two subjects
// never have one key.
std::string finding_key(const Finding& finding);

}  // namespace flopsight::detect
