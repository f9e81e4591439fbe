// To whom a GPU belongs, by the labels that exporters and relabelling leave on it, and what model it is.
#include <gtest/gtest.h>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

std::string labelled(const std::string& more, const std::string& uuid = "GPU-a") {
  const std::string labels = h100(uuid, "n1", "0", more);
  return sample(kTensor, labels, "0.5") + sample(kClock, labels, "1830");
}

TEST(ReportLabels, the_exported_pod_wins_over_the_exporters_own) {
  const Value r = report(labelled(
      "pod=\"dcgm-exporter-abcde\",namespace=\"monitoring\",container=\"exporter\",exported_pod=\"train-0\","
      "exported_namespace=\"team-a\",exported_container=\"main\""));
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_EQ(text(r, "groups.0.key.job"), "train-0");
  EXPECT_EQ(text(r, "groups.0.key.namespace"), "team-a");
  EXPECT_EQ(text(r, "gpus.0.attributed_by.0"), "exported_pod");
}

TEST(ReportLabels, a_pod_named_like_an_exporter_is_never_a_job) {
  for (const char* pod : {"dcgm-exporter-abcde", "nvidia-dcgm-exporter-tl46n", "gpu-operator-dcgm-exporter-1",
                          "amd-gpu-metrics-exporter-x2", "nvidia-gpu-exporter-9"}) {
    const Value r = report(labelled(std::string("pod=\"") + pod + "\",namespace=\"monitoring\",container=\"exporter\""));
    EXPECT_EQ(text(r, "groups.0.key.job"), "null") << pod;
    EXPECT_EQ(text(r, "groups.0.key.namespace"), "null") << pod;
    EXPECT_EQ(text(r, "gpus.0.job"), "null") << pod;
    EXPECT_EQ(quality(r, "exporter_pod_ignored"), 1) << pod;
    EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5) << pod;
  }
}

TEST(ReportLabels, an_exported_pod_that_is_empty_leaves_the_gpu_unallocated) {
  const Value r = report(labelled("pod=\"dcgm-exporter-abcde\",exported_pod=\"\",exported_namespace=\"\""));
  EXPECT_EQ(text(r, "groups.0.key.job"), "null");
}

TEST(ReportLabels, empty_labels_are_no_labels) {
  const Value r = report(labelled("container=\"\",namespace=\"\",pod=\"\"") + labelled("", "GPU-b") +
                         labelled("hpc_job=\" \",pod=\"train-0\",namespace=\"a\"", "GPU-c"));
  EXPECT_EQ(count(r, "groups"), 2U);
  EXPECT_EQ(number(job(r, "null"), "gpu_count"), 2);
  EXPECT_EQ(number(job(r, "train-0"), "gpu_count"), 1);
}

TEST(ReportLabels, the_scrape_job_of_prometheus_is_no_job) {
  const Value r = report(labelled("job=\"gpu-metrics\",instance=\"10.0.0.1:9400\""));
  EXPECT_EQ(text(r, "groups.0.key.job"), "null");
}

TEST(ReportLabels, old_options_of_the_exporter_name_the_pod_too) {
  const Value r = report(
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",uuid=\"GPU-a\",pod_name=\"train-0\",pod_namespace=\"team-a\","
      "container_name=\"main\"} 0.5\n");
  EXPECT_EQ(text(r, "groups.0.key.job"), "train-0");
  EXPECT_EQ(text(r, "groups.0.key.namespace"), "team-a");
}

TEST(ReportLabels, two_pods_of_one_name_in_two_namespaces_are_two_jobs) {
  const Value r = report(labelled("pod=\"worker-0\",namespace=\"a\"") + labelled("pod=\"worker-0\",namespace=\"b\"", "GPU-b"));
  EXPECT_EQ(count(r, "groups"), 2U);
}

std::string with_gap(const std::vector<std::string>& labelled_values, const std::vector<std::string>& bare) {
  const std::string named = h100("GPU-a", "n1", "0", "pod=\"train-0\",namespace=\"a\"");
  const std::string nameless = h100("GPU-a", "n1", "0");
  const auto clocks = [](std::vector<std::string> values) {
    for (std::string& value : values) value = value == "-" ? "-" : "1830";
    return values;
  };
  return series(kTensor, named, 15, labelled_values) + series(kTensor, nameless, 15, bare) +
         series(kClock, named, 15, clocks(labelled_values)) + series(kClock, nameless, 15, clocks(bare));
}

