#pragma once
// Which GPUs may have had readings that contradict each other: engine or SM activity of exactly 0 while utilization or power say that
// the GPU works. Sums would book such time as lost, and which scrapes they were only raw samples tell.
// Threads: one.

#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "sources/prometheus_client.h"
#include "sources/pushdown.h"

namespace flopsight::sources {

// What counts as working.
struct ContradictionLimits {
  double utilization_ratio_min = 0.5;
  double power_to_limit_ratio_min = 0.5;
};

// By normalized UUID.
struct Suspects {
  std::set<std::string> gpus;
  std::map<std::string, units::Watts> power_while_idle;  // the most that was drawn while an activity was 0
};

// At each coarse_step(), as what lasts less costs little: contradictions last until an exporter or a host is restarted.
base::Result<Suspects> ask_contradictions(PrometheusClient& client, const Plan& plan, const PushdownOptions& options,
                                          const ContradictionLimits& limits);

}  // namespace flopsight::sources
