// The same quantities as different exporters publish them: percent and ratio, MHz and Hz, names old and new, other
// vendors. Units come from the name alone.
#include <gtest/gtest.h>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

TEST(ReportExporters, help_text_does_not_decide_the_unit) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(
      "# HELP DCGM_FI_PROF_PIPE_TENSOR_ACTIVE Ratio of cycles the tensor (HMMA) pipe is active (in %).\n"
      "# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge\n" +
      sample(kTensor, labels, "0.41") +
      "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in GHz).\n" + sample(kClock, labels, "1830"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.41, 1e-12);
}

TEST(ReportExporters, a_percentage_below_1_is_not_taken_for_a_ratio) {
  const std::string labels = "minor_number=\"0\",uuid=\"GPU-a\",name=\"NVIDIA H100 80GB HBM3\",instance=\"n1:9445\"";
  const Value r = report(sample("nvidia_gpu_any_tensor_util_percent", labels, "0.41") +
                         sample("nvidia_gpu_sm_clock_mhz", labels, "1830"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.0041, 1e-12);
}

TEST(ReportExporters, jobstats_percent_with_a_clock_in_megahertz) {
  const std::string labels = "minor_number=\"0\",uuid=\"GPU-a\",name=\"NVIDIA H100 80GB HBM3\",instance=\"n1:9445\"";
  const Value r = report(sample("nvidia_gpu_any_tensor_util_percent", labels, "41.2") +
                         sample("nvidia_gpu_sm_clock_mhz", labels, "915") +
                         sample("nvidia_gpu_duty_cycle", labels, "100"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.206, 1e-12);
  EXPECT_EQ(text(r, "gpus.0.host"), "n1");
  EXPECT_EQ(text(r, "gpus.0.index"), "0");
  EXPECT_EQ(text(r, "gpus.0.uuid"), "GPU-a");
}

TEST(ReportExporters, tensor_activity_in_percent_joins_a_clock_in_hertz_of_another_exporter) {
  const Value r = report(Input{
      {sample("nvidia_gpu_any_tensor_util_percent", "minor_number=\"0\",uuid=\"GPU-a\",instance=\"n1:9445\"", "50"),
       sample("nvidia_smi_clocks_current_sm_clock_hz", "uuid=\"a\"", "1.83e+09") +
           sample("nvidia_smi_gpu_info", "uuid=\"a\",name=\"NVIDIA H100 80GB HBM3\"", "1")},
      {},
      {}});
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
}

TEST(ReportExporters, megahertz_and_hertz_are_one_clock) {
  const std::string smi = "uuid=\"b\",instance=\"n2:9835\"";
  const Value r = report(sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") +
                         sample(kClock, h100("GPU-a", "n1", "0"), "1980") +
                         sample("nvidia_smi_clocks_current_sm_clock_hz", smi, "1.98e+09") +
                         sample("nvidia_smi_gpu_info", smi + ",name=\"NVIDIA H100 80GB HBM3\"", "1"));
  EXPECT_EQ(number(r, "gpus.0.sm_clock_hertz"), 1980e6);
  EXPECT_EQ(number(r, "gpus.1.sm_clock_hertz"), 1980e6);
  EXPECT_EQ(text(r, "gpus.1.model"), "H100-SXM5-80GB");
  EXPECT_EQ(text(r, "gpus.1.absent_reason"), "no_tensor_counter");
}

TEST(ReportExporters, the_ratio_of_dcgm_4_6_that_is_a_percentage_is_read_as_one) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const auto with_util = [&](const char* util) {
    return report(sample("DCGM_FI_PROF_TENSOR_UTIL_RATIO", labels, "0") + sample(kClock, labels, "1830") +
                  sample("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", labels, "0") +
                  sample("DCGM_FI_DEV_GPU_UTIL_RATIO", labels, util));
  };
  // 87 % busy contradicts an engine that is never active; 0.87 % does not.
  EXPECT_EQ(quality(with_util("87"), "contradicted"), 1);
  EXPECT_EQ(quality(with_util("0.87"), "contradicted"), 0);
  EXPECT_EQ(quality(with_util("87"), "out_of_range"), 0);
}

TEST(ReportExporters, a_ratio_in_the_name_of_a_recording_rule_is_a_percentage_where_the_table_says_so) {
  const std::string labels = h100("77", "n1", "0");
  const Value r = report(sample(kTensor, labels, "0.31") + sample(kClock, labels, "1830") +
                         sample("uuid:ceems_gpu_sm_active:ratio", "uuid=\"77\"", "62"));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_NEAR(number(r, "fleet.waterfall.tensor_idle_sm_busy_ratio"), 0.31, 1e-12);
  EXPECT_NEAR(number(r, "fleet.waterfall.sm_idle_ratio"), 0.38, 1e-12);
}

TEST(ReportExporters, one_pipe_of_an_exporter_that_names_pipes_is_not_all_of_them) {
  const auto labels = [](const char* pipe) { return std::string("uuid=\"GPU-a\",id=\"0\",pipe=\"") + pipe + "\""; };
  const Value r = report(sample("gpu_tensor_utilization", labels("hmma"), "10") +
                         sample("gpu_tensor_utilization", labels("any"), "60") +
                         sample("gpu_tensor_utilization", labels("imma"), "50"));
  EXPECT_NEAR(number(r, "fleet.tensor_active_ratio"), 0.6, 1e-12);
  EXPECT_EQ(quality(r, "conflicting_duplicate"), 0);
}

TEST(ReportExporters, utilisation_is_context_and_never_stands_in_for_tensor_activity) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value without = report(sample(kClock, labels, "1830") + sample(kUtil, labels, "100"));
  EXPECT_EQ(text(without, "fleet.ofu_ratio"), "null");
  EXPECT_EQ(text(without, "fleet.tensor_active_ratio"), "null");
  const std::string ofu = sample(kTensor, labels, "0.2") + sample(kClock, labels, "1830");
  EXPECT_EQ(number(report(ofu + sample(kUtil, labels, "100")), "fleet.ofu_ratio"),
            number(report(ofu + sample(kUtil, labels, "3")), "fleet.ofu_ratio"));
}

