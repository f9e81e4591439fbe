// Jobs told from outside, with --jobs: who held what when the labels do not say, and how large the fleet is.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

// Two GPUs of n1 without job labels, 10:00:00 to 10:01:00.
std::string bare_host() {
  std::string scrape;
  for (const auto& [uuid, index] : {std::pair("GPU-a", "0"), std::pair("GPU-b", "1")}) {
    scrape += series(kTensor, h100(uuid, "n1", index), 15, times(4, "0.5")) +
              series(kClock, h100(uuid, "n1", index), 15, times(4, "1830"));
  }
  return scrape;
}

Value with_jobs(const std::string& scrape, const std::string& jobs) {
  return report(Input{{scrape}, {"--jobs", "@jobs"}, {{"jobs", jobs}}});
}

TEST(ReportJobs, a_job_holds_its_gpus_for_its_time) {
  const Value r = with_jobs(bare_host(), R"([{"job": 7, "user": "ann", "team": "phys", "hosts": ["n1"], "gpus": [0],
      "start": "2026-11-29T10:00:30Z", "end": "2026-11-29T11:00:00Z"}])");
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_allocated"), 30.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "null"), "gpu_hours_allocated"), 90.0 / 3600, 1e-12);
  EXPECT_EQ(text(job(r, "7"), "key.user"), "ann");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "attributed_by.0"), "jobs_file");
  EXPECT_EQ(count(gpu(r, "GPU-b"), "jobs"), 0U);
}

TEST(ReportJobs, by_family_runs_of_one_name_user_and_size_are_one_group_and_hours_add_up) {
  std::string scrape;
  const std::tuple<const char*, const char*, const char*> gpus[] = {
      {"GPU-a", "llama-7b-run1", "0.5"}, {"GPU-b", "llama-7b-run2", "0.3"}, {"GPU-c", "bert", "0.1"}, {"GPU-d", "llama-7b-run3", "0.9"}, {"GPU-e", "llama-7b-run3", "0.9"}};
  std::string jobs = "job,user,hosts,gpus\n";
  for (const auto& [uuid, name, tensor] : gpus) {
    scrape += series(kTensor, h100(uuid, "n1", "0"), 15, times(4, tensor)) + series(kClock, h100(uuid, "n1", "0"), 15, times(4, "1830"));
  }
  jobs += "llama-7b-run1,ann,n1,GPU-a\nllama-7b-run2,ann,n1,GPU-b\nbert,ann,n1,GPU-c\nllama-7b-run3,ann,n1,\"GPU-d,GPU-e\"\n";
  const Value r = report(Input{{scrape}, {"--jobs", "@jobs", "--by", "family"}, {{"jobs", jobs}}});
  EXPECT_EQ(text(r, "by"), "family");
  std::map<std::string, double> hours, ofu;
  for (std::size_t i = 0; i < count(r, "groups"); ++i) {
    const std::string at = "groups." + std::to_string(i) + ".";
    hours[text(r, at + "key.family")] = number(r, at + "gpu_hours_allocated");
    ofu[text(r, at + "key.family")] = number(r, at + "ofu_ratio");
  }
  ASSERT_EQ(hours.size(), 3U);
  EXPECT_NEAR(hours.at("llama-7b# | ann | H100-SXM5-80GB | 1 GPU"), 120.0 / 3600, 1e-12) << "two runs";
  EXPECT_NEAR(ofu.at("llama-7b# | ann | H100-SXM5-80GB | 1 GPU"), 0.4, 1e-9);
  EXPECT_NEAR(hours.at("llama-7b# | ann | H100-SXM5-80GB | 2 GPUs"), 120.0 / 3600, 1e-12) << "another size";
  double sum = 0;
  for (const auto& [family, one] : hours) sum += one;
  EXPECT_NEAR(sum, number(r, "fleet.gpu_hours_allocated"), 1e-12);
  EXPECT_EQ(text(gpu(r, "GPU-a"), "jobs.0"), "llama-7b-run1") << "a GPU's job is still that";
}

