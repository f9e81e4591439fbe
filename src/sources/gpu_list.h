#pragma once
// Which GPUs a server has samples of in a window, by whatever label names them, and the selectors that fetch their raw samples.
//
// Exporters spell the label differently (UUID, uuid, gpu_uuid, …), also on one GPU; and series may name none, or one that somebody
// masked. A series belongs to the first label of the rules that names a GPU, as in LabelRules::apply().
// Threads: one.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "jobs/label_rules.h"
#include "sources/prometheus_client.h"
#include "sources/pushdown.h"

namespace flopsight::sources {

struct ListedGpu {
  std::string host;
  std::map<std::string, std::set<std::string>> names;  // values by the label that names it
  bool has_holder = false;                             // some of the series listed names a job
};

struct GpuList {
  std::map<std::string, ListedGpu> gpus;  // by normalized UUID
  // Of series that name no GPU but an index, whose samples may belong to a GPU of the same host that others name.
  std::set<std::string> hosts_without_names;
  bool has_unnamed = false;
};

// All GPUs with any metric of the plan; with `beside` (a label), only series in which that label names no GPU.
base::Result<GpuList> list_gpus(PrometheusClient& client, const Plan& plan, const std::string& match, const jobs::LabelRules& rules,
                                units::Window window, const std::string& beside = {});

// Values of the join label in series of metrics that a push-down does not look at, as seen at a few moments.
base::Result<std::set<std::string>> gpus_with_other_metrics(PrometheusClient& client, const Plan& plan, const std::string& match,
                                                            const jobs::LabelRules& rules, units::Window window);

// Selectors of raw samples, those of `gpus_max` GPUs together; the first batch has all series without names and the GPUs of their hosts.
std::vector<std::vector<std::string>> raw_batches(const GpuList& list, const Plan& plan, const std::string& match, const jobs::LabelRules& rules,
                                                  std::size_t gpus_max);

}  // namespace flopsight::sources
