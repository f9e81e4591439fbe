// MIG instances, and GPUs that several jobs use at once: a GPU-hour stays one GPU-hour.
#include <gtest/gtest.h>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

// An A100 (tensor peak at 1410 MHz) with MIG; `more` adds labels.
std::string slice(const std::string& profile, const std::string& instance, const std::string& more = "") {
  return "gpu=\"0\",UUID=\"GPU-m\",modelName=\"NVIDIA A100-SXM4-40GB\",Hostname=\"n1\",GPU_I_PROFILE=\"" + profile +
         "\",GPU_I_ID=\"" + instance + "\"" + (more.empty() ? "" : "," + more);
}

TEST(ReportSharing, mig_slices_count_by_their_share_and_the_rest_is_unmeasured) {
  std::string scrape;
  const std::vector<std::pair<std::string, std::string>> slices = {
      {slice("1g.5gb", "7", "pod=\"a\""), "0.7"}, {slice("1g.5gb", "9"), "0.1"}, {slice("2g.10gb", "5", "pod=\"b\""), "0.5"}};
  for (const auto& [labels, tensor] : slices) {
    scrape += series(kTensor, labels, 15, times(4, tensor)) + series(kClock, labels, 15, times(4, "1410")) +
              series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 15, {"57585599", "58585599", "59585599", "60585599"});
  }
  const Value r = report(scrape);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1.0 / 60, 1e-9);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), (0.7 + 0.1 + 2 * 0.5) / 4, 1e-9);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 4.0 / 7, 1e-9);
  EXPECT_NEAR(number(job(r, "a"), "gpu_hours_allocated"), 1.0 / 420, 1e-9);
  EXPECT_NEAR(number(job(r, "b"), "gpu_hours_allocated"), 2.0 / 420, 1e-9);
  EXPECT_NEAR(number(job(r, "b"), "ofu_ratio"), 0.5, 1e-9);
  EXPECT_EQ(count(r, "gpus"), 3U);
  EXPECT_TRUE(assumes(r, "n/7"));
}

TEST(ReportSharing, a_clock_of_the_whole_gpu_serves_each_slice_that_lacks_one) {
  const std::string whole = "gpu=\"0\",UUID=\"GPU-m\",modelName=\"NVIDIA A100-SXM4-40GB\",Hostname=\"n1\"";
  const Value r = report(sample(kClock, whole, "705") + sample(kTemperature, whole, "60") +
                         sample(kTensor, slice("3g.20gb", "1"), "0.8") + sample(kTensor, slice("4g.20gb", "2"), "0.4"));
  EXPECT_EQ(count(r, "gpus"), 2U);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
  EXPECT_NEAR(number(r, "gpus.0.ofu_ratio"), 0.4, 1e-9);
  EXPECT_NEAR(number(r, "gpus.1.ofu_ratio"), 0.2, 1e-9);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), (3 * 0.4 + 4 * 0.2) / 7, 1e-9);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-9);
}

TEST(ReportSharing, tensor_activity_of_the_whole_gpu_is_not_given_to_its_slices) {
  const std::string whole = "gpu=\"0\",UUID=\"GPU-m\",modelName=\"NVIDIA A100-SXM4-40GB\",Hostname=\"n1\"";
  const Value r = report(sample(kTensor, whole, "0.9") + sample(kClock, whole, "1410") +
                         sample(kUtil, slice("3g.20gb", "1"), "0") + sample(kTemperature, slice("3g.20gb", "2"), "50"));
  EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null");
  EXPECT_EQ(count(r, "gpus"), 2U);
}

TEST(ReportSharing, profiles_with_compute_instances_and_suffixes_keep_their_slices) {
  for (const char* profile : {"2g.10gb", "1c.2g.10gb", "2g.20gb+me", "2g.10gb-me"}) {
    const Value r = report(sample(kTensor, slice(profile, "3"), "0.5") + sample(kClock, slice(profile, "3"), "1410"));
    EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 2.0 / 7, 1e-9) << profile;
  }
}

TEST(ReportSharing, a30_is_divided_into_four) {
  const std::string labels =
      "gpu=\"0\",UUID=\"GPU-c\",modelName=\"NVIDIA A30\",Hostname=\"n1\",GPU_I_PROFILE=\"1g.6gb\",GPU_I_ID=\"3\"";
  const Value r = report(sample(kTensor, labels, "0.5") + sample(kClock, labels, "1440"));
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 0.25, 1e-9);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-9);
}

