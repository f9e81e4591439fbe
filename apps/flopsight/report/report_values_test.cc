// Counter values that are not values, and values in other units: each case is one that users met.
#include <gtest/gtest.h>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

std::string one_gpu(const std::string& labels, std::string_view tensor, std::string_view clock) {
  return sample(kTensor, labels, tensor) + sample(kClock, labels, clock);
}

TEST(ReportValues, ofu_is_tensor_activity_times_clock_over_the_tensor_peak_clock) {
  const Value r = report(one_gpu(h100("GPU-a", "n1", "0"), "0.5", "1464"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.4, 1e-12);
  EXPECT_NEAR(number(r, "fleet.tensor_active_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(number(r, "fleet.sm_clock_hertz_mean"), 1464e6, 1e-3);
  EXPECT_EQ(number(r, "gpus.0.reference_clock_hertz"), 1830e6);
  EXPECT_EQ(text(r, "gpus.0.reference_clock_source"), "catalog_tensor_peak");
}

// Blank, not found, not supported, not permitted; as a double, as a percentage, as integers.
TEST(ReportValues, blank_tensor_activity_is_unknown_and_neither_0_nor_1) {
  for (const char* blank : {"140737488355328.000000", "140737488355329", "140737488355330", "140737488355331",
                            "1.40737488355328e+16", "9223372036854775792", "9223372036854775794", "2147483632",
                            "2147483635"}) {
    const Value r = report(one_gpu(h100("GPU-a", "n1", "0"), blank, "1830"));
    EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null") << blank;
    EXPECT_EQ(text(r, "fleet.tensor_active_ratio"), "null") << blank;
    EXPECT_EQ(text(r, "gpus.0.absent_reason"), "blank") << blank;
    EXPECT_EQ(number(r, "fleet.coverage_ratio"), 0) << blank;
    EXPECT_EQ(quality(r, "blank"), 1) << blank;
  }
}

TEST(ReportValues, a_blank_that_the_exporter_scaled_is_unknown) {
  const std::string labels = "gpu=\"GPU-a\",slurmjobid=\"123\",name=\"NVIDIA H100 80GB HBM3\"";
  const Value r = report(sample("slurm_job_tensor_gpu", labels, "1.40737488355328e+16") +
                         sample("slurm_job_utilization_gpu", labels, "1.40737488355328e+16"));
  EXPECT_EQ(text(r, "gpus.0.ofu_ratio"), "null");
  EXPECT_EQ(text(r, "gpus.0.absent_reason"), "blank");
  EXPECT_EQ(quality(r, "blank"), 2);
}

TEST(ReportValues, a_blank_clock_leaves_tensor_activity_known_and_ofu_unknown) {
  for (const char* blank : {"2147483632", "2147483634", "9223372036854775795", "140737488355328"}) {
    const Value r = report(one_gpu(h100("GPU-a", "n1", "0"), "0.5", blank));
    EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null") << blank;
    EXPECT_EQ(number(r, "fleet.tensor_active_ratio"), 0.5) << blank;
    EXPECT_EQ(text(r, "fleet.sm_clock_hertz_mean"), "null") << blank;
    EXPECT_EQ(text(r, "gpus.0.absent_reason"), "blank") << blank;
  }
}

TEST(ReportValues, blanks_of_metrics_beside_ofu_do_not_touch_it) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(one_gpu(labels, "0.5", "1830") +
                         sample("DCGM_FI_DEV_MEMORY_TEMP", labels, "9223372036854775794") +
                         sample("DCGM_FI_DEV_MEM_COPY_UTIL", labels, "2147483632") +
                         sample(kTemperature, labels, "2147483633") + sample(kPower, labels, "NaN"));
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
  EXPECT_EQ(quality(r, "blank"), 1);  // of the temperature; the other two are not read at all
  EXPECT_EQ(quality(r, "not_a_number"), 1);
}

TEST(ReportValues, a_blank_among_samples_is_unmeasured_time_and_keeps_its_neighbours) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 15, {"0.4", "0.4", "140737488355328", "0.4"}) +
                         series(kClock, labels, 15, times(4, "1830")));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.4, 1e-12);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.75, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_unmeasured"), 15.0 / 3600, 1e-12);
  EXPECT_EQ(text(r, "groups.0.absent_reason"), "blank");
}

TEST(ReportValues, ratios_outside_their_range_are_rejected_and_never_clamped) {
  const std::string labels = h100("GPU-a", "n1", "0");
  for (const char* impossible : {"4294967295", "187342", "1.5", "-0.1", "-Inf", "-1"}) {
    const Value r = report(series(kTensor, labels, 15, {"0.2", impossible, "0.4", "0.4"}) +
                           series(kClock, labels, 15, times(4, "1830")));
    EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 1.0 / 3, 1e-12) << impossible;
    EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.75, 1e-12) << impossible;
    EXPECT_EQ(quality(r, "out_of_range"), 1) << impossible;
  }
}

