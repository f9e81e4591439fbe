#include "jobs/owners.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace flopsight::jobs
