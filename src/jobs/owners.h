#pragma once
// What kube-state-metrics says of pods: who owns them, and when they ended. So that the 64 pods of
// one training are one job, and a pod that is over does not keep the GPU its label lingers on.
//
// From the labels of kube_pod_owner, kube_replicaset_owner and kube_job_owner a pod is followed up
// to what a person started: pod to ReplicaSet to Deployment, pod to Job to JobSet. Not to a
// CronJob, whose runs are different jobs. Where nothing owns a pod, or only what operators make many
// of for one job (StatefulSets of a LeaderWorkerSet, Jobs of a JobSet), a label that a training
// operator put on it counts (kube_pod_labels). Its labels of user and team, by the names of the
// rules, say whose it is. Names of metrics and labels: kube-state-metrics, docs/metrics/workload. Limit: `pods_max`; past it new pods are refused and counted, known ones
// stay, and forget_untold() lets go of what is over. Threads: one at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jobs/label_rules.h"
#include "units/time.h"

namespace flopsight::jobs {

struct Owner {
  std::string kind;  // "PyTorchJob", "Deployment", or the label that named it
  std::string name;
  bool operator==(const Owner&) const = default;
};

class OwnerTable {
 public:
  explicit OwnerTable(std::size_t pods_max = 4'000'000);
  // Which labels of pods say user and team: those of the rules' names that begin with label_, as
  // kube-state-metrics writes them. Those of the built-in rules unless it is called.
  void use_names_of(const LabelRules& rules);

  static bool wants(std::string_view metric);
  // Of kube_pod_labels, those that are looked at.
  std::vector<std::string> wanted_labels() const;
  // One sample; true when something is known that was not. Values matter only for
  // kube_pod_completion_time (Unix seconds) and for kube_pod_owner and its like, where 0 says that
  // it is not so.
  bool learn(std::string_view metric, std::span<const LabelView> labels, double value);

  // At the end of the chain. Nothing for a pod without an owner or one that was never told of.
  std::optional<Owner> owner_of(std::string_view name_space, std::string_view pod) const;
  std::optional<units::Instant> ended(std::string_view name_space, std::string_view pod) const;
  // User and team of a pod where the holder has none. True when it has more than before.
  bool complete(samples::Holder& holder) const;
  // (namespace, pod, end) of all that ended.
  struct Ended {
    std::string name_space;
    std::string pod;
    units::Instant end;
  };
  std::vector<Ended> all_ended() const;

  // Forgets pods of which nothing was told since the call before the last one, but not such as `is_held` names (namespace, pod): a label may linger on a
  // GPU for long after its pod. Nothing while nothing at all is told. Owners stay for as long as their pods.
  void forget_untold(const std::function<bool(std::string_view, std::string_view)>& is_held);

  std::size_t pod_count() const { return pods_.size(); }
  std::uint64_t refused_total() const { return refused_total_; }

 private:
  struct Pod {
    Owner owner;                 // by the controller; empty kind: nobody
    Owner label;                 // by a label of an operator
    std::string user;
    std::string team;
    std::size_t label_rank = 0;  // of the label that named it: the first of the list wins
    std::optional<units::Instant> end;
    std::string ended_uid;  // names of pods are used again
    std::uint32_t told_round = 0;
  };
  struct Parent {
    Owner owner;
    std::uint32_t told_round = 0;
  };
  using Key = std::string;  // namespace, zero, name
  Pod* pod(std::span<const LabelView> labels, Key& key);
  bool learn_labels(std::span<const LabelView> labels);
  bool learn_operator(std::span<const LabelView> labels);
  const Parent* parent_of(const std::string& name_space, const Owner& owner) const;
  std::vector<const Parent*> parents_of(const std::string& name_space, const Owner& owner) const;  // the nearest first

  std::size_t pods_max_;
  std::vector<std::string> user_labels_, team_labels_;
  std::uint64_t refused_total_ = 0;
  std::unordered_map<Key, Pod> pods_;
  std::unordered_map<Key, Parent> replica_sets_;
  std::unordered_map<Key, Parent> batch_jobs_;
  std::uint32_t round_ = 0;
  bool is_told_ = false;  // anything in this round
};

}  // namespace flopsight::jobs