TEST(ReportSharing, a_profile_that_cannot_be_read_is_left_unmeasured) {
  for (const char* profile : {"", "big", "9g.80gb", "0g.1gb"}) {
    const Value r = report(sample(kTensor, slice(profile, "3"), "0.5") + sample(kClock, slice(profile, "3"), "1410"));
    EXPECT_EQ(quality(r, "mig_profile_unknown"), 1) << profile;
    EXPECT_EQ(text(r, "fleet.ofu_ratio"), "null") << profile;
    EXPECT_EQ(number(r, "fleet.gpu_count"), 1) << profile;
    EXPECT_EQ(number(r, "fleet.coverage_ratio"), 0) << profile;
  }
}

TEST(ReportSharing, a_slice_exists_only_while_it_is_seen) {
  const std::string first = slice("7g.40gb", "0", "pod=\"a\""), second = slice("3g.20gb", "1", "pod=\"b\"");
  const Value r = report(series(kTensor, first, 15, {"0.5", "0.5", "-", "-"}) +
                         series(kClock, first, 15, {"1410", "1410", "-", "-"}) +
                         series(kTensor, second, 15, {"-", "-", "0.5", "0.5"}) +
                         series(kClock, second, 15, {"-", "-", "1410", "1410"}));
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1.0 / 60, 1e-9);
  EXPECT_NEAR(number(job(r, "a"), "gpu_hours_allocated"), 30.0 / 3600, 1e-9);
  EXPECT_NEAR(number(job(r, "b"), "gpu_hours_allocated"), 30.0 * 3 / 7 / 3600, 1e-9);
}

TEST(ReportSharing, pods_on_a_time_sliced_gpu_split_one_gpu_hour) {
  const auto with = [](const char* more) { return h100("GPU-a", "n1", "0", more); };
  const std::string p1 = with("pod=\"p1\",vgpu=\"0\""), p2 = with("pod=\"p2\",vgpu=\"1\"");
  const Value r = report(series(kUtil, h100("GPU-a", "n1", "0"), 15, times(4, "90")) +
                         series(kUtil, p1, 15, times(4, "60")) + series(kUtil, p2, 15, times(4, "30")) +
                         series(kTensor, p1, 15, times(4, "0.40")) + series(kTensor, p2, 15, times(4, "0.40")) +
                         series(kClock, p1, 15, times(4, "1830")) + series(kClock, p2, 15, times(4, "1830")));
  EXPECT_EQ(count(r, "gpus"), 1U);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1.0 / 60, 1e-12);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.4, 1e-12);
  for (const char* pod : {"p1", "p2"}) {
    EXPECT_NEAR(number(job(r, pod), "gpu_hours_allocated"), 0.5 / 60, 1e-12);
    EXPECT_NEAR(number(job(r, pod), "ofu_ratio"), 0.4, 1e-12);
    EXPECT_NEAR(number(job(r, pod), "ofu_ratio_low"), 0, 1e-12) << "the whole split may be wrong";
    EXPECT_NEAR(number(job(r, pod), "ofu_ratio_high"), 0.8, 1e-12);
    EXPECT_EQ(number(job(r, pod), "gpu_count"), 1);
  }
  EXPECT_NEAR(number(r, "fleet.ofu_ratio_low"), 0.4, 1e-12) << "of the GPU as a whole nothing is split";
  EXPECT_EQ(number(r, "gpus.0.shared_by"), 2);
  EXPECT_EQ(text(r, "gpus.0.job"), "null");
  EXPECT_EQ(count(r, "gpus.0.jobs"), 2U);
  EXPECT_EQ(quality(r, "shared_gpu"), 1);
  EXPECT_TRUE(assumes(r, "equal parts"));
}

TEST(ReportSharing, utilisation_by_process_adds_up_and_is_compared_as_a_sum) {
  const std::string p1 = h100("GPU-a", "n1", "0", "pod=\"p1\""), p2 = h100("GPU-a", "n1", "0", "pod=\"p2\"");
  const auto with_util = [&](const char* each) {
    return report(sample(kTensor, p1, "0") + sample(kTensor, p2, "0") + sample(kClock, p1, "1830") +
                  sample(kEngine, p1, "0") + sample(kUtil, p1, each) + sample(kUtil, p2, each));
  };
  EXPECT_EQ(quality(with_util("30"), "contradicted"), 1) << "60 % busy";
  EXPECT_EQ(quality(with_util("10"), "contradicted"), 0) << "20 % busy";
}

