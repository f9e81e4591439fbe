#include "jobs/holder_table.h"

#include <gtest/gtest.h>

#include "jobs/test_holder.h"

namespace flopsight::jobs {
namespace {

TEST(HolderTable, keeps_only_what_is_used_and_gives_the_other_ids_anew) {
  HolderTable table;
  const samples::HolderId a = table.intern(holder("a")), b = table.intern(holder("b")), c = table.intern(holder("c"));
  table.keep_only({false, true, false});
  EXPECT_EQ(table.count(), 1U);
  EXPECT_EQ(table.size(), 3U);
  EXPECT_TRUE(table.at(a).unallocated());
  EXPECT_EQ(table.intern(holder("b")), b);
  const samples::HolderId d = table.intern(holder("d")), e = table.intern(holder("e"));
  EXPECT_EQ(std::minmax(d, e), std::minmax(a, c));
  EXPECT_EQ(table.intern(holder("f")), 3U);
  EXPECT_EQ(table.intern(holder("d")), d);
  table.keep_only({});
  EXPECT_EQ(table.count(), 0U);
  table.for_each([](samples::HolderId, const samples::Holder&) { ADD_FAILURE(); });
}

TEST(HolderTable, holders_of_one_name_are_told_apart_as_before_when_some_of_them_are_gone) {
  HolderTable table;
  const samples::HolderId x = table.intern(holder("train", "ml", "ann")), y = table.intern(holder("train", "ml", "bob")),
                          z = table.intern(holder("train", "ml", "cat")), other = table.intern(holder("other"));
  table.keep_only({false, true, true, true});
  EXPECT_EQ(table.intern(holder("train", "ml", "cat")), z);
  EXPECT_EQ(table.intern(holder("train")), y) << "the first of the name that contradicts nothing";
  EXPECT_EQ(table.intern(holder("train", "ml", "ann")), x) << "an id that was free";
  EXPECT_EQ(table.at(x).user, "ann");
  EXPECT_EQ(table.intern(holder("train", "ml", "dan")), 4U);
  EXPECT_EQ(table.intern(holder("other")), other);
  EXPECT_TRUE(table.has("ml", "train") && table.has("", "other"));
  EXPECT_FALSE(table.has("", "train") || table.has("ml", "other"));
  table.keep_only({true, false, false, false, true});
  EXPECT_FALSE(table.has("", "other"));
  EXPECT_EQ(table.intern(holder("train")), x);
}

}  // namespace
}  // namespace flopsight::jobs
