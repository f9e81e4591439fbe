#include "base/regex.h"

#include <gtest/gtest.h>

namespace flopsight::base {
namespace {

TEST(Regex, gives_groups_by_name_in_both_spellings) {
  for (const char* expression : {R"((?P<name>[a-z]+)-(\d+)(x)?)", R"((?<name>[a-z]+)-(\d+)(x)?)"}) {
    const auto regex = Regex::parse(expression);
    ASSERT_TRUE(regex.ok()) << regex.error().message;
    EXPECT_EQ(regex->group("name"), 1U);
    EXPECT_FALSE(regex->group("other"));
    EXPECT_EQ(regex->group_names(), (std::vector<std::string>{"", "name", "", ""}));
    std::vector<std::optional<std::string_view>> groups;
    ASSERT_TRUE(regex->match("== train-12", groups));
    ASSERT_EQ(groups.size(), 4U);
    EXPECT_EQ(groups[0], "train-12");
    EXPECT_EQ(groups[1], "train");
    EXPECT_EQ(groups[2], "12");
    EXPECT_FALSE(groups[3]);
    EXPECT_FALSE(regex->match("train", groups));
  }
}

TEST(Regex, replaces_every_match) {
  const auto regex = Regex::parse("-([0-9]+)");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(regex->replaced("a-1-b-22", "#\\1"), "a#1-b#22");
}

TEST(Regex, says_what_is_wrong_with_an_expression) {
  const auto regex = Regex::parse("a(b");
  ASSERT_FALSE(regex.ok());
  EXPECT_EQ(regex.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(regex.error().message, "regular expression \"a(b\": missing ): a(b");
}

TEST(Regex, is_linear_where_backtracking_is_not) {
  const auto regex = Regex::parse("^(a+)+$");
  ASSERT_TRUE(regex.ok());
  EXPECT_FALSE(
      regex->found_in(std::string(100'000, 'a') + "b"));  // would not end in this world otherwise
}

TEST(Regex, has_limits) {
  EXPECT_TRUE(Regex::parse(std::string(Regex::kExpressionBytesMax, 'a')).ok());
  EXPECT_EQ(Regex::parse(std::string(Regex::kExpressionBytesMax + 1, 'a')).error().code,
            ErrorCode::kLimit);
  std::string groups;
  for (std::size_t i = 0; i < Regex::kGroupsMax; ++i) groups += "(a)";
  EXPECT_TRUE(Regex::parse(groups).ok());
  EXPECT_EQ(Regex::parse(groups + "(a)").error().code, ErrorCode::kLimit);
  EXPECT_EQ(Regex::parse("((a{100}){100}){100}").error().code,
            ErrorCode::kInvalid);  // RE2's own limit of repetitions
}

}  // namespace
}  // namespace flopsight::base