TEST(ReportExporters, a_hang_shows_as_no_work_however_busy_the_gpu_says_it_is) {
  const std::string labels = h100("GPU-a", "n1", "0", "pod=\"stuck\"");
  const Value r = report(sample(kTensor, labels, "0") + sample(kClock, labels, "1980") + sample(kUtil, labels, "100") +
                         sample(kEngine, labels, "1") + sample("DCGM_FI_PROF_SM_ACTIVE", labels, "1") +
                         sample(kPower, labels, "140"));
  EXPECT_EQ(number(job(r, "stuck"), "ofu_ratio"), 0);
  EXPECT_EQ(number(job(r, "stuck"), "waterfall.tensor_idle_sm_busy_ratio"), 1);
}

TEST(ReportExporters, amd_tensor_activity_is_shown_as_uncalibrated_and_no_ofu_is_made_of_it) {
  const std::string labels =
      "gpu_id=\"0\",gpu_uuid=\"6699c0a8-4200-4242-037f-f97e6cae0f09\",card_series=\"AMD Instinct MI300X\","
      "hostname=\"a1\",job_id=\"77\"";
  for (const char* name : {"gpu_prof_tensor_active_percent", "amd_gpu_prof_tensor_active_percent"}) {
    const Value r = report(sample(name, labels, "46") +
                           sample("gpu_clock", labels + ",clock_type=\"GPU_CLOCK_TYPE_SYSTEM\"", "2100") +
                           sample("gpu_gfx_activity", labels, "13") + sample("gpu_power_usage", labels, "600"));
    EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null") << name;
    EXPECT_NEAR(number(r, "fleet.tensor_active_ratio"), 0.46, 1e-12) << name;
    EXPECT_EQ(number(r, "gpus.0.sm_clock_hertz"), 2100e6) << name;
    EXPECT_EQ(text(job(r, "77"), "absent_reason"), "uncalibrated") << name;
  }
}