TEST(ReportValues, an_impossible_utilisation_is_counted_and_does_not_touch_ofu) {
  const std::string labels = h100("GPU-a", "n1", "3");
  for (const char* impossible : {"4294967295", "187342", "101000"}) {
    const Value r = report(one_gpu(labels, "0.5", "1830") + sample(kUtil, labels, impossible));
    EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5) << impossible;
    EXPECT_EQ(quality(r, "out_of_range"), 1) << impossible;
  }
}

TEST(ReportValues, not_a_number_is_unmeasured) {
  const Value r = report(one_gpu(h100("GPU-a", "n1", "0"), "NaN", "1830"));
  EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null");
  EXPECT_EQ(text(r, "gpus.0.absent_reason"), "not_a_number");
}

TEST(ReportValues, a_clock_of_zero_is_no_clock) {
  const Value r = report(one_gpu(h100("GPU-a", "n1", "0"), "0.5", "0"));
  EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null");
  EXPECT_EQ(text(r, "gpus.0.absent_reason"), "out_of_range");
}

TEST(ReportValues, tensor_activity_up_to_1_02_is_rounding_and_above_is_no_reading) {
  EXPECT_NEAR(number(report(one_gpu(h100("GPU-a", "n1", "0"), "1.02", "1830")), "fleet.ofu_ratio"), 1.02, 1e-12);
  EXPECT_EQ(text(report(one_gpu(h100("GPU-a", "n1", "0"), "1.0201", "1830")), "fleet.ofu_ratio"), "null");
}

TEST(ReportValues, a_metric_is_ignored_from_the_driver_version_that_the_rules_name) {
  const char* rules = R"({"ignore_metrics": [
      {"metric": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "driver_version": "525."}]})";
  const std::string wrong = h100("GPU-a", "n1", "0", "DCGM_FI_DRIVER_VERSION=\"525.60.13\"");
  const std::string right = h100("GPU-b", "n2", "0", "DCGM_FI_DRIVER_VERSION=\"535.129.03\"");
  const Value r = report(Input{{one_gpu(wrong, "0.9", "1830") + one_gpu(right, "0.3", "1830")},
                               {"--rules", "@rules.json"},
                               {{"rules.json", rules}}});
  EXPECT_EQ(text(gpu(r, "GPU-a"), "ofu_ratio"), "null");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "absent_reason"), "no_tensor_counter");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "driver_version"), "525.60.13");
  EXPECT_EQ(number(gpu(r, "GPU-b"), "ofu_ratio"), 0.3);
  EXPECT_EQ(text(gpu(r, "GPU-b"), "driver_version"), "535.129.03");
  EXPECT_EQ(quality(r, "ignored_metric"), 1);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 2);
}

TEST(ReportValues, an_ignore_rule_without_a_version_always_holds) {
  const Value r = report(Input{{one_gpu(h100("GPU-a", "n1", "0"), "0.9", "1830")},
                               {"--rules", "@rules.json"},
                               {{"rules.json", R"({"ignore_metrics": [{"metric": "DCGM_FI_DEV_SM_CLOCK"}]})"}}});
  EXPECT_EQ(text(r, "gpus.0.absent_reason"), "no_clock");
  EXPECT_EQ(number(r, "fleet.tensor_active_ratio"), 0.9);
}

TEST(ReportValues, profiling_zero_while_the_device_is_busy_is_suspect_and_no_waste) {
  const std::string labels = h100("GPU-a", "n1", "3", "pod=\"train-0\"");
  const std::string util_says = series(kTensor, labels, 15, times(4, "0.000000")) +
                                series(kClock, labels, 15, times(4, "1830")) +
                                series(kEngine, labels, 15, times(4, "0.000000"));
  for (const std::string& device : {series(kUtil, labels, 15, times(4, "100")),
                                    series(kUtil, labels, 15, times(4, "50")),
                                    series(kPower, labels, 15, {"650", "640", "655", "648"})}) {
    const Value r = report(util_says + device);
    EXPECT_EQ(text(job(r, "train-0"), "ofu_ratio"), "null") << device;
    EXPECT_EQ(text(job(r, "train-0"), "absent_reason"), "contradicted") << device;
    EXPECT_EQ(number(r, "fleet.gpu_hours_lost"), 0) << device;
    EXPECT_EQ(quality(r, "contradicted"), 4) << device;
  }
}

