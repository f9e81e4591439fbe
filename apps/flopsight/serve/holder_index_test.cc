#include "serve/holder_index.h"

#include <gtest/gtest.h>

#include <memory>

namespace flopsight::app {
namespace {

using analysis::GroupBy;
using jobs::Grouping;

samples::Holder pod(std::string name, std::string user = "") { return {std::move(name), "research", "", std::move(user), "", "pod"}; }

TEST(HolderIndex, a_job_keeps_its_number_from_one_question_to_the_next) {
  HolderIndex index;
  index.begin({1, 0, nullptr});
  const auto first = index.of(7, pod("a"), {});
  index.begin({1, 0, nullptr});
  EXPECT_EQ(index.of(7, pod("not looked at"), {}), first);
  EXPECT_EQ(index.table().at(first).job, "a");
}

TEST(HolderIndex, other_names_owners_or_rules_begin_anew) {
  const auto grouping = std::make_shared<const Grouping>(Grouping::parse({"^(.+)-[0-9]+$"}).value());
  HolderIndex index;
  for (const HolderIndex::Basis& basis : {HolderIndex::Basis{1, 0, nullptr}, {2, 0, nullptr}, {2, 1, nullptr}, {2, 1, grouping}}) {
    const std::string name = "job-" + std::to_string(basis.names_version + basis.owners_version);
    index.begin(basis);
    const samples::Holder& found = index.table().at(index.of(1, pod(name), {}));
    EXPECT_EQ(found.job, basis.grouping != nullptr ? "job" : name);
  }
}

TEST(HolderIndex, groups_follow_what_becomes_known_of_a_holder) {
  HolderIndex index;
  index.begin({1, 0, nullptr});
  const auto a = index.of(1, pod("a"), {}), b = index.of(2, pod("b", "ada"), {});
  EXPECT_EQ(index.groups().of(GroupBy::kUser, a, index.table().at(a)), analysis::GroupNumbers::kNobody);
  EXPECT_NE(index.groups().of(GroupBy::kUser, b, index.table().at(b)), analysis::GroupNumbers::kNobody);
  // Somebody else tells of the same job, and knows whose it is.
  EXPECT_EQ(index.of_told(pod("a", "ada")), a);
  EXPECT_EQ(index.groups().of(GroupBy::kUser, a, index.table().at(a)), index.groups().of(GroupBy::kUser, b, index.table().at(b)));
  EXPECT_NE(index.groups().of(GroupBy::kJob, a, index.table().at(a)), index.groups().of(GroupBy::kJob, b, index.table().at(b)));
}

TEST(HolderIndex, what_was_only_told_of_does_not_pile_up) {
  HolderIndex index;
  index.begin({1, 0, nullptr});
  for (int i = 0; i < 20'001; ++i) index.of_told(pod("told-" + std::to_string(i)));
  index.begin({1, 0, nullptr});
  EXPECT_EQ(index.table().size(), 0U);
}

TEST(HolderIndex, jobs_of_a_large_question_stay_for_the_next_and_go_once_only_small_ones_are_asked) {
  HolderIndex index;
  constexpr store::JobId kJobs = 50'000;
  const auto ask = [&](store::JobId jobs) {
    index.begin({1, 0, nullptr});
    for (store::JobId job = 1; job <= jobs; ++job) {
      if (!index.known(job)) index.of(job, pod("job-" + std::to_string(job)), {});
    }
  };
  ask(kJobs);
  for (int i = 0; i < 5; ++i) ask(10);
  EXPECT_EQ(index.table().size(), kJobs);
  for (int i = 0; i < 20; ++i) ask(10);
  EXPECT_EQ(index.table().size(), 10U);
  EXPECT_EQ(index.table().at(*index.known(7)).job, "job-7");
}

}  // namespace
}  // namespace flopsight::app