TEST(ReportJobs, csv_and_json_say_the_same) {
  const Value json = with_jobs(bare_host(), R"({"jobs": [{"job": "7", "account": "phys", "hosts": "n[1-2]", "gpus": "0",
      "start": 1795946400, "end": null}]})");
  const Value csv = with_jobs(bare_host(), "job,account,hosts,gpus,start,end\n7,phys,\"n[1-2]\",0,1795946400,Unknown\n");
  for (const Value* r : {&json, &csv}) {
    EXPECT_NEAR(number(job(*r, "7"), "gpu_hours_allocated"), 120.0 / 3600, 1e-12);
    EXPECT_EQ(text(job(*r, "7"), "key.team"), "phys");
    EXPECT_EQ(number(job(*r, "7"), "gpu_count"), 2) << "GPU 0 of n2 was not seen and still held";
  }
}

TEST(ReportJobs, a_job_without_gpus_holds_all_of_its_hosts) {
  const Value r = with_jobs(bare_host(), "job,hosts\n7,n1.cluster.example\n");
  EXPECT_EQ(count(r, "groups"), 1U);
  EXPECT_EQ(number(job(r, "7"), "gpu_count"), 2);
}

TEST(ReportJobs, a_host_is_not_held_by_a_job_on_a_host_of_which_it_is_a_prefix) {
  const Value r = with_jobs(bare_host(), "job,hosts\n7,n10\n8,\"n[2-9]\"\n");
  EXPECT_EQ(text(r, "groups.0.key.job"), "null");
  EXPECT_EQ(count(r, "groups"), 1U);
}

TEST(ReportJobs, gpus_are_matched_by_uuid_whatever_their_index) {
  const Value r = with_jobs(bare_host(), "job,hosts,gpus\n7,n1,GPU-b\n");
  EXPECT_EQ(count(gpu(r, "GPU-a"), "jobs"), 0U);
  EXPECT_EQ(text(gpu(r, "GPU-b"), "job"), "7");
}

TEST(ReportJobs, an_index_map_translates_what_each_tool_calls_a_gpu) {
  const Value r = report(Input{{bare_host()},
                               {"--jobs", "@jobs.csv", "--rules", "@rules.json"},
                               {{"jobs.csv", "job,hosts,gpus\n7,n1,0\n8,n1,6\n"},
                                {"rules.json", R"({"index_map": {"n1": {"0": 6, "1": 0}}})"}}});
  EXPECT_EQ(text(gpu(r, "GPU-b"), "job"), "7");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "job"), "8");
}

TEST(ReportJobs, labels_win_over_the_jobs_file_and_the_disagreement_is_told) {
  const std::string labels = h100("GPU-a", "n1", "0", "hpc_job=\"5\"");
  const std::string scrape = series(kTensor, labels, 15, times(4, "0.5")) + series(kClock, labels, 15, times(4, "1830"));
  const Value r = with_jobs(scrape, "job,hosts\n7,n1\n");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "job"), "5");
  EXPECT_GE(quality(r, "label_conflict"), 1);
  EXPECT_EQ(quality(with_jobs(scrape, "job,hosts\n5,n1\n"), "label_conflict"), 0);
}

TEST(ReportJobs, labels_that_are_there_but_empty_fall_back_to_the_jobs_file) {
  const std::string labels = h100("GPU-a", "n1", "0", "job_id=\"\",job_user=\"\",job_partition=\"\"");
  const Value r = with_jobs(series(kTensor, labels, 15, times(4, "0.5")), "job,user,hosts\n7,ann,n1\n");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "job"), "7");
  EXPECT_EQ(text(gpu(r, "GPU-a"), "attributed_by.0"), "jobs_file");
  EXPECT_TRUE(assumes(r, "jobs_file 1"));
}

TEST(ReportJobs, samples_after_the_end_of_a_job_are_not_its) {
  const std::string labels = h100("GPU-a", "n1", "0", "pod=\"train-0\"");
  const std::string scrape = series(kTensor, labels, 15, times(4, "0.5")) + series(kClock, labels, 15, times(4, "1830"));
  const Value r = with_jobs(scrape, "job,hosts,end\ntrain-0,n1,2026-11-29T10:00:15Z\n");
  EXPECT_NEAR(number(job(r, "train-0"), "gpu_hours_allocated"), 15.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "null"), "gpu_hours_allocated"), 45.0 / 3600, 1e-12);
  EXPECT_GE(quality(r, "holder_after_end"), 1);
}