TEST(ReportValues, a_gpu_that_is_idle_by_every_counter_is_lost_and_not_suspect) {
  const std::string labels = h100("GPU-a", "n1", "3", "pod=\"train-0\"");
  const Value r = report(series(kTensor, labels, 15, times(4, "0")) + series(kClock, labels, 15, times(4, "345")) +
                         series(kEngine, labels, 15, times(4, "0")) + series(kUtil, labels, 15, times(4, "0")) +
                         series(kPower, labels, 15, {"71.2", "71.3", "71.1", "71.2"}));
  EXPECT_EQ(number(job(r, "train-0"), "ofu_ratio"), 0);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_lost"), 1.0 / 60, 1e-12);
  EXPECT_EQ(quality(r, "contradicted"), 0);
}

TEST(ReportValues, zeros_after_a_while_are_suspect_and_the_time_before_stays_measured) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 15, {"0.5", "0.5", "0", "0"}) +
                         series(kEngine, labels, 15, {"0.9", "0.9", "0", "0"}) +
                         series(kUtil, labels, 15, {"98", "97", "98", "99"}) +
                         series(kClock, labels, 15, times(4, "1830")));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.5, 1e-12);
  EXPECT_EQ(quality(r, "contradicted"), 2);
}

std::string host_of_two(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::string x = h100("GPU-a", "n1", "0"), y = h100("GPU-b", "n1", "1");
  return series(kTensor, x, 15, a) + series(kTensor, y, 15, b) + series(kClock, x, 15, times(8, "1830")) +
         series(kClock, y, 15, times(8, "1830")) + series(kUtil, x, 15, times(8, "90")) +
         series(kUtil, y, 15, times(8, "90"));
}

TEST(ReportValues, profiling_that_all_gpus_of_a_host_lose_at_once_is_a_profiler_pause) {
  for (const char* lost : {"-", "140737488355328"}) {
    const std::vector<std::string> values = {"0.5", "0.5", lost, lost, lost, lost, "0.5", "0.5"};
    const Value r = report(host_of_two(values, values));
    EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12) << lost;
    EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.5, 0.13) << lost;
    EXPECT_EQ(text(r, "groups.0.absent_reason"), "profiler_pause") << lost;
    EXPECT_EQ(quality(r, "profiler_pause"), 8) << lost;
  }
}

TEST(ReportValues, profiling_that_one_gpu_of_a_host_loses_is_no_profiler_pause) {
  const Value r = report(host_of_two({"0.5", "0.5", "-", "-", "-", "-", "0.5", "0.5"}, times(8, "0.5")));
  EXPECT_EQ(quality(r, "profiler_pause"), 0);
  EXPECT_NEAR(number(gpu(r, "GPU-b"), "coverage_ratio"), 1, 1e-12);
  EXPECT_LT(number(gpu(r, "GPU-a"), "coverage_ratio"), 0.7);
  EXPECT_EQ(text(r, "groups.0.absent_reason"), "no_tensor_counter");
}

TEST(ReportValues, gpus_without_a_tensor_counter_are_unmeasured_and_not_idle) {
  const std::string with = h100("GPU-a", "l40s-1", "0"), without = h100("GPU-b", "h100-1", "0", "pod=\"p\"");
  const Value r = report(series(kTensor, with, 15, times(4, "0.5")) + series(kClock, with, 15, times(4, "1830")) +
                         series(kClock, without, 15, times(4, "1830")) + series(kUtil, without, 15, times(4, "90")));
  EXPECT_EQ(text(gpu(r, "GPU-b"), "absent_reason"), "no_tensor_counter");
  EXPECT_EQ(text(job(r, "p"), "ofu_ratio"), "null");
  EXPECT_EQ(number(job(r, "p"), "gpu_hours_lost"), 0);
  EXPECT_NEAR(number(job(r, "p"), "gpu_hours_unmeasured"), 1.0 / 60, 1e-12);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio_low"), 0.25, 1e-6);
  EXPECT_GE(number(r, "fleet.ofu_ratio_high"), 0.75);
}

TEST(ReportValues, an_absent_error_counter_is_not_shown_as_no_errors) {
  const Answer table = run_report_on({{one_gpu(h100("GPU-a", "n1", "0"), "0.5", "1830")}, {}, {}});
  EXPECT_EQ(table.exit_code, 0);
  for (const char* word : {"xid", "Xid", "XID", "errors"}) EXPECT_EQ(table.out.find(word), std::string::npos);
}

TEST(ReportValues, no_flop_rate_is_shown_anywhere) {
  for (const char* format : {"table", "json", "csv"}) {
    const Answer answer =
        run_report_on({{one_gpu(h100("GPU-a", "n1", "0"), "0.5", "1830")}, {"--format", format}, {}});
    EXPECT_EQ(answer.exit_code, 0);
    const std::string lower = base::to_lower(answer.out);
    for (const char* word : {"tflop", "flops_per_second", "flop/s", "989"}) {
      EXPECT_EQ(lower.find(word), std::string::npos) << format << " " << word;
    }
  }
}

}  // namespace
}  // namespace flopsight::app
