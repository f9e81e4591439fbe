// A fleet whose jobs come and go for weeks: what is over is forgotten, what is there is counted as if nothing were.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "jobs/test_holder.h"
#include "live/live_fleet.h"

namespace flopsight::live {
namespace {

using jobs::LabelView;
using units::Instant;

constexpr std::int64_t kStart = 1'790'000'040'000 / 60'000 * 60'000;
constexpr std::string_view kTensor = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE";

class Forgetting : public testing::Test {
 protected:
  LabelSetId bind(std::string_view uuid, std::string_view pod) {
    const LabelView labels[] = {{"UUID", uuid}, {"gpu", "0"}, {"modelName", "NVIDIA H100 80GB HBM3"}, {"pod", pod}};
    return fleet.bind(labels, "").value();
  }
  void sample(LabelSetId labels, int at_seconds, double tensor = 0.5) {
    const Instant time{kStart + at_seconds * 1000};
    ASSERT_EQ(fleet.add(labels, metric_use(kTensor), kTensor, time, tensor, time, 1), AddResult::kKept);
  }
  void close(int at_seconds, bool everything = false) {
    fleet.close(Instant{kStart + at_seconds * 1000}, [&](const ClosedCell& closed) {
      seconds[closed.holder ? fleet.holders().at(*closed.holder).job : ""] += static_cast<double>(closed.cell.allocated_microseconds()) / 1e6;
    }, everything);
  }

  samples::QualityLog quality;
  LiveOptions options;
  LiveFleet fleet{options, jobs::LabelRules::builtin(), quality};
  std::map<std::string, double> seconds;
};

TEST_F(Forgetting, a_thousand_jobs_one_after_another_need_the_room_of_a_few) {
  std::set<LabelSetId> numbers;
  for (int job = 0; job < 1000; ++job) {
    const LabelSetId labels = bind("GPU-a", "job-" + std::to_string(job));
    numbers.insert(labels);
    for (int t = 0; t < 300; t += 30) sample(labels, job * 300 + t);
    close(job * 300 + 300);
    fleet.forget_unused({});
    EXPECT_LE(fleet.label_set_count(), 3U);
    EXPECT_LE(fleet.holders().count(), 4U);
  }
  EXPECT_LE(numbers.size(), 4U);
  EXPECT_LE(fleet.holders().size(), 5U);
  close(300'000, true);
  EXPECT_EQ(seconds.size(), 1000U);
  for (const auto& [job, known] : seconds) EXPECT_NEAR(known, 300, 30) << job;
}

TEST_F(Forgetting, a_number_is_told_of_before_it_is_anothers) {
  const LabelSetId a = bind("GPU-a", "train");
  sample(a, 0);
  EXPECT_FALSE(fleet.forget_unused({}).label_sets[a]);
  EXPECT_FALSE(fleet.forget_unused({}).label_sets[a]) << "a sample came since the call before the last one";
  const LiveFleet::Forgotten gone = fleet.forget_unused({});
  EXPECT_TRUE(gone.label_sets[a]);
  EXPECT_FALSE(gone.holders[0]) << "a row that waits is of it";
  EXPECT_EQ(bind("GPU-b", "other"), a);
  EXPECT_EQ(fleet.holders().at(0).job, "train");
}

TEST_F(Forgetting, what_waits_to_be_rolled_up_keeps_its_job) {
  const LabelSetId a = bind("GPU-a", "train");
  for (int t = 0; t < 60; t += 15) sample(a, t);
  for (int i = 0; i < 5; ++i) fleet.forget_unused({});
  sample(bind("GPU-b", "other"), 0);
  close(10'000, true);
  EXPECT_NEAR(seconds["train"], 60, 1);
}

TEST_F(Forgetting, a_job_that_comes_again_is_itself_again) {
  const LabelSetId first = bind("GPU-a", "train");
  for (int t = 0; t < 60; t += 15) sample(first, t);
  close(1'000, true);
  for (int i = 0; i < 3; ++i) fleet.forget_unused({});
  for (int t = 7'200; t < 7'260; t += 15) sample(bind("GPU-a", "train"), t);
  close(20'000, true);
  EXPECT_NEAR(seconds["train"], 120, 15);
  EXPECT_EQ(seconds.size(), 1U);
}

TEST_F(Forgetting, the_sets_of_holders_that_somebody_else_keeps_stay) {
  const samples::Holder holder = jobs::holder("before");
  const HolderSetId set = fleet.holders_of({&holder, 1});
  const HolderSetId used[] = {set};
  for (int i = 0; i < 3; ++i) fleet.forget_unused(used);
  EXPECT_EQ(fleet.holders_of({&holder, 1}), set);
  for (int i = 0; i < 3; ++i) fleet.forget_unused({});
  EXPECT_EQ(fleet.holders().count(), 0U);
}

TEST_F(Forgetting, two_hundred_and_fifty_six_rounds_make_nothing_new_again) {
  const LabelSetId a = bind("GPU-a", "train");
  const LabelSetId b = bind("GPU-b", "other");
  for (int round = 0; round < 600; ++round) {
    sample(b, round * 30);
    if (round % 4 == 0) close(round * 30);
    const LiveFleet::Forgotten gone = fleet.forget_unused({});
    EXPECT_FALSE(gone.label_sets[b]);
    EXPECT_EQ(gone.label_sets[a], round == 2) << round;
  }
}

TEST(LiveLimits, of_label_sets_is_of_those_that_are_there) {
  samples::QualityLog quality;
  LiveOptions options;
  options.label_sets_max = 2;
  LiveFleet fleet(options, jobs::LabelRules::builtin(), quality);
  const auto bind = [&](std::string_view pod) {
    const LabelView labels[] = {{"UUID", "GPU-a"}, {"pod", pod}};
    return fleet.bind(labels, "");
  };
  EXPECT_TRUE(bind("a") && bind("b"));
  EXPECT_FALSE(bind("c"));
  for (int i = 0; i < 3; ++i) fleet.forget_unused({});
  EXPECT_TRUE(bind("c") && bind("d"));
  EXPECT_FALSE(bind("e"));
}

}  // namespace
}  // namespace flopsight::live
