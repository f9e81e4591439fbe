#pragma once
// The series of a scrape: which label sets an exporter shows for a GPU at a time, and what is in them.
// Threads: pure, but for the Meter that is handed in.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/meter.h"
#include "simulation/metric_list.h"

namespace flopsight::simulation {

// One label set. A GPU has one; a MIG GPU one for each instance; a shared GPU one for each pod, and one of the device
// without a pod for utilisation only (dcgm-exporter issue 307).
struct Row {
  std::uint32_t gpu = 0;
  std::uint32_t slot = 0;
  std::int64_t since = 0;     // start of the segment: with `named` this is a label epoch
  bool named = false;         // labels of a pod or job are there
  bool shared = false;
  bool utilization_only = false;
  Segment segment;

  bool reports_mfu = false;  // its job does, at this time

  bool has(const SimulatedMetric& metric, bool with_profiling) const;
  bool same_labels(const Row& other) const {
    return gpu == other.gpu && slot == other.slot && named == other.named && since == other.since &&
           utilization_only == other.utilization_only;
  }
};

// At `t`, appended to `out`.
void add_rows(Meter& meter, const Timetable& timetable, std::uint32_t gpu, std::int64_t t, std::vector<Row>& out);

// The value of a metric in a row, from the readings of its GPU or instance.
double value_of(const SimulatedMetric& metric, const Row& row, const Readings& readings, const Timetable& timetable,
                Meter& meter, std::int64_t t);

struct JobNames {
  std::string workload;  // the job as its owner calls it
  std::string job;       // as a report calls it: the pod, or the Slurm job id
  std::string name_space;
  std::string container;
  std::string user;
  std::string team;
};
JobNames names_of(const Timetable& timetable, const Segment& segment, std::uint32_t host);

std::string host_name(std::uint32_t host);
std::string uuid_of(const Options& options, std::uint32_t gpu);

using LabelPairs = std::vector<std::pair<std::string, std::string>>;
// As the exporter serves them, in its order.
LabelPairs exporter_labels(const Timetable& timetable, const Row& row);
// As Prometheus stores them after scraping dcgm-exporter's pods on Kubernetes: names of the exporter's own pod are taken, those
// of the job become exported_…; sorted by name, without __name__. At least `labels_min` (0: what there is).
LabelPairs stored_labels(const Timetable& timetable, const Row& row, std::uint32_t labels_min);
// Of the series flopsight_simulated of a host.
LabelPairs stored_host_labels(const Timetable& timetable, std::uint32_t host);

}  // namespace flopsight::simulation
