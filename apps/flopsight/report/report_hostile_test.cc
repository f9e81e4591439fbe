// Inputs that broke the report once, and their kin.
#include <algorithm>

#include <gtest/gtest.h>

#include "test_support.h"

namespace flopsight::app::test {
namespace {

// One scrape, and one option that names a file with this text.
Input with(const std::string& scrape, const std::string& option, const std::string& file) {
  return Input{{scrape}, {option, "@file"}, {{"file", file}}};
}

TEST(ReportHostile, a_reference_clock_that_is_no_number_is_refused) {
  for (const char* clock : {"nan", "inf", "-inf", "1e999"}) {
    const Answer answer = run_report_on(
        Input{{sample(kTensor, h100("GPU-a", "n1", "0"), "0.5")}, {"--reference-clock", clock}, {}});
    EXPECT_EQ(answer.exit_code, 2) << clock;
    EXPECT_EQ(answer.out, "") << clock;
  }
}

TEST(ReportHostile, prices_and_catalogue_rows_beyond_reason_are_refused) {
  const std::string scrape = sample(kTensor, h100("GPU-a", "n1", "0"), "0.5");
  for (const char* csv : {"model,usd_per_gpu_hour\n*,inf\n", "model,usd_per_gpu_hour\n*,1e308\n",
                          "model,usd_per_gpu_hour\n*,nan\n"}) {
    EXPECT_EQ(run_report_on(with(scrape, "--prices", csv)).exit_code, 2) << csv;
  }
  for (const char* csv : {"model,tensor_peak_clock_mhz\nX,inf\n", "model,sm_count\nX,1e300\n"}) {
    EXPECT_EQ(run_report_on(with(scrape, "--gpu-catalog", csv)).exit_code, 2) << csv;
  }
  EXPECT_EQ(run_report_on(with(scrape, "--gpu-catalog", "model,mem_gb\nX,8/555555555555555555555\n")).exit_code, 0);
}

TEST(ReportHostile, an_idle_slice_beside_a_busy_one_is_measured) {
  const std::string gpu = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA A100-SXM4-40GB\",Hostname=\"n1\",GPU_I_ID=";
  const std::string busy = gpu + "\"1\",GPU_I_PROFILE=\"4g.20gb\"", idle = gpu + "\"2\",GPU_I_PROFILE=\"3g.20gb\"";
  std::string scrape;
  for (const std::string& labels : {busy, idle}) {
    scrape += sample(kClock, labels, "1410") + sample(kPower, labels, "380") + sample(kUtil, labels, "99");
  }
  scrape += sample(kTensor, busy, "0.9") + sample(kEngine, busy, "0.99") + sample(kTensor, idle, "0") +
            sample(kEngine, idle, "0");
  const Value r = report(scrape);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.9 * 4 / 7, 1e-12);
}

TEST(ReportHostile, two_exporters_that_name_one_job_name_one_holder) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(sample(kTensor, labels + ",hpc_job=\"101\"", "0.5") + sample(kClock, labels, "1830") +
                         sample("slurm_job_power_gpu", "gpu=\"GPU-a\",slurmjobid=\"101\",user=\"ann\",account=\"phys\"",
                                "600000"));
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_EQ(text(r, "groups.0.key.user"), "ann");
  EXPECT_EQ(quality(r, "shared_gpu"), 0);
}

TEST(ReportHostile, stderr_is_one_line_whatever_the_input) {
  const std::string scrape = sample(kTensor, h100("GPU-a", "n1", "0"), "0.5");
  const Answer jobs = run_report_on(with(scrape, "--jobs", R"([{"job":"a\nb"}])"));
  EXPECT_EQ(jobs.exit_code, 2);
  EXPECT_EQ(std::count(jobs.err.begin(), jobs.err.end(), '\n'), 1) << jobs.err;
  const Answer file = run_program({"report", "--file", "x\ny"});
  EXPECT_EQ(std::count(file.err.begin(), file.err.end(), '\n'), 1) << file.err;
}

TEST(ReportHostile, a_jobs_file_names_gpus_by_uuid_in_any_spelling_bus_id_or_range) {
  const std::string labels = h100("GPU-6c2b1d3e-aa", "n1", "2") + ",pci_bus_id=\"00000000:53:00.0\"";
  const std::string scrape = sample(kTensor, labels, "0.5") + sample(kClock, labels, "1830");
  for (const char* gpus : {"GPU-6C2B1D3E-AA", "gpu-6c2b1d3e-aa", "0000:53:00.0", "0-3", "2", ""}) {
    const Value r = report(with(scrape, "--jobs", std::string("job,hosts,gpus\n7,n1,") + gpus + "\n"));
    EXPECT_EQ(text(gpu(r, "GPU-6c2b1d3e-aa"), "job"), "7") << gpus;
  }
  for (const char* gpus : {"3-0", "0-9999", "first"}) {
    const Answer answer =
        run_report_on(with(scrape, "--jobs", std::string("job,hosts,gpus\n7,n1,") + gpus + "\n"));
    EXPECT_EQ(answer.exit_code, 2) << gpus;
  }
}

