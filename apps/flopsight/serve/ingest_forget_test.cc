// A service that runs for long: jobs, pods and targets that are over cost nothing, and what is counted stays what it was.
#include <gtest/gtest.h>

#include "serve/ingest.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using test::after;
using test::kClock;
using test::kTensor;
using test::Totals;

class RunningForLong : public testing::Test, public test::IngestHarness {
 protected:
  static constexpr int kHours = 12;

  // Each hour another job on two GPUs that are written, and another pod on one that is scraped, from another target.
  void hour(int number) {
    const std::string n = std::to_string(number);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int from = number * 3600 + quarter * 900;
      run("job-" + n, {0, 1}, from, from + 900);
      for (int t = from; t < from + 900; t += 30) {
        const std::string labels = R"(gpu="2",UUID="GPU-2",modelName="NVIDIA H100 80GB HBM3",exported_pod="pod-)" + n + "\"";
        const std::string text = test::sample(kTensor, labels, "0.5") + test::sample(kClock, labels, "1500");
        ASSERT_TRUE(ingest_->scrape("http://10.0.0." + n + ":9400/metrics", {}, text, "text/plain", after(t)).ok());
      }
      flush();
    }
  }
};

TEST_F(RunningForLong, label_sets_and_jobs_are_as_many_as_there_are_now) {
  for (int number = 0; number < kHours; ++number) {
    hour(number);
    EXPECT_LE(ingest_->health().label_sets, 3U * 3U) << number;
  }
  int jobs = 0;
  ingest_->for_latest(after(0), [](const auto&, const auto&) {}, [&](const samples::Holder& holder, const LatestJob&) {
    EXPECT_FALSE(holder.unallocated());
    ++jobs;
  });
  EXPECT_LE(jobs, 2 * 4);
  flush(true);
  for (int number = 0; number < kHours; ++number) {
    EXPECT_NEAR(hours("job-" + std::to_string(number)), 2.0, 0.01) << number;
    EXPECT_NEAR(hours("pod-" + std::to_string(number)), 1.0, 0.01) << number;
  }
}

TEST_F(RunningForLong, limits_that_hold_for_what_is_there_are_never_reached_by_what_was) {
  base_.live.label_sets_max = 12;
  base_.live.holders_max = 8;
  fresh("small");
  for (int number = 0; number < kHours; ++number) hour(number);
  EXPECT_EQ(ingest_->counters().samples_over_limit, 0U);
  flush(true);
  const Totals small = totals();
  base_.live.label_sets_max = 1'000;
  base_.live.holders_max = 1'000;
  fresh("large");
  for (int number = 0; number < kHours; ++number) hour(number);
  flush(true);
  EXPECT_EQ(small, totals());
}

TEST_F(RunningForLong, a_restart_between_changes_nothing) {
  for (int number = 0; number < 6; ++number) hour(number);
  flush(true);
  const Totals whole = totals();
  fresh("restarted");
  for (int number = 0; number < 6; ++number) {
    hour(number);
    open();
  }
  flush(true);
  EXPECT_EQ(whole, totals());
}

}  // namespace
}  // namespace flopsight::app