TEST(ReportLabels, a_short_gap_in_the_labels_still_belongs_to_the_job) {
  const Value r = report(with_gap({"0.5", "0.5", "-", "-", "0.5", "0.5"}, {"-", "-", "0.5", "0.5", "-", "-"}));
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_NEAR(number(job(r, "train-0"), "gpu_hours_allocated"), 90.0 / 3600, 1e-12);
  EXPECT_EQ(quality(r, "label_gap_bridged"), 2);
  EXPECT_NE(text(r, "gpus.0.attributed_by.0").find("bridged"), std::string::npos);
}

TEST(ReportLabels, a_long_gap_in_the_labels_belongs_to_nobody) {
  const std::string scrape = with_gap({"0.5", "0.5", "-", "-", "-", "0.5"}, {"-", "-", "0.5", "0.5", "0.5", "-"});
  const Value r = report(scrape);
  EXPECT_NEAR(number(job(r, "null"), "gpu_hours_allocated"), 45.0 / 3600, 1e-12);
  EXPECT_EQ(quality(r, "label_gap_bridged"), 0);
  const Value longer = report(Input{{scrape}, {"--rules", "@rules.json"}, {{"rules.json", R"({"bridge_intervals": 3})"}}});
  EXPECT_NEAR(number(job(longer, "train-0"), "gpu_hours_allocated"), 90.0 / 3600, 1e-12);
  EXPECT_EQ(quality(longer, "label_gap_bridged"), 3);
  const Value never = report(Input{{with_gap({"0.5", "-", "0.5"}, {"-", "0.5", "-"})},
                                   {"--rules", "@rules.json"},
                                   {{"rules.json", R"({"bridge_intervals": 0})"}}});
  EXPECT_NEAR(number(job(never, "null"), "gpu_hours_allocated"), 15.0 / 3600, 1e-12);
}

TEST(ReportLabels, a_gap_between_two_jobs_belongs_to_neither) {
  const auto of = [](const char* pod) { return h100("GPU-a", "n1", "0", std::string("pod=\"") + pod + "\""); };
  const Value r = report(series(kTensor, of("p1"), 15, {"0.5", "0.5", "-", "-"}) +
                         series(kTensor, h100("GPU-a", "n1", "0"), 15, {"-", "-", "0.5", "-"}) +
                         series(kTensor, of("p2"), 15, {"-", "-", "-", "0.5"}));
  EXPECT_EQ(count(r, "groups"), 3U);
  EXPECT_NEAR(number(job(r, "null"), "gpu_hours_allocated"), 15.0 / 3600, 1e-12);
}

TEST(ReportLabels, an_unlabelled_start_and_end_belong_to_nobody) {
  const Value r = report(with_gap({"-", "0.5", "0.5", "-"}, {"0.5", "-", "-", "0.5"}));
  EXPECT_NEAR(number(job(r, "train-0"), "gpu_hours_allocated"), 30.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "null"), "gpu_hours_allocated"), 30.0 / 3600, 1e-12);
}