TEST(ReportHostile, a_misspelt_column_of_a_jobs_file_is_an_error) {
  const std::string scrape = sample(kTensor, h100("GPU-a", "n1", "0"), "0.5");
  EXPECT_EQ(run_report_on(with(scrape, "--jobs", "job,hosts,gpu_idx\n7,n1,5\n")).exit_code, 2);
  EXPECT_EQ(run_report_on(with(scrape, "--jobs", "job,hosts,gpu,comment\n7,n1,5,x\n")).exit_code, 0);
}

TEST(ReportHostile, a_gpu_divided_in_mid_window_keeps_its_time_before) {
  const std::string whole = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA A100-SXM4-40GB\",Hostname=\"n1\"";
  const std::string slice = whole + ",GPU_I_ID=\"0\",GPU_I_PROFILE=\"7g.40gb\"";
  std::string scrape;
  for (int i = 0; i < 20; ++i) {
    const std::string labels = i < 10 ? whole + ",exported_pod=\"whole\"" : slice;
    const std::string when = " " + std::to_string(kStartMilliseconds + i * 30000) + "\n";
    scrape += std::string(kTensor) + "{" + labels + "} 0.5" + when + std::string(kClock) + "{" + labels + "} 1410" + when;
  }
  const Value r = report(scrape);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 600.0 / 3600, 1e-9);
  EXPECT_NEAR(number(job(r, "whole"), "gpu_hours_allocated"), 300.0 / 3600, 1e-9);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-9);
}

TEST(ReportHostile, timestamps_outside_history_are_left_out_and_counted) {
  const std::string labels = h100("GPU-a", "n1", "0");
  std::string scrape = series(kTensor, labels, 30, times(4, "0.5")) + series(kClock, labels, 30, times(4, "1830"));
  for (const char* when : {"9223372036854775807", "-9223372036854775808", "-1", "253402300800000"}) {
    scrape += std::string(kTensor) + "{" + labels + "} 0.5 " + when + "\n";
  }
  const Value r = report(scrape);
  EXPECT_EQ(quality(r, "out_of_range_time"), 4);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 120.0 / 3600, 1e-9);
}

TEST(ReportHostile, an_untimed_sample_beside_timed_ones_costs_nothing) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 30, times(4, "0.5")) + series(kClock, labels, 30, times(4, "1830")) +
                         sample(kTemperature, labels, "40"));
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 120.0 / 3600, 1e-9);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-12);
}

TEST(ReportHostile, a_sum_over_a_host_is_no_gpu) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(sample(kTensor, labels, "0.5") + sample(kTensor, "Hostname=\"n1\"", "0.5"));
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
}

TEST(ReportHostile, a_job_that_went_on_elsewhere_has_left_its_old_gpu) {
  const std::string labels = h100("GPU-a", "n1", "0") + ",exported_pod=\"train-0\"";
  const std::string jobs =
      "job,hosts,gpus,start,end\n"
      "train-0,n1,0,2026-11-29T09:00:00Z,2026-11-29T10:01:00Z\n"
      "train-0,n2,0,2026-11-29T10:01:00Z,\n";
  const Value r = report(with(
      series(kTensor, labels, 30, times(4, "0.5")) + series(kClock, labels, 30, times(4, "1830")), "--jobs", jobs));
  EXPECT_EQ(text(gpu(r, "GPU-a"), "job"), "train-0");
  EXPECT_GT(quality(r, "holder_after_end"), 0);
}

TEST(ReportHostile, host_lists_are_limited_while_they_grow) {
  const std::string scrape = sample(kTensor, h100("GPU-a", "n1", "0"), "0.5");
  std::string many = "n[1-65536";
  for (int i = 0; i < 400; ++i) many += ",1-65536";
  EXPECT_EQ(run_report_on(with(scrape, "--jobs", R"([{"job":"a","hosts":")" + many + R"(]"}])")).exit_code, 2);
  std::string list = R"([)";
  for (int i = 0; i < 300; ++i) list += R"({"job":"a","hosts":"n[1-65536]"},)";
  list += R"({"job":"b","hosts":"n1"}])";
  EXPECT_EQ(run_report_on(with(scrape, "--jobs", list)).exit_code, 2);
}

TEST(ReportHostile, two_fields_for_one_quantity_are_no_conflict) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(sample(kTensor, labels, "0.5") + sample("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", labels, "650") +
                         sample("DCGM_FI_DEV_POWER_MGMT_LIMIT", labels, "700"));
  EXPECT_EQ(quality(r, "conflicting_duplicate"), 0);
}

TEST(ReportHostile, full_utilisation_without_work_or_power_may_be_a_hang) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(sample(kTensor, labels, "0") + sample(kClock, labels, "1980") + sample(kUtil, labels, "100") +
                         sample(kPower, labels, "130") + sample(kEngine, labels, "0.99"));
  EXPECT_EQ(quality(r, "possible_hang"), 1);
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0);
}

}  // namespace
}  // namespace flopsight::app::test