TEST(ReportJobs, a_job_that_ended_and_runs_again_keeps_the_time_of_the_second_run) {
  const std::string labels = h100("GPU-a", "n1", "0", "pod=\"train-0\"");
  const Value r = with_jobs(series(kTensor, labels, 15, times(4, "0.5")),
                            "job,hosts,start,end\ntrain-0,n1,2026-11-29T09:00:00Z,2026-11-29T10:00:15Z\n"
                            "train-0,n1,2026-11-29T10:00:15Z,\n");
  EXPECT_NEAR(number(job(r, "train-0"), "gpu_hours_allocated"), 60.0 / 3600, 1e-12);
}

TEST(ReportJobs, the_next_job_of_the_file_gets_the_time_after_the_end) {
  const std::string labels = h100("GPU-a", "n1", "0", "hpc_job=\"7\"");
  const Value r = with_jobs(series(kTensor, labels, 15, times(4, "0.5")),
                            "job,hosts,start,end\n7,n1,,2026-11-29T10:00:30Z\n8,n1,2026-11-29T10:00:30Z,\n");
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_allocated"), 30.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "8"), "gpu_hours_allocated"), 30.0 / 3600, 1e-12);
}

TEST(ReportJobs, a_gpu_that_is_held_and_never_scraped_is_unmeasured_and_counts) {
  const Value r = with_jobs(bare_host(), R"([{"job": 7, "hosts": ["n1"], "gpus": [0, 1, 2, 3]},
                                             {"job": 8, "gpus": ["GPU-z"], "hosts": ["n5"]}])");
  EXPECT_EQ(number(r, "fleet.gpu_count"), 5);
  EXPECT_EQ(number(job(r, "7"), "gpu_count"), 4);
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_allocated"), 240.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_unmeasured"), 120.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_lost"), 60.0 / 3600, 1e-12);
  EXPECT_EQ(text(job(r, "8"), "ofu_ratio"), "null");
  EXPECT_EQ(text(gpu(r, "GPU-z"), "absent_reason"), "not_seen");
  EXPECT_EQ(quality(r, "not_seen"), 3);
}

TEST(ReportJobs, a_gpu_that_is_held_and_idle_is_lost_time) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = with_jobs(series(kTensor, labels, 15, times(4, "0")) + series(kClock, labels, 15, times(4, "345")),
                            "job,hosts,gpus\n7,n1,0\n");
  EXPECT_EQ(number(job(r, "7"), "ofu_ratio"), 0);
  EXPECT_NEAR(number(job(r, "7"), "gpu_hours_lost"), 1.0 / 60, 1e-12);
  EXPECT_EQ(number(job(r, "7"), "gpu_hours_unmeasured"), 0);
}

TEST(ReportJobs, a_gpu_that_vanishes_stays_in_the_fleet_as_unmeasured) {
  const std::string a = h100("GPU-a", "n1", "0"), b = h100("GPU-b", "n1", "1");
  const Value r = report(series(kTensor, a, 15, times(8, "0.5")) + series(kClock, a, 15, times(8, "1830")) +
                         series(kTensor, b, 15, {"0.5", "0.5"}) + series(kClock, b, 15, times(2, "1830")));
  EXPECT_EQ(number(r, "fleet.gpu_count"), 2);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 240.0 / 3600, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_unmeasured"), 90.0 / 3600, 1e-12);
}

TEST(ReportJobs, a_job_outside_the_window_is_not_in_the_report) {
  const Value r = with_jobs(bare_host(), "job,hosts,gpus,start,end\n7,n1,9,,2026-11-29T09:59:00Z\n"
                                         "8,n1,9,2026-11-29T10:05:00Z,\n");
  EXPECT_EQ(number(r, "fleet.gpu_count"), 2);
  EXPECT_EQ(count(r, "groups"), 1U);
}

TEST(ReportJobs, an_instant_is_attributed_to_the_job_that_runs_then) {
  const std::string scrape = sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") + sample(kClock, h100("GPU-a", "n1", "0"), "1830");
  const Value r = with_jobs(scrape, "job,hosts\n7,n1\n");
  EXPECT_EQ(text(r, "groups.0.key.job"), "7");
  EXPECT_EQ(text(r, "groups.0.gpu_hours_allocated"), "null");
  EXPECT_EQ(number(r, "groups.0.ofu_ratio"), 0.5);
}

}  // namespace
}  // namespace flopsight::app