TEST(ReportLabels, a_job_id_that_is_a_json_object_is_read) {
  const Value r = report(labelled(R"(job_id="{\"job_id\": 5551, \"user\": \"x\"}")"));
  EXPECT_EQ(text(r, "groups.0.key.job"), "5551");
}

TEST(ReportLabels, user_and_team_of_a_slurm_job_come_with_it) {
  const std::string more = "job_id=\"77\",job_user=\"ann\",slurm_account=\"physics\"";
  EXPECT_EQ(text(report(Input{{labelled(more)}, {"--by", "user"}, {}}), "groups.0.key.user"), "ann");
  EXPECT_EQ(text(report(Input{{labelled(more)}, {"--by", "team"}, {}}), "groups.0.key.team"), "physics");
}

TEST(ReportLabels, a_users_rules_name_other_labels) {
  const Value r = report(Input{{labelled("pod=\"train-0\",label_training_run=\"run-9\",tenant=\"blue\"")},
                               {"--rules", "@rules.json"},
                               {{"rules.json", R"({"holders": [{"rule": "run", "job": "label_training_run",
                                                               "namespace": "tenant"}], "team": ["tenant"]})"}}});
  EXPECT_EQ(text(r, "groups.0.key.job"), "run-9");
  EXPECT_EQ(text(r, "groups.0.key.namespace"), "blue");
  EXPECT_EQ(text(r, "groups.0.key.team"), "blue");
  EXPECT_EQ(text(r, "gpus.0.attributed_by.0"), "run");
}

TEST(ReportLabels, a_gpu_with_only_an_index_says_so) {
  const std::string labels = "minor_number=\"6\",instance=\"n1:9445\",name=\"NVIDIA H100 80GB HBM3\"";
  const Value r = report(sample("nvidia_gpu_any_tensor_util_percent", labels, "50") +
                         sample("nvidia_gpu_sm_clock_mhz", labels, "1830"));
  EXPECT_EQ(quality(r, "gpu_without_uuid"), 1);
  EXPECT_EQ(text(r, "gpus.0.uuid"), "null");
  EXPECT_EQ(text(r, "gpus.0.index"), "6");
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
}

TEST(ReportLabels, indices_of_two_hosts_are_two_gpus_and_a_prefix_of_a_host_is_another_host) {
  std::string scrape;
  for (const char* host : {"n1", "n10"}) {
    scrape += sample("nvidia_gpu_any_tensor_util_percent",
                     std::string("minor_number=\"0\",instance=\"") + host + ":9445\"", "50");
  }
  const Value r = report(Input{{scrape}, {"--by", "host"}, {}});
  EXPECT_EQ(number(r, "fleet.gpu_count"), 2);
  EXPECT_EQ(count(r, "groups"), 2U);
}

TEST(ReportLabels, one_model_under_all_its_names) {
  const std::pair<const char*, const char*> names[] = {
      {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"},   {"NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB"},
      {"NVIDIA H100 NVL", "H100-NVL-94GB"},          {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},
      {"NVIDIA A800-SXM4-80GB", "A800-SXM4-80GB"},   {"Tesla V100-SXM2-32GB", "V100-SXM2"},
      {"NVIDIA GB200", "GB200"},                     {"NVIDIA B200", "B200-SXM"},
      {"NVIDIA H100 PCIe", "H100-PCIe-80GB"},        {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"},
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100-SXM5-80GB"}};
  for (const auto& [raw, model] : names) {
    const std::string labels = std::string("gpu=\"0\",UUID=\"GPU-a\",modelName=\"") + raw + "\"";
    const Value r = report(Input{{sample(kTensor, labels, "0.5")}, {"--by", "model"}, {}});
    EXPECT_EQ(text(r, "gpus.0.model"), model) << raw;
    EXPECT_EQ(text(r, "groups.0.key.model"), model) << raw;
    EXPECT_EQ(quality(r, "unknown_model"), 0) << raw;
  }
}

TEST(ReportLabels, a_model_that_the_catalogue_has_without_a_clock_is_not_said_to_be_missing_from_it) {
  const std::string labels = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA RTX PRO 6000 Blackwell Server Edition\"";
  const Value r = report(sample(kTensor, labels, "0.5") + sample(kClock, labels, "1410"));
  EXPECT_EQ(text(r, "gpus.0.model"), "RTX PRO 6000 Blackwell Server");
  EXPECT_EQ(text(r, "gpus.0.absent_reason"), "no_reference_clock");
  EXPECT_EQ(quality(r, "model_without_clock"), 1);
  EXPECT_EQ(quality(r, "unknown_model"), 0);
}

TEST(ReportLabels, an_unknown_model_has_no_ofu_and_no_neighbours_peak) {
  for (const char* raw : {"GRID A100-10C", "NVIDIA A100-PG509-200", "NVIDIA H100X", "NVIDIA GB2000", "NVIDIA X9000",
                          "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2"}) {
    const std::string labels = std::string("gpu=\"0\",UUID=\"GPU-a\",modelName=\"") + raw + "\"";
    const Value r = report(sample(kTensor, labels, "0.5") + sample(kClock, labels, "1410"));
    EXPECT_EQ(text(r, "gpus.0.model"), "null") << raw;
    EXPECT_EQ(text(r, "gpus.0.model_raw"), raw);
    EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null") << raw;
    EXPECT_EQ(number(r, "fleet.tensor_active_ratio"), 0.5) << raw;
    EXPECT_EQ(text(r, "gpus.0.absent_reason"), "no_reference_clock") << raw;
    EXPECT_EQ(quality(r, "unknown_model"), 1) << raw;
  }
}

TEST(ReportLabels, a_catalogue_row_of_the_user_makes_a_model_known) {
  const std::string labels = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA X9000 SXM\"";
  const Value r = report(Input{{sample(kTensor, labels, "0.5") + sample(kClock, labels, "1000")},
                               {"--gpu-catalog", "@gpus.csv"},
                               {{"gpus.csv", "model,name_match,tensor_peak_clock_mhz\nX9000,X9000 SXM,2000\n"}}});
  EXPECT_EQ(text(r, "gpus.0.model"), "X9000");
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.25);
}

TEST(ReportLabels, a_job_may_hold_two_models) {
  const std::string sxm = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"n1\",hpc_job=\"5\"";
  const std::string pcie = "gpu=\"0\",UUID=\"GPU-b\",modelName=\"NVIDIA H100 PCIe\",Hostname=\"n2\",hpc_job=\"5\"";
  const Value r = report(sample(kTensor, sxm, "0.5") + sample(kClock, sxm, "1830") + sample(kTensor, pcie, "0.5") +
                         sample(kClock, pcie, "810"));
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_NEAR(number(gpu(r, "GPU-a"), "ofu_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(number(gpu(r, "GPU-b"), "ofu_ratio"), 0.25, 1e-12);
  EXPECT_NEAR(number(job(r, "5"), "ofu_ratio"), 0.375, 1e-12);
  EXPECT_EQ(number(gpu(r, "GPU-b"), "reference_clock_hertz"), 1620e6);
}

TEST(ReportLabels, an_empty_scrape_among_others_is_one_missing_scrape) {
  const Value r = report(Input{{labelled("pod=\"p\""), "# HELP x y\n", ""}, {}, {}});
  EXPECT_EQ(quality(r, "empty_scrape"), 2);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
}

TEST(ReportLabels, a_scrape_that_is_empty_in_time_is_no_idle_time) {
  const std::string labels = h100("GPU-a", "n1", "0", "pod=\"p\"");
  const Value r = report(series(kTensor, labels, 15, {"0.5", "0.5", "-", "0.5", "0.5"}) +
                         series(kClock, labels, 15, {"1830", "1830", "-", "1830", "1830"}));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12);
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_NEAR(number(job(r, "p"), "gpu_hours_allocated"), 75.0 / 3600, 1e-12);
}

TEST(ReportLabels, text_from_outside_reaches_the_terminal_without_control_characters) {
  const Answer answer = run_report_on({{labelled("pod=\"a\x1b[31mred\\nnext\"")}, {}, {}});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_EQ(answer.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(answer.out.find("\nnext"), std::string::npos);
  const Value r = report(labelled("pod=\"a\x1b[31mred\\nnext\""));
  EXPECT_EQ(text(r, "groups.0.key.job"), "a\x1b[31mred\nnext");
}

TEST(ReportLabels, pods_of_one_owner_are_one_job_where_kube_state_metrics_is_among_the_scrapes) {
  const auto gpu = [](int n, const std::string& pod) {
    const std::string labels = "{gpu=\"" + std::to_string(n) + "\",UUID=\"GPU-" + std::to_string(n) +
                               "\",modelName=\"NVIDIA H100 80GB HBM3\",exported_pod=\"" + pod + "\",exported_namespace=\"ml\"} ";
    return "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + labels + "0.4\nDCGM_FI_DEV_SM_CLOCK" + labels + "1830\n";
  };
  const auto owner = [](const std::string& pod) {
    return "kube_pod_owner{namespace=\"ml\",pod=\"" + pod + "\",owner_kind=\"PyTorchJob\",owner_name=\"llama\",owner_is_controller=\"true\"} 1\n";
  };
  const Value r = report(test::Input{{gpu(0, "llama-worker-0") + gpu(1, "llama-worker-1") + gpu(2, "other"),
                                      owner("llama-worker-0") + owner("llama-worker-1")}, {}, {}});
  std::vector<std::string> jobs;
  for (std::size_t i = 0; i < test::count(r, "groups"); ++i) jobs.push_back(test::text(r, "groups." + std::to_string(i) + ".key.job"));
  std::sort(jobs.begin(), jobs.end());
  EXPECT_EQ(jobs, (std::vector<std::string>{"llama", "other"}));
  EXPECT_EQ(test::number(r, "fleet.gpu_count"), 3);
}

}  // namespace
}  // namespace flopsight::app
