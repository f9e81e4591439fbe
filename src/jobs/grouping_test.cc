#include "jobs/grouping.h"

#include <gtest/gtest.h>

namespace flopsight::jobs {
namespace {

samples::Holder pod(const std::string& name) {
  return {name, "ml", "main", "ada", "", "exported_pod"};
}

Grouping::OwnerOf owners_of(std::string pod_name, Owner owner) {
  return [=](const std::string& name_space, const std::string& name) -> std::optional<Owner> {
    return name_space == "ml" && name == pod_name ? std::optional(owner) : std::nullopt;
  };
}

TEST(Grouping, pods_of_one_owner_are_one_job) {
  const auto owners = owners_of("llama-worker-3", {"PyTorchJob", "llama"});
  const samples::Holder group = Grouping().group_of(pod("llama-worker-3"), owners);
  EXPECT_EQ(group.job, "llama");
  EXPECT_EQ(group.name_space, "ml");
  EXPECT_EQ(group.container, "");
  EXPECT_EQ(group.user, "ada");
  EXPECT_EQ(group.rule, "exported_pod, owner PyTorchJob");
  EXPECT_TRUE(Grouping().group_of(pod("other"), owners).same_as(pod("other")));
  EXPECT_TRUE(Grouping().group_of(pod("llama-worker-3"), {}).same_as(pod("llama-worker-3")));
}

TEST(Grouping, patterns_come_before_owners_and_the_first_wins) {
  const auto owners = owners_of("llama-worker-3", {"PyTorchJob", "llama"});
  const auto grouping =
      Grouping::parse({"^nothing$", "^(?<name>.+)-(?:worker|master)-[0-9]+$", "^(l)"});
  ASSERT_TRUE(grouping.ok()) << grouping.error().message;
  EXPECT_EQ(grouping->group_of(pod("mist-worker-12"), owners).job, "mist");
  EXPECT_EQ(grouping->group_of(pod("llama-worker-3"), owners).rule,
            "exported_pod, pattern ^(?<name>.+)-(?:worker|master)-[0-9]+$");
}

TEST(Grouping, a_pattern_that_matches_nothing_of_the_name_groups_nothing) {
  const auto grouping = Grouping::parse({"^x*(y*)"});
  ASSERT_TRUE(grouping.ok());
  EXPECT_EQ(grouping->group_of(pod("train"), {}).job, "train")
      << "all jobs would become one without a name";
}

TEST(Grouping, a_pattern_without_a_capture_group_names_by_its_whole_match) {
  const auto grouping = Grouping::parse({"^llama-[0-9]+b"});
  ASSERT_TRUE(grouping.ok());
  EXPECT_EQ(grouping->group_of(pod("llama-70b-worker-3"), {}).job, "llama-70b");
}

TEST(Grouping, owners_can_be_left_out) {
  const auto owners = owners_of("llama-worker-3", {"PyTorchJob", "llama"});
  Grouping grouping;
  EXPECT_FALSE(grouping.changes_nothing());
  grouping.use_owners(false);
  EXPECT_TRUE(grouping.changes_nothing());
  EXPECT_EQ(grouping.group_of(pod("llama-worker-3"), owners).job, "llama-worker-3");
}

TEST(Grouping, nobody_stays_nobody) {
  const auto grouping = Grouping::parse({".*"});
  ASSERT_TRUE(grouping.ok());
  EXPECT_TRUE(grouping->group_of({}, {}).unallocated());
}

TEST(Grouping, says_which_pattern_is_wrong_and_has_a_limit) {
  EXPECT_EQ(Grouping::parse({"a("}).error().code, base::ErrorCode::kInvalid);
  EXPECT_TRUE(Grouping::parse(std::vector<std::string>(Grouping::kPatternsMax, "a")).ok());
  EXPECT_EQ(Grouping::parse(std::vector<std::string>(Grouping::kPatternsMax + 1, "a")).error().code,
            base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::jobs