TEST(ReportExporters, amd_beside_nvidia_leaves_nvidia_measured) {
  const Value r = report(sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") +
                         sample(kClock, h100("GPU-a", "n1", "0"), "1830") +
                         sample("gpu_prof_tensor_active_percent", "gpu_id=\"0\",gpu_uuid=\"6699c0a8\"", "90"));
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 0.5);
  EXPECT_EQ(text(gpu(r, "6699c0a8"), "ofu_ratio"), "null");
}

// The first half of the minute under the old names, the second under the new, one step under both.
TEST(ReportExporters, a_rolling_upgrade_to_new_names_is_one_history_counted_once) {
  const std::string before = h100("GPU-a", "n1", "0", "pod=\"train-0\"");
  const std::string after =
      "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H100 80GB HBM3\",hostname=\"n1\",pod=\"train-0\","
      "pci_bus_id=\"00000000:53:00.0\",pod_uid=\"\",DCGM_FI_DRIVER_VERSION=\"580.1\"";
  const Value r = report(series(kTensor, before, 15, {"0.2", "0.2", "0.2", "-"}) +
                         series("DCGM_FI_PROF_TENSOR_UTIL_RATIO", after, 15, {"-", "-", "0.2", "0.6"}) +
                         series(kClock, before, 15, {"1830", "1830", "1830", "-"}) +
                         series("DCGM_FI_DEV_SM_CLOCK", after, 15, {"-", "-", "1830", "1830"}));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.3, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1.0 / 60, 1e-12);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
  EXPECT_EQ(quality(r, "duplicate"), 2);
  EXPECT_EQ(quality(r, "conflicting_duplicate"), 0);
}

TEST(ReportExporters, names_of_exporter_1_x_are_read) {
  const std::string labels =
      "gpu=\"0\",uuid=\"GPU-a\",container_name=\"main\",pod_name=\"train-0\",pod_namespace=\"team-a\","
      "modelName=\"NVIDIA A100-SXM4-40GB\",instance=\"10.0.0.7:9400\"";
  const Value r = report(sample("dcgm_fi_prof_pipe_tensor_active", labels, "0.4") +
                         sample("dcgm_sm_clock", labels, "1410") + sample("dcgm_power_usage", labels, "300.5"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.4, 1e-12);
  EXPECT_EQ(text(r, "groups.0.key.job"), "train-0");
  EXPECT_EQ(text(r, "groups.0.key.namespace"), "team-a");
  EXPECT_EQ(text(r, "gpus.0.host"), "10.0.0.7");
}

TEST(ReportExporters, hostname_in_either_case_is_one_host) {
  const auto labels = [](const char* key) {
    return std::string("gpu=\"0\",modelName=\"NVIDIA H100 80GB HBM3\",") + key + "=\"n1\"";
  };
  const Value r = report(Input{{series(kTensor, labels("Hostname") + ",UUID=\"GPU-a\"", 15, {"0.5", "0.5", "-", "-"}) +
                                series(kTensor, labels("hostname") + ",UUID=\"GPU-a\"", 15, {"-", "-", "0.5", "0.5"}) +
                                series(kClock, labels("hostname") + ",UUID=\"GPU-a\"", 15, times(4, "1830"))},
                               {"--by", "host"},
                               {}});
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_EQ(text(r, "groups.0.key.host"), "n1");
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12);
}

TEST(ReportExporters, the_same_gpu_without_uuid_is_one_before_and_after_the_rename) {
  const auto labels = [](const char* key) {
    return std::string("gpu=\"0\",modelName=\"NVIDIA H100 80GB HBM3\",") + key + "=\"n1\"";
  };
  const Value r = report(series(kTensor, labels("Hostname"), 15, {"0.5", "0.5", "-", "-"}) +
                         series(kTensor, labels("hostname"), 15, {"-", "-", "0.5", "0.5"}) +
                         series(kClock, labels("hostname"), 15, times(4, "1830")));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-12);
}

TEST(ReportExporters, other_spellings_of_the_labels_are_the_same_gpu) {
  const Value r = report(
      sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") + sample(kClock, h100("GPU-a", "n1", "0"), "1830") +
      sample("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
             "nvlink=\"3\",gpu=\"0\",gpu_uuid=\"GPU-a\",model_name=\"NVIDIA H100 80GB HBM3\",Hostname=\"n1\"", "0") +
      sample(kTemperature, "uuid=\"GPU-a\",node=\"n1\",gpu=\"0\"", "40"));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
  EXPECT_EQ(text(r, "gpus.0.model"), "H100-SXM5-80GB");
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
}

