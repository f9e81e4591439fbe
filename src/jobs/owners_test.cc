#include "jobs/owners.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace flopsight::jobs {
namespace {

bool owner(OwnerTable& table, std::string_view metric, std::string_view name_label,
           std::string_view name, std::string_view kind, std::string_view of,
           std::string_view uid = "") {
  const LabelView labels[] = {{"namespace", "ml"},  {name_label, name},
                              {"owner_kind", kind}, {"owner_name", of},
                              {"uid", uid},         {"owner_is_controller", "true"}};
  return table.learn(metric, labels, 1);
}

TEST(Owners, follow_a_pod_up_to_what_a_person_started) {
  OwnerTable table;
  EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", "llama-worker-0", "PyTorchJob", "llama"));
  EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", "api-7f9-x2", "ReplicaSet", "api-7f9"));
  EXPECT_TRUE(owner(table, "kube_replicaset_owner", "replicaset", "api-7f9", "Deployment", "api"));
  EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", "set-a-0-kx", "Job", "set-a-0"));
  EXPECT_TRUE(owner(table, "kube_job_owner", "job_name", "set-a-0", "JobSet", "set"));
  EXPECT_EQ(table.owner_of("ml", "llama-worker-0"), (Owner{"PyTorchJob", "llama"}));
  EXPECT_EQ(table.owner_of("ml", "api-7f9-x2"), (Owner{"Deployment", "api"}));
  EXPECT_EQ(table.owner_of("ml", "set-a-0-kx"), (Owner{"JobSet", "set"}));
  EXPECT_FALSE(table.owner_of("other", "llama-worker-0"))
      << "the same name in another namespace is another pod";
  EXPECT_FALSE(owner(table, "kube_pod_owner", "pod", "llama-worker-0", "PyTorchJob", "llama"))
      << "nothing new";
}

TEST(Owners, stop_below_a_cron_job_because_its_runs_are_different_jobs) {
  OwnerTable table;
  owner(table, "kube_pod_owner", "pod", "nightly-2911-a", "Job", "nightly-2911");
  owner(table, "kube_job_owner", "job_name", "nightly-2911", "CronJob", "nightly");
  EXPECT_EQ(table.owner_of("ml", "nightly-2911-a"), (Owner{"Job", "nightly-2911"}));
}

TEST(Owners, nobody_owns_static_pods_daemons_and_single_pods) {
  OwnerTable table;
  owner(table, "kube_pod_owner", "pod", "dcgm-x", "DaemonSet", "dcgm");
  owner(table, "kube_pod_owner", "pod", "proxy-n1", "Node", "n1");
  owner(table, "kube_pod_owner", "pod", "single", "<none>", "<none>");
  owner(table, "kube_pod_owner", "pod", "old", "", "");
  for (const char* pod : {"dcgm-x", "proxy-n1", "single", "old", "never-told-of"})
    EXPECT_FALSE(table.owner_of("ml", pod)) << pod;
}

TEST(Owners, labels_of_an_operator_count_where_nothing_owns_the_pod) {
  OwnerTable table;
  const LabelView both[] = {{"namespace", "ml"},
                            {"pod", "w-0"},
                            {"label_job_name", "generic"},
                            {"label_training_kubeflow_org_job_name", "llama"}};
  EXPECT_TRUE(table.learn("kube_pod_labels", both, 1));
  EXPECT_EQ(table.owner_of("ml", "w-0"), (Owner{"label_training_kubeflow_org_job_name", "llama"}));
  owner(table, "kube_pod_owner", "pod", "w-0", "PyTorchJob", "owned");
  EXPECT_EQ(table.owner_of("ml", "w-0"), (Owner{"PyTorchJob", "owned"}));
}

// A LeaderWorkerSet makes a StatefulSet for its leaders and one for the workers of each; a JobSet makes Jobs, and
// kube_job_owner may not be scraped.
TEST(Owners, labels_of_an_operator_hold_together_what_it_made_many_of) {
  OwnerTable table;
  const auto labelled = [&](std::string_view pod, std::string_view label, std::string_view value) {
    const LabelView labels[] = {{"namespace", "ml"}, {"pod", pod}, {label, value}};
    table.learn("kube_pod_labels", labels, 1);
  };
  owner(table, "kube_pod_owner", "pod", "vllm-0", "StatefulSet", "vllm");
  owner(table, "kube_pod_owner", "pod", "vllm-0-1", "StatefulSet", "vllm-0");
  owner(table, "kube_pod_owner", "pod", "vllm-1-1", "StatefulSet", "vllm-1");
  for (const char* pod : {"vllm-0", "vllm-0-1", "vllm-1-1"}) {
    labelled(pod, "label_leaderworkerset_sigs_k8s_io_name", "vllm");
    EXPECT_EQ(table.owner_of("ml", pod), (Owner{"label_leaderworkerset_sigs_k8s_io_name", "vllm"}));
  }
  owner(table, "kube_pod_owner", "pod", "train-node-0-0-x", "Job", "train-node-0");
  labelled("train-node-0-0-x", "label_jobset_sigs_k8s_io_jobset_name", "train");
  EXPECT_EQ(table.owner_of("ml", "train-node-0-0-x"), (Owner{"label_jobset_sigs_k8s_io_jobset_name", "train"}));
  owner(table, "kube_job_owner", "job_name", "train-node-0", "JobSet", "train");
  EXPECT_EQ(table.owner_of("ml", "train-node-0-0-x"), (Owner{"JobSet", "train"}));
  // A person's own Job and StatefulSet are what they are.
  owner(table, "kube_pod_owner", "pod", "plain-x", "Job", "plain");
  labelled("plain-x", "label_batch_kubernetes_io_job_name", "plain");
  EXPECT_EQ(table.owner_of("ml", "plain-x"), (Owner{"Job", "plain"}));
  owner(table, "kube_pod_owner", "pod", "own-0", "StatefulSet", "own");
  EXPECT_EQ(table.owner_of("ml", "own-0"), (Owner{"StatefulSet", "own"}));
}

TEST(Owners, labels_of_a_pod_say_its_user_and_team) {
  OwnerTable table;
  const LabelView labels[] = {{"namespace", "ml"}, {"pod", "w-0"}, {"label_team", "vision"}, {"label_project", "p"}, {"label_user", "ada"}};
  EXPECT_TRUE(table.learn("kube_pod_labels", labels, 1));
  EXPECT_FALSE(table.learn("kube_pod_labels", labels, 1)) << "nothing new";
  samples::Holder pod;
  pod.job = "w-0";
  pod.name_space = "ml";
  EXPECT_TRUE(table.complete(pod));
  EXPECT_EQ(pod.user, "ada");
  EXPECT_EQ(pod.team, "vision");
  EXPECT_FALSE(table.complete(pod));
  samples::Holder said = pod;
  said.user = "bob";
  said.team.clear();
  EXPECT_TRUE(table.complete(said));
  EXPECT_EQ(said.user, "bob") << "the scrape's own label stays";
  EXPECT_EQ(said.team, "vision");
  pod.name_space = "other";
  pod.user.clear();
  EXPECT_FALSE(table.complete(pod));
}

TEST(Owners, the_rules_say_which_labels_of_a_pod_are_user_and_team) {
  OwnerTable table;
  const auto rules = LabelRules::parse(R"({"team": ["team", "label_cost_center"], "user": []})");
  ASSERT_TRUE(rules.ok());
  table.use_names_of(*rules);
  const LabelView labels[] = {{"namespace", "ml"}, {"pod", "w-0"}, {"label_team", "x"}, {"label_cost_center", "42"}, {"label_user", "ada"}, {"team", "of the scrape"}};
  EXPECT_TRUE(table.learn("kube_pod_labels", labels, 1));
  samples::Holder pod;
  pod.job = "w-0";
  pod.name_space = "ml";
  EXPECT_TRUE(table.complete(pod));
  EXPECT_EQ(pod.team, "42");
  EXPECT_EQ(pod.user, "");
  const auto wanted = table.wanted_labels();
  EXPECT_EQ(std::count(wanted.begin(), wanted.end(), "label_cost_center"), 1);
  EXPECT_EQ(std::count(wanted.begin(), wanted.end(), "label_team"), 0);
}

TEST(Owners, read_names_that_prometheus_relabelled) {
  OwnerTable table;
  const LabelView labels[] = {{"namespace", "monitoring"},  {"pod", "kube-state-metrics-0"},
                              {"exported_namespace", "ml"}, {"exported_pod", "w-0"},
                              {"owner_kind", "PyTorchJob"}, {"owner_name", "llama"}};
  EXPECT_TRUE(table.learn("kube_pod_owner", labels, 1));
  EXPECT_TRUE(table.owner_of("ml", "w-0"));
  EXPECT_FALSE(table.owner_of("monitoring", "kube-state-metrics-0"));
}

TEST(Owners, an_ended_pod_has_an_end_until_another_of_its_name_comes) {
  OwnerTable table;
  const LabelView done[] = {{"namespace", "ml"}, {"pod", "train-0"}, {"uid", "u1"}};
  owner(table, "kube_pod_owner", "pod", "train-0", "StatefulSet", "train", "u1");
  EXPECT_TRUE(table.learn("kube_pod_completion_time", done, 1'700'000'000));
  EXPECT_EQ(table.ended("ml", "train-0"), (units::Instant{1'700'000'000'000}));
  ASSERT_EQ(table.all_ended().size(), 1U);
  EXPECT_EQ(table.all_ended()[0].pod, "train-0");
  owner(table, "kube_pod_owner", "pod", "train-0", "StatefulSet", "train", "u1");
  EXPECT_TRUE(table.ended("ml", "train-0"));
  EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", "train-0", "StatefulSet", "train", "u2"));
  EXPECT_FALSE(table.ended("ml", "train-0"));
}

TEST(Owners, values_that_are_no_time_are_no_end) {
  OwnerTable table;
  const LabelView done[] = {{"namespace", "ml"}, {"pod", "train-0"}};
  for (const double value : {0.0, -1.0, 1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(table.learn("kube_pod_completion_time", done, value)) << value;
  }
  EXPECT_FALSE(table.ended("ml", "train-0"));
}

TEST(Owners, refuse_pods_past_the_limit_and_count_them) {
  OwnerTable table(2);
  for (const char* pod : {"a", "b"})
    EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", pod, "PyTorchJob", "x"));
  EXPECT_EQ(table.refused_total(), 0U);
  EXPECT_FALSE(owner(table, "kube_pod_owner", "pod", "c", "PyTorchJob", "x"));
  EXPECT_EQ(table.refused_total(), 1U);
  EXPECT_TRUE(owner(table, "kube_pod_owner", "pod", "a", "PyTorchJob", "y")) << "known ones stay";
}

// ---- what is over is forgotten ----

constexpr auto kNobody = [](std::string_view, std::string_view) { return false; };

TEST(Owners, forget_pods_that_are_told_of_no_more_and_what_only_they_needed) {
  OwnerTable table(4);
  owner(table, "kube_pod_owner", "pod", "api-7f9-x2", "ReplicaSet", "api-7f9");
  owner(table, "kube_replicaset_owner", "replicaset", "api-7f9", "Deployment", "api");
  for (int hour = 0; hour < 5; ++hour) {
    owner(table, "kube_pod_owner", "pod", "w-" + std::to_string(hour), "Job", "j-" + std::to_string(hour));
    table.forget_untold(kNobody);
  }
  EXPECT_EQ(table.pod_count(), 2U) << "of this hour and the one before";
  EXPECT_EQ(table.refused_total(), 0U);
  EXPECT_TRUE(owner(table, "kube_replicaset_owner", "replicaset", "api-7f9", "Deployment", "api")) << "it was forgotten";
}

TEST(Owners, of_a_pod_whose_label_lingers_stay_with_all_above_it) {
  OwnerTable table;
  owner(table, "kube_pod_owner", "pod", "api-7f9-x2", "ReplicaSet", "api-7f9");
  owner(table, "kube_replicaset_owner", "replicaset", "api-7f9", "Deployment", "api");
  const LabelView labels[] = {{"namespace", "ml"}, {"pod", "api-7f9-x2"}};
  table.learn("kube_pod_completion_time", labels, 1.79e9);
  for (int hour = 0; hour < 600; ++hour) {
    owner(table, "kube_pod_owner", "pod", "other", "PyTorchJob", "llama");
    table.forget_untold([](std::string_view name_space, std::string_view pod) { return name_space == "ml" && pod == "api-7f9-x2"; });
  }
  EXPECT_EQ(table.owner_of("ml", "api-7f9-x2"), (Owner{"Deployment", "api"}));
  EXPECT_TRUE(table.ended("ml", "api-7f9-x2"));
  table.forget_untold(kNobody);
  EXPECT_TRUE(table.ended("ml", "api-7f9-x2")) << "nothing at all was told since: kube-state-metrics may be away";
  owner(table, "kube_pod_owner", "pod", "other", "PyTorchJob", "llama");
  table.forget_untold(kNobody);
  EXPECT_FALSE(table.ended("ml", "api-7f9-x2"));
}

}  // namespace
}  // namespace flopsight::jobs
