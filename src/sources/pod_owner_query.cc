#include "sources/pod_owner_query.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "sources/pushdown.h"

namespace flopsight::sources {
namespace {

// Names in one expression: with names of 60 letters, 12 KiB of it.
constexpr std::size_t kNamesPerQuery = 200;

using NamesBySpace = std::map<std::string, std::set<std::string>>;

// One metric of kube-state-metrics: the label that names its object, and the labels that are wanted of it.
struct Question {
  std::string metric;
  std::string name_label;
  std::string more_labels;
};

// After relabelling, labels that the scrape has as well have exported_ before them. The namespace always is one; of the names, only `pod` is.
std::string expression(const Question& q, const std::string& name_space, const std::string& names, const std::string& range) {
  const std::string space = regex_literal(name_space);
  const auto with = [&](const std::string& space_label, const std::string& name_label) {
    return "last_over_time(" + q.metric + "{" + space_label + "=~\"" + space + "\"," + name_label + "=~\"" + names + "\"}[" + range + "])";
  };
  std::string any = with("namespace", q.name_label) + " or " + with("exported_namespace", q.name_label);
  std::string labels = "namespace,exported_namespace," + q.name_label;
  if (q.name_label == "pod") {
    any += " or " + with("exported_namespace", "exported_pod");
    labels += ",exported_pod";
  }
  return "group by (" + labels + "," + q.more_labels + ") (" + any + ")";
}

class Asking {
 public:
  Asking(PrometheusClient& client, units::Window window, jobs::OwnerTable& owners, const std::function<void(PrometheusProgress)>& progress)
      : client_(client), window_(window), owners_(owners), progress_(progress) {}

  base::Status ask(const Question& q, const NamesBySpace& wanted) {
    PrometheusProgress done;
    for (const auto& [name_space, names] : wanted) done.total += (names.size() + kNamesPerQuery - 1) / kNamesPerQuery;
    for (const auto& [name_space, names] : wanted) {
      auto next = names.begin();
      while (next != names.end()) {
        std::string some;
        for (std::size_t i = 0; i < kNamesPerQuery && next != names.end(); ++i, ++next) some += (some.empty() ? "" : "|") + regex_literal(*next);
        FLOPSIGHT_RETURN_IF_ERROR(client_.query_halved(
            window_, [&, &space = name_space](const std::string& range) { return expression(q, space, some, range); },
            [&](const wire::ApiAnswer& answer) { learn(q.metric, answer); }));
        ++done.done;
        if (progress_) progress_(done);
      }
    }
    return {};
  }

 private:
  void learn(const std::string& metric, const wire::ApiAnswer& answer) {
    std::vector<jobs::LabelView> labels;
    for (const wire::ApiSeries& series : answer.series) {
      labels.clear();
      for (const auto& [name, value] : series.labels) labels.push_back({name, value});
      owners_.learn(metric, labels, 1);
    }
  }

  PrometheusClient& client_;
  units::Window window_;
  jobs::OwnerTable& owners_;
  const std::function<void(PrometheusProgress)>& progress_;
};

}  // namespace

base::Status ask_pod_owners(PrometheusClient& client, std::vector<PodName> pods, units::Window window, jobs::OwnerTable& owners,
                            const std::function<void(PrometheusProgress)>& progress) {
  constexpr const char* kOwnerLabels = "owner_kind,owner_name,owner_is_controller";
  Asking asking(client, window, owners, progress);
  NamesBySpace names, replica_sets, batch_jobs;
  for (const PodName& pod : pods) names[pod.name_space].insert(pod.pod);
  FLOPSIGHT_RETURN_IF_ERROR(asking.ask({"kube_pod_owner", "pod", kOwnerLabels}, names));
  for (const PodName& pod : pods) {
    const auto owner = owners.owner_of(pod.name_space, pod.pod);
    if (!owner) continue;
    if (owner->kind == "ReplicaSet") replica_sets[pod.name_space].insert(owner->name);
    if (owner->kind == "Job") batch_jobs[pod.name_space].insert(owner->name);
  }
  FLOPSIGHT_RETURN_IF_ERROR(asking.ask({"kube_replicaset_owner", "replicaset", kOwnerLabels}, replica_sets));
  FLOPSIGHT_RETURN_IF_ERROR(asking.ask({"kube_job_owner", "job_name", kOwnerLabels}, batch_jobs));
  return asking.ask({"kube_pod_labels", "pod", base::joined(owners.wanted_labels(), ",")}, names);
}

}  // namespace flopsight::sources