TEST(ReportExporters, the_node_of_a_relabelled_scrape_is_the_host) {
  const Value r = report(Input{{sample(kTensor,
                                       "UUID=\"GPU-a\",gpu=\"0\",node=\"worker-7\",instance=\"10.1.2.3:9400\","
                                       "exported_instance=\"x\",Hostname=\"dcgm-exporter-abcde\"",
                                       "0.5")},
                               {"--by", "host"},
                               {}});
  EXPECT_EQ(text(r, "groups.0.key.host"), "worker-7");
}

TEST(ReportExporters, labels_that_come_with_an_upgrade_are_attributes_and_not_identity) {
  const std::string then = h100("GPU-a", "n1", "0");
  const std::string now = h100("GPU-a", "n1", "0",
                               "DCGM_FI_DRIVER_VERSION=\"580.105.08\",pci_bus_id=\"00000000:53:00.0\",device=\"nvidia0\"");
  const Value r = report(series(kTensor, then, 15, {"0.4", "0.4", "-", "-"}) +
                         series(kTensor, now, 15, {"-", "-", "0.6", "0.6"}) +
                         series(kClock, then, 15, {"1830", "1830", "-", "-"}) +
                         series(kClock, now, 15, {"-", "-", "1830", "1830"}));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_EQ(text(r, "gpus.0.driver_version"), "580.105.08");
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
}

TEST(ReportExporters, uuids_that_differ_in_spelling_only_are_one_gpu) {
  const Value r = report(sample(kTensor, h100("GPU-6C2B1D3E", "n1", "0"), "0.5") +
                         sample("nvidia_smi_clocks_current_sm_clock_hz", "uuid=\"6c2b1d3e\"", "1.83e9"));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
}

TEST(ReportExporters, energy_that_falls_restarts_or_jumps_back_does_not_touch_ofu) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 30, {"0.51", "0.52", "0.53", "0.54"}) +
                         series(kClock, labels, 30, times(4, "1830")) +
                         series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 30,
                                {"129931554972", "0", "129931900000", "12"}));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.525, 1e-12);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
  EXPECT_EQ(quality(r, "frozen"), 0);
}

TEST(ReportExporters, an_exporter_that_repeats_itself_is_frozen_and_not_steady) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 30,
                                {"0.5", "0.51", "0.52", "0.53", "0.512345", "0.512345", "0.512345", "0.512345",
                                 "0.512345", "0.61"}) +
                         series(kClock, labels, 30, times(10, "1830")) +
                         series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 30,
                                {"100", "200", "300", "400", "1000", "1000", "1000", "1000", "1000", "60000000"}));
  EXPECT_EQ(text(r, "groups.0.absent_reason"), "frozen");
  EXPECT_EQ(quality(r, "frozen"), 4);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.6, 1e-12);
}

TEST(ReportExporters, an_exporter_that_reads_every_two_minutes_is_slow_and_not_frozen) {
  const std::string labels = h100("GPU-a", "n1", "0");
  std::vector<std::string> tensor, energy;
  for (int i = 0; i < 48; ++i) {
    tensor.push_back("0.51" + std::to_string(1000 + i / 8));
    energy.push_back(std::to_string(1000000 + 5000 * (i / 8)));
  }
  const Value r = report(series(kTensor, labels, 15, tensor) + series(kClock, labels, 15, times(48, "1830")) +
                         series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 15, energy));
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
  EXPECT_EQ(quality(r, "frozen"), 0);
}

TEST(ReportExporters, an_energy_counter_that_is_not_supported_freezes_nothing) {
  const std::string labels = h100("GPU-a", "n1", "0");
  std::vector<std::string> tensor;
  for (int i = 0; i < 60; ++i) tensor.push_back("0.5" + std::to_string(i));
  const Value r = report(series(kTensor, labels, 30, tensor) + series(kClock, labels, 30, times(60, "1830")) +
                         series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 30, times(60, "0")));
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
}

}  // namespace
}  // namespace flopsight::app
