#pragma once
// An experiment (validation/experiment.h) as a table for people, as the published one has it; as JSON; as CSV with every point; and as a
// scatter of OFU against MFU in SVG. A simulated experiment says SIMULATED in each. Percent and points exist only in table and picture.
// Threads: pure.

#include <string>
#include <vector>

#include "units/time.h"
#include "validation/experiment.h"

namespace flopsight::views {

struct ExperimentHead {
  std::string gpu;        // catalogue name
  std::string gpu_raw;    // as the device says, empty for a simulated one
  std::string uuid;
  int sm_count = 0;
  std::string driver_version;    // empty: not known
  std::string cuda_version;
  std::string library_version;   // of cublasLt
  std::string counters;          // where they are from: "NVML GPM", a URL, "simulated"
  units::Seconds interval{0};    // between readings
  units::Instant start;
  std::uint64_t seed = 0;
  bool simulated = false;
  bool complete = true;          // false: ended before all products ran
};

std::string validation_table(const ExperimentHead& head, const validation::Experiment& experiment);
std::string validation_json(const ExperimentHead& head, const validation::Experiment& experiment);
std::string validation_csv(const ExperimentHead& head, const std::vector<validation::Point>& points);
std::string validation_svg(const ExperimentHead& head, const std::vector<validation::Point>& points);

}  // namespace flopsight::views
