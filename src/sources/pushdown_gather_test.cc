#include "sources/pushdown_gather.h"

#include <gtest/gtest.h>

#include "sources/gpu_list.h"
#include "sources/promql_parts.h"

namespace flopsight::sources {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr units::Seconds kStep{60};
constexpr units::Seconds kHold{28.5};

Plan plan() {
  Plan plan;
  plan.gpu_label = "UUID";
  plan.gpu_metrics = {"DCGM_FI_DEV_SM_CLOCK"};
  return plan;
}

Labels labels(const std::string& pod, const std::string& uid = "", const std::string& uuid = "GPU-1") {
  Labels out = {{"UUID", uuid}, {"pod", pod}, {"namespace", "x"}};
  if (!uid.empty()) out.push_back({"pod_uid", uid});
  return out;
}

struct Gathering {
  Plan plan_of_it = plan();
  PushedGather gather{plan_of_it, jobs::LabelRules::builtin()};
  jobs::HolderTable holders;

  // Steps first to last, all of them measured at an activity of a half.
  PushedGather::Sums& measured(const Labels& of, std::int64_t first, std::int64_t last) {
    PushedGather::Sums& sums = *gather.sums_of({of, {}});
    const auto steps = static_cast<std::uint64_t>(last - first + 1);
    sums.tensor_steps = sums.clock_steps = sums.measured_steps = steps;
    sums.span.first = units::Instant{first * 60'000};
    sums.span.last = units::Instant{last * 60'000};
    sums.span.tensor_ratio_sum = 0.5 * static_cast<double>(steps);
    return sums;
  }
  PushdownResult take() { return gather.take(holders, kStep, kHold); }
};

TEST(PushedGather, labels_of_one_holder_that_follow_each_other_are_one_span_and_count_a_common_step_once) {
  Gathering g;
  g.measured(labels("train", "a"), 0, 29);
  g.measured(labels("train", "b"), 29, 59);
  const PushdownResult result = g.take();
  EXPECT_TRUE(result.need_raw.empty());
  ASSERT_EQ(result.spans.size(), 1U);
  EXPECT_EQ(result.spans[0].present_steps, 60U);
  EXPECT_EQ(result.spans[0].measured_steps, 60U);
  EXPECT_NEAR(result.spans[0].tensor_ratio_sum, 30, 1e-9);
}

TEST(PushedGather, labels_of_one_holder_at_once_need_raw_samples) {
  Gathering g;
  g.measured(labels("train", "a"), 0, 59);
  g.measured(labels("train", "b"), 0, 59);
  const PushdownResult result = g.take();
  EXPECT_TRUE(result.spans.empty());
  ASSERT_EQ(result.need_raw.size(), 1U);
  EXPECT_EQ(result.need_raw.begin()->second.values, std::set<std::string>{"GPU-1"});
}

TEST(PushedGather, a_name_spelled_in_two_ways_needs_raw_samples_of_both) {
  Gathering g;
  g.measured(labels("train", "", "GPU-ab"), 0, 59);
  g.measured(labels("train", "", "GPU-AB"), 0, 59);
  const PushdownResult result = g.take();
  ASSERT_EQ(result.need_raw.size(), 1U);
  EXPECT_EQ(result.need_raw.begin()->second.values, (std::set<std::string>{"GPU-AB", "GPU-ab"}));
}

TEST(PushedGather, a_step_that_was_not_measured_needs_raw_samples) {
  for (const int what : {0, 1, 2, 3}) {
    Gathering g;
    PushedGather::Sums& sums = g.measured(labels("train"), 0, 59);
    g.gather.add_presence({{{"UUID", "GPU-1"}}, {}}, 60);
    if (what == 1) --sums.measured_steps;
    if (what == 2) --sums.tensor_steps;
    if (what == 3) g.gather.add_presence({{{"UUID", "GPU-1"}}, {}}, 1);
    EXPECT_EQ(g.take().need_raw.size(), what == 0 ? 0U : 1U) << what;
  }
}

TEST(PushedGather, a_gpu_without_a_clock_needs_raw_samples_and_one_without_activity_does_not) {
  Gathering g;
  PushedGather::Sums& sums = g.measured(labels("blind"), 0, 59);
  sums.tensor_steps = sums.measured_steps = 0;
  g.gather.add_presence({{{"UUID", "GPU-2"}}, {}}, 60);
  const PushdownResult result = g.take();
  EXPECT_EQ(result.spans.size(), 1U);
  ASSERT_EQ(result.need_raw.size(), 1U);
  EXPECT_EQ(result.need_raw.begin()->second.values, std::set<std::string>{"GPU-2"});
}

TEST(PushedGather, beside_its_instances_a_gpu_has_time_of_its_own_only_where_they_are_not) {
  for (const std::int64_t first : {0, 30}) {
    Gathering g;
    Labels instance = labels("after");
    instance.push_back({"GPU_I_ID", "1"});
    g.measured(instance, 30, 59);
    g.measured(labels("before"), first, 59);
    EXPECT_EQ(g.take().need_raw.size(), first == 30 ? 0U : 1U) << first;
  }
}

TEST(RawBatches, ask_for_each_series_once_and_keep_series_without_a_name_with_the_gpus_of_their_host) {
  GpuList list;
  list.gpus["a"] = {"n1", {{"UUID", {"GPU-a"}}, {"uuid", {"a"}}}, false};
  list.gpus["b"] = {"n2", {{"UUID", {"GPU-b"}}}, false};
  list.gpus["c"] = {"n3", {{"UUID", {"GPU-c"}}}, false};
  list.has_unnamed = true;
  list.hosts_without_names = {"n2"};
  const auto batches = raw_batches(list, plan(), "cluster=\"x\"", jobs::LabelRules::builtin(), 1);
  ASSERT_EQ(batches.size(), 3U);
  const std::string none = "=~\"" + std::string(kMaskedUuids) + "\"";
  const std::string head = "{__name__=~\"DCGM_FI_DEV_SM_CLOCK\",cluster=\"x\",";
  ASSERT_EQ(batches[0].size(), 2U);
  EXPECT_EQ(batches[0][0], head + "UUID=~\"GPU-b\"}");
  EXPECT_EQ(batches[0][1].substr(0, head.size() + none.size() + 9), head + "UUID" + none + ",uuid");
  EXPECT_EQ(batches[1], (std::vector<std::string>{head + "UUID=~\"GPU-a\"}", head + "UUID" + none + ",uuid=~\"a\"}"}));
  EXPECT_EQ(batches[2], std::vector<std::string>{head + "UUID=~\"GPU-c\"}"});
}

}  // namespace
}  // namespace flopsight::sources
