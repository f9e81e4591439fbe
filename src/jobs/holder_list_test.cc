#include "jobs/holder_list.h"

#include <gtest/gtest.h>

#include "base/packed_name.h"
#include "jobs/test_holder.h"

namespace flopsight::jobs {
namespace {

void expect_same(const samples::Holder& a, const samples::Holder& b) {
  EXPECT_TRUE(a.same_as(b)) << a.job << " " << b.job;
  EXPECT_EQ(a.rule, b.rule);
}

TEST(HolderList, gives_back_every_field_as_it_was) {
  HolderList list;
  samples::Holder full = holder("train-0", "ml", "ann");
  full.container = "main";
  full.team = "search";
  full.rule = "exported_pod";
  samples::Holder odd = holder(std::string("a\0b", 3), std::string("\0", 1), "\1\2");
  odd.team = std::string(70'000, 'x');
  const samples::Holder all[] = {full, odd, holder(""), holder("\1begins as what is packed"), holder("GPU-12345678-1234-1234-1234-123456789abc")};
  for (const samples::Holder& one : all) list.push_back(one);
  ASSERT_EQ(list.size(), std::size(all));
  for (std::size_t i = 0; i < list.size(); ++i) {
    expect_same(list[i], all[i]);
    for (std::size_t k = 0; k < list.size(); ++k) EXPECT_EQ(list.is_of_job(i, base::packed_name(all[k].job)), i == k);
  }
}

TEST(HolderList, fields_that_meet_are_not_one) {
  HolderList list;
  list.push_back(holder("a", "bc", ""));
  list.push_back(holder("a", "b", ""));
  samples::Holder moved = holder("a", "b");
  moved.container = "c";
  list.push_back(moved);
  EXPECT_EQ(list[0].name_space, "bc");
  EXPECT_EQ(list[1].container, "");
  EXPECT_EQ(list[2].container, "c");
}

TEST(HolderList, what_is_replaced_changes_for_one_and_not_for_others_that_had_the_same_and_leaves_nothing_behind) {
  HolderList list;
  list.push_back(holder("a", "ml"));
  list.push_back(holder("b", "ml"));
  for (int i = 0; i < 5'000; ++i) list.replace(0, holder("a" + std::to_string(i), "ml", "user-" + std::to_string(i)));
  expect_same(list[0], holder("a4999", "ml", "user-4999"));
  expect_same(list[1], holder("b", "ml"));
  list.push_back(holder("c", "ml", "user-4999"));
  expect_same(list[2], holder("c", "ml", "user-4999"));
}

}  // namespace
}  // namespace flopsight::jobs
