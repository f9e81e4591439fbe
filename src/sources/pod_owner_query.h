#pragma once
// Whose pods are, asked of a Prometheus server that has kube-state-metrics: of the pods given only, so that what is asked grows with the
// pods on GPUs and not with the cluster. A few hundred pods a query; what owns a ReplicaSet or a Job is asked after that.
//
// Errors: those of the client. Threads: one.

#include <string>
#include <vector>

#include "jobs/owners.h"
#include "sources/prometheus_client.h"

namespace flopsight::sources {

struct PodName {
  std::string name_space;
  std::string pod;
  auto operator<=>(const PodName&) const = default;
};

base::Status ask_pod_owners(PrometheusClient& client, std::vector<PodName> pods, units::Window window, jobs::OwnerTable& owners,
                            const std::function<void(PrometheusProgress)>& progress);

}  // namespace flopsight::sources
