#include "jobs/owners.h"

#include <array>
#include <cmath>
#include <unordered_set>

namespace flopsight::jobs {
namespace {

constexpr std::string_view kPodOwner = "kube_pod_owner";
constexpr std::string_view kReplicaSetOwner = "kube_replicaset_owner";
constexpr std::string_view kJobOwner = "kube_job_owner";
constexpr std::string_view kPodLabels = "kube_pod_labels";
constexpr std::string_view kPodCompletion = "kube_pod_completion_time";

// Labels that operators put on all pods of one job, as kube-state-metrics spells them (label_
// before, other signs than letters and digits as _): Kubeflow's training operator (kubeflow/common,
// JobNameLabel, and its first versions), JobSet and with it TrainJob, Volcano, KubeRay,
// LeaderWorkerSet, batch Job.
constexpr std::array<std::string_view, 9> kOperatorLabels = {
    "label_training_kubeflow_org_job_name",
    "label_jobset_sigs_k8s_io_jobset_name",
    "label_volcano_sh_job_name",
    "label_ray_io_cluster",
    "label_leaderworkerset_sigs_k8s_io_name",
    "label_mpi_job_name",
    "label_pytorch_job_name",
    "label_batch_kubernetes_io_job_name",
    "label_job_name",
};
constexpr std::size_t kOfBatchJobs = 7;  // from here on the labels name one Job, of which there may be many

std::string_view value_of(std::span<const LabelView> labels, std::string_view name) {
  for (const LabelView& label : labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

// After Prometheus' relabelling the pod's own names have exported_ before them, and the plain ones
// are of kube-state-metrics itself.
std::string_view own(std::span<const LabelView> labels, std::string_view name) {
  const std::string_view exported = value_of(labels, "exported_" + std::string(name));
  return exported.empty() ? value_of(labels, name) : exported;
}

std::string key_of(std::string_view name_space, std::string_view name) {
  std::string key(name_space);
  key += '\0';
  key += name;
  return key;
}

// Nothing where the labels say that nobody owns it ("<none>" or empty).
Owner owner_in(std::span<const LabelView> labels) {
  const std::string_view kind = value_of(labels, "owner_kind"),
                         name = value_of(labels, "owner_name");
  if (kind.empty() || kind == "<none>" || name.empty() || name == "<none>") return {};
  return {std::string(kind), std::string(name)};
}

// What runs on a node by itself is nobody's job: static pods of the node, and daemons.
bool is_job_like(const Owner& owner) { return owner.kind != "Node" && owner.kind != "DaemonSet"; }

// What an operator makes for its own object, as a person may; which of the two it is, a label tells.
bool is_made_by_operators(const Owner& owner) {
  return owner.kind == "Job" || owner.kind == "StatefulSet" || owner.kind == "ReplicaSet";
}

std::vector<std::string> label_names(const LabelRules& rules, std::string_view field) {
  std::vector<std::string> out;
  for (const std::string& name : rules.names_of(field)) {
    if (name.starts_with("label_")) out.push_back(name);
  }
  return out;
}

std::string_view first_of(std::span<const LabelView> labels,
                          const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string_view value = value_of(labels, name);
    if (!value.empty()) return value;
  }
  return {};
}

bool replace(std::string& known, std::string_view found) {
  if (found.empty() || known == found) return false;
  known = found;
  return true;
}

bool replace(Owner& known, Owner found) {
  if (found.kind.empty() || known == found) return false;
  known = std::move(found);
  return true;
}

}  // namespace

bool OwnerTable::wants(std::string_view metric) {
  return metric.starts_with("kube_") &&
         (metric == kPodOwner || metric == kReplicaSetOwner || metric == kJobOwner ||
          metric == kPodLabels || metric == kPodCompletion);
}

OwnerTable::OwnerTable(std::size_t pods_max) : pods_max_(pods_max) {
  use_names_of(LabelRules::builtin());
}

void OwnerTable::use_names_of(const LabelRules& rules) {
  user_labels_ = label_names(rules, "user");
  team_labels_ = label_names(rules, "team");
}

std::vector<std::string> OwnerTable::wanted_labels() const {
  std::vector<std::string> out(kOperatorLabels.begin(), kOperatorLabels.end());
  out.insert(out.end(), user_labels_.begin(), user_labels_.end());
  out.insert(out.end(), team_labels_.begin(), team_labels_.end());
  return out;
}

OwnerTable::Pod* OwnerTable::pod(std::span<const LabelView> labels, Key& key) {
  const std::string_view name = own(labels, "pod");
  if (name.empty()) return nullptr;
  key = key_of(own(labels, "namespace"), name);
  is_told_ = true;
  auto at = pods_.find(key);
  if (at == pods_.end()) {
    if (pods_.size() >= pods_max_) {
      ++refused_total_;
      return nullptr;
    }
    at = pods_.emplace(key, Pod{}).first;
  }
  at->second.told_round = round_;
  return &at->second;
}

bool OwnerTable::learn_labels(std::span<const LabelView> labels) {
  const std::string_view user = first_of(labels, user_labels_),
                         team = first_of(labels, team_labels_);
  Key key;
  Pod* const known = user.empty() && team.empty() ? nullptr : pod(labels, key);
  const bool has_user = known != nullptr && replace(known->user, user);
  const bool has_team = known != nullptr && replace(known->team, team);
  return learn_operator(labels) || has_user || has_team;
}

bool OwnerTable::learn_operator(std::span<const LabelView> labels) {
  for (std::size_t rank = 0; rank < kOperatorLabels.size(); ++rank) {
    const std::string_view value = value_of(labels, kOperatorLabels[rank]);
    if (value.empty()) continue;
    Key key;
    Pod* known = pod(labels, key);
    if (known == nullptr || (!known->label.kind.empty() && known->label_rank < rank)) return false;
    known->label_rank = rank;
    return replace(known->label, {std::string(kOperatorLabels[rank]), std::string(value)});
  }
  return false;
}

bool OwnerTable::learn(std::string_view metric, std::span<const LabelView> labels, double value) {
  if (metric == kPodLabels) return learn_labels(labels);
  Key key;
  if (metric == kPodCompletion) {
    // Below 2001 it is no time of a pod; a missing one is 0 in some versions.
    if (!std::isfinite(value) || value < 1e9 || value > 1e11) return false;
    Pod* known = pod(labels, key);
    if (known == nullptr) return false;
    const units::Instant end{std::llround(value * 1000)};
    const std::string_view uid = value_of(labels, "uid");
    const bool is_new = known->end != end || known->ended_uid != uid;
    known->end = end;
    known->ended_uid = uid;
    return is_new;
  }
  if (value != 1) return false;
  Owner owner = owner_in(labels);
  if (metric == kPodOwner) {
    Pod* known = pod(labels, key);
    if (known == nullptr) return false;
    // A pod of the same name came after the one that ended.
    const std::string_view uid = value_of(labels, "uid");
    const bool goes_on =
        known->end && !known->ended_uid.empty() && !uid.empty() && uid != known->ended_uid;
    if (goes_on) known->end.reset();
    if (value_of(labels, "owner_is_controller") == "false") return goes_on;
    return replace(known->owner, std::move(owner)) || goes_on;
  }
  if (owner.kind.empty() || value_of(labels, "owner_is_controller") == "false") return false;
  const bool is_job = metric == kJobOwner;
  const std::string_view name = own(labels, is_job ? "job_name" : "replicaset");
  auto& table = is_job ? batch_jobs_ : replica_sets_;
  if (name.empty()) return false;
  key = key_of(own(labels, "namespace"), name);
  if (table.size() >= pods_max_ && !table.contains(key)) {
    ++refused_total_;
    return false;
  }
  Parent& parent = table[key];
  parent.told_round = round_;
  return replace(parent.owner, std::move(owner));
}

const OwnerTable::Parent* OwnerTable::parent_of(const std::string& name_space, const Owner& owner) const {
  const auto* table = owner.kind == "ReplicaSet" ? &replica_sets_
                      : owner.kind == "Job"      ? &batch_jobs_
                                                 : nullptr;
  if (table == nullptr) return nullptr;
  const auto at = table->find(key_of(name_space, owner.name));
  if (at == table->end() || at->second.owner.kind == "CronJob") return nullptr;
  return &at->second;
}

std::vector<const OwnerTable::Parent*> OwnerTable::parents_of(const std::string& name_space, const Owner& owner) const {
  std::vector<const Parent*> parents;
  // ReplicaSet and Job are one step each; more would be a loop.
  constexpr std::size_t kStepsMax = 4;
  for (const Owner* of = &owner; parents.size() < kStepsMax; of = &parents.back()->owner) {
    const Parent* parent = parent_of(name_space, *of);
    if (parent == nullptr) break;
    parents.push_back(parent);
  }
  return parents;
}

std::optional<Owner> OwnerTable::owner_of(std::string_view name_space, std::string_view pod) const {
  const auto at = pods_.find(key_of(name_space, pod));
  if (at == pods_.end()) return std::nullopt;
  const Pod& known = at->second;
  const Owner* owner = known.owner.kind.empty() ? &known.label : &known.owner;
  if (owner->kind.empty() || !is_job_like(*owner)) return std::nullopt;
  const std::vector<const Parent*> parents = parents_of(std::string(name_space), *owner);
  if (!parents.empty()) owner = &parents.back()->owner;
  const bool names_a_whole = !known.label.kind.empty() && known.label_rank < kOfBatchJobs;
  return is_made_by_operators(*owner) && names_a_whole ? known.label : *owner;
}

bool OwnerTable::complete(samples::Holder& holder) const {
  const auto at = pods_.find(key_of(holder.name_space, holder.job));
  if (at == pods_.end()) return false;
  const bool has_user = holder.user.empty() && replace(holder.user, at->second.user);
  const bool has_team = holder.team.empty() && replace(holder.team, at->second.team);
  return has_user || has_team;
}

std::optional<units::Instant> OwnerTable::ended(std::string_view name_space,
                                                std::string_view pod) const {
  const auto at = pods_.find(key_of(name_space, pod));
  return at == pods_.end() ? std::nullopt : at->second.end;
}

void OwnerTable::forget_untold(const std::function<bool(std::string_view, std::string_view)>& is_held) {
  if (!is_told_) return;
  const auto is_over = [&](std::uint32_t told_round) { return round_ - told_round > 1; };
  std::erase_if(pods_, [&](const auto& of) {
    const std::string_view key = of.first;
    const std::size_t zero = key.find('\0');
    return is_over(of.second.told_round) && !is_held(key.substr(0, zero), key.substr(zero + 1));
  });
  std::unordered_set<const Parent*> needed;
  for (const auto& [key, pod] : pods_) {
    for (const Parent* parent : parents_of(key.substr(0, key.find('\0')), pod.owner)) needed.insert(parent);
  }
  for (auto* table : {&replica_sets_, &batch_jobs_}) {
    std::erase_if(*table, [&](const auto& of) { return is_over(of.second.told_round) && !needed.contains(&of.second); });
  }
  ++round_;
  is_told_ = false;
}

std::vector<OwnerTable::Ended> OwnerTable::all_ended() const {
  std::vector<Ended> out;
  for (const auto& [key, pod] : pods_) {
    if (!pod.end) continue;
    const std::size_t zero = key.find('\0');
    out.push_back({key.substr(0, zero), key.substr(zero + 1), *pod.end});
  }
  return out;
}

}  // namespace flopsight::jobs