TEST(ReportSharing, several_slurm_jobs_on_one_gpu_are_one_gpu) {
  std::string scrape;
  for (const char* id : {"101", "102", "103"}) {
    const std::string labels = h100("GPU-a", "n1", "1", std::string("hpc_job=\"") + id + "\"");
    scrape += series(kTensor, labels, 30, {"0.40", "0.44"}) + series(kClock, labels, 30, times(2, "1830"));
  }
  const Value r = report(scrape);
  EXPECT_EQ(number(r, "fleet.gpu_count"), 1);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1.0 / 60, 1e-12);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.42, 1e-12);
  EXPECT_NEAR(number(job(r, "102"), "gpu_hours_allocated"), 1.0 / 180, 1e-12);
  EXPECT_EQ(number(r, "gpus.0.shared_by"), 3);
  EXPECT_EQ(quality(r, "duplicate"), 8);
}

TEST(ReportSharing, a_gpu_that_is_shared_for_half_the_time_is_split_for_half_the_time) {
  const std::string p1 = h100("GPU-a", "n1", "0", "pod=\"p1\""), p2 = h100("GPU-a", "n1", "0", "pod=\"p2\"");
  const Value r = report(series(kTensor, p1, 15, times(4, "0.4")) + series(kClock, p1, 15, times(4, "1830")) +
                         series(kTensor, p2, 15, {"-", "-", "0.4", "0.4"}) +
                         series(kClock, p2, 15, {"-", "-", "1830", "1830"}));
  EXPECT_NEAR(number(job(r, "p1"), "gpu_hours_allocated"), 45.0 / 3600, 1e-12);
  EXPECT_NEAR(number(job(r, "p2"), "gpu_hours_allocated"), 15.0 / 3600, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 60.0 / 3600, 1e-12);
}

TEST(ReportSharing, who_did_not_share_has_no_band_of_sharing) {
  const std::string p1 = h100("GPU-a", "n1", "0", "pod=\"p1\""), p2 = h100("GPU-a", "n1", "0", "pod=\"p2\""), p3 = h100("GPU-a", "n1", "0", "pod=\"p3\""), nobody = h100("GPU-a", "n1", "0");
  const auto part = [](const std::string& labels, std::vector<std::string> tensor, std::vector<std::string> clock) { return series(kTensor, labels, 15, tensor) + series(kClock, labels, 15, clock); };
  const std::vector<std::string> early = {"0.4", "0.4", "-", "-", "-", "-"}, late = {"-", "-", "-", "-", "0", "0"}, between = {"-", "-", "0.4", "0.4", "-", "-"};
  const std::vector<std::string> early_clock = {"1830", "1830", "-", "-", "-", "-"}, late_clock = {"-", "-", "-", "-", "1830", "1830"}, between_clock = {"-", "-", "1830", "1830", "-", "-"};
  const Value r = report(part(p1, early, early_clock) + part(p2, early, early_clock) + part(p3, between, between_clock) + part(nobody, late, late_clock));
  const auto width = [&](const std::string& name) { return number(job(r, name), "ofu_ratio_high") - number(job(r, name), "ofu_ratio_low"); };
  EXPECT_GT(width("p1"), 0.5) << "anything from nothing to all that both delivered";
  EXPECT_NEAR(width("p3"), 0, 1e-9) << "alone on it later";
  for (std::size_t i = 0; i < count(r, "groups"); ++i) {
    const std::string group = "groups." + std::to_string(i);
    if (text(r, group + ".key.job") != "null") continue;
    EXPECT_NEAR(number(r, group + ".ofu_ratio_high") - number(r, group + ".ofu_ratio_low"), 0, 1e-9) << "nobody shares with nobody";
  }
}

TEST(ReportSharing, groups_add_up_to_the_fleet_however_a_gpu_is_shared) {
  std::string scrape;
  for (const char* more : {"pod=\"p1\",namespace=\"x\"", "pod=\"p2\",namespace=\"x\"", "pod=\"p3\",namespace=\"y\""}) {
    scrape += series(kTensor, h100("GPU-a", "n1", "0", more), 15, times(4, "0.3")) +
              series(kClock, h100("GPU-a", "n1", "0", more), 15, times(4, "1830"));
  }
  for (const char* by : {"job", "namespace", "user", "team", "host", "gpu", "model"}) {
    const Value r = report(Input{{scrape}, {"--by", by}, {}});
    double allocated = 0, delivered = 0;
    for (std::size_t i = 0; i < count(r, "groups") && i < 10; ++i) {
      allocated += number(r, "groups." + std::to_string(i) + ".gpu_hours_allocated");
      delivered += number(r, "groups." + std::to_string(i) + ".gpu_hours_delivered");
    }
    EXPECT_NEAR(allocated, number(r, "fleet.gpu_hours_allocated"), 1e-12) << by;
    EXPECT_NEAR(delivered, number(r, "fleet.gpu_hours_delivered"), 1e-12) << by;
  }
}

}  // namespace
}  // namespace flopsight::app
