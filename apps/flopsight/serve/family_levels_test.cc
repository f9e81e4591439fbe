#include "serve/family_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopsight::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FamilyLevels, a_run_is_compared_with_the_others_of_its_family_also_from_text) {
  FamilyLevels levels;
  levels.keep("llama", "llama-1", 0.4);
  levels.keep("llama", "llama-2 \"x\"", 0.3);
  levels.keep("bert", "bert-1", 0.2);
  levels.keep("llama", "llama-1", 0.5);
  EXPECT_THAT(levels.others("llama", "llama-3"), ElementsAre(0.5, 0.3));
  EXPECT_THAT(levels.others("llama", "llama-1"), ElementsAre(0.3));
  EXPECT_THAT(levels.others("none", "x"), IsEmpty());
  FamilyLevels again;
  again.restore(levels.text());
  EXPECT_THAT(again.others("llama", "llama-2 \"x\""), ElementsAre(0.5));
  EXPECT_EQ(again.text(), levels.text());
}

TEST(FamilyLevels, what_cannot_be_read_is_left_out) {
  for (const char* text : {"", "{", "{}", "[1]", R"([["a", "b"]])", R"([["a", 1, 2]])", R"([["a", "b", -1]])", R"([["a", "b", "c"]])"}) {
    FamilyLevels levels;
    levels.restore(text);
    EXPECT_TRUE(levels.empty()) << text;
  }
}

TEST(FamilyLevels, the_first_runs_of_a_family_go_and_families_past_the_limit_are_left_out) {
  FamilyLevels levels;
  for (std::size_t i = 0; i <= FamilyLevels::kRunsKept; ++i) levels.keep("a", std::to_string(i), 0.1);
  EXPECT_EQ(levels.others("a", "").size(), FamilyLevels::kRunsKept);
  EXPECT_EQ(levels.others("a", "0").size(), FamilyLevels::kRunsKept) << "0 is no longer there";
  EXPECT_EQ(levels.others("a", "1").size(), FamilyLevels::kRunsKept - 1);
  for (std::size_t i = 1; i <= FamilyLevels::kFamiliesMax; ++i) levels.keep("f" + std::to_string(i), "x", 0.1);
  EXPECT_THAT(levels.others("f" + std::to_string(FamilyLevels::kFamiliesMax), ""), IsEmpty());
  EXPECT_EQ(levels.others("f1", "").size(), 1U);
}

TEST(FamilyLevels, the_text_has_no_more_than_its_limit) {
  FamilyLevels levels;
  for (int family = 0; family < 500; ++family) {
    for (std::size_t i = 0; i < FamilyLevels::kRunsKept; ++i) levels.keep("f" + std::to_string(family), std::to_string(i), 0.1);
  }
  FamilyLevels again;
  again.restore(levels.text());
  std::size_t kept = 0;
  for (int family = 0; family < 500; ++family) kept += again.others("f" + std::to_string(family), "").size();
  EXPECT_EQ(kept, FamilyLevels::kWrittenMax);
}

}  // namespace
}  // namespace flopsight::app
