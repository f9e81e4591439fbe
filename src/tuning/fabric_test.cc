#include "tuning/fabric.h"

#include <gtest/gtest.h>

#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using units::Bytes;

// The worked figures of docs/tune.md, from 360 GB/s of bus bandwidth on NVLink 4 and 50 on PCIe 5.
TEST(Fabric, a_gigabyte_on_eight_gpus) {
  const Fabric nvlink = *find_fabric("dgx-h100"), pcie = *find_fabric("pcie-gen5");
  const double fast = all_reduce_time(nvlink, group_of(nvlink, 8, 1), Bytes(1e9), Algorithm::kRing).value;
  const double slow = all_reduce_time(pcie, group_of(pcie, 8, 1), Bytes(1e9), Algorithm::kRing).value;
  EXPECT_NEAR(fast, 4.9e-3, 0.1e-3);
  EXPECT_NEAR(slow / fast, 7.1, 0.2) << "450 against 63 GB/s, both in one direction; never 14";
}

TEST(Fabric, trees_win_for_small_messages_of_many_gpus_and_rings_for_large_ones) {
  const Fabric fabric = *find_fabric("dgx-h100");
  const Group many = group_of(fabric, 512, 1), node = group_of(fabric, 8, 1);
  EXPECT_LT(all_reduce_time(fabric, many, Bytes(1e4), Algorithm::kTree).value, all_reduce_time(fabric, many, Bytes(1e4), Algorithm::kRing).value / 3);
  EXPECT_LT(all_reduce_time(fabric, node, Bytes(1e9), Algorithm::kRing).value, all_reduce_time(fabric, node, Bytes(1e9), Algorithm::kTree).value);
}

// Eight nodes of eight: between nodes each GPU carries an eighth; 9.6 ms one after another.
TEST(Fabric, hierarchical_all_reduce_over_nodes) {
  const Fabric fabric = *find_fabric("dgx-h100");
  EXPECT_NEAR(all_reduce_time(fabric, group_of(fabric, 64, 1), Bytes(1e9), Algorithm::kHierarchical).value, 9.9e-3, 0.3e-3);
}

TEST(Fabric, the_chosen_algorithm_is_the_quickest) {
  const Fabric fabric = *find_fabric("dgx-a100");
  for (const double bytes : {1e3, 1e6, 1e9}) {
    const Group group = group_of(fabric, 128, 1);
    const Chosen chosen = all_reduce_time(fabric, group, Bytes(bytes));
    for (const Algorithm a : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) EXPECT_LE(chosen.time.value, all_reduce_time(fabric, group, Bytes(bytes), a).value);
  }
}

TEST(Fabric, a_token_goes_once_to_each_node_that_has_its_experts) {
  const Fabric fabric = *find_fabric("dgx-h100");
  const Group group = group_of(fabric, 32, 1);
  const Bytes bytes(1e9);
  const double once = dispatch_once_time(fabric, group, {bytes, 128, 8}).value, all = all_to_all_time(fabric, group, Bytes(8e9)).value;
  // Of four nodes a token with eight experts touches 3.6, of which three quarters are elsewhere: 2.7 GB and not 6 over 45 GB/s.
  EXPECT_NEAR(once, 2.73e9 / 45e9, 1e-3);
  EXPECT_GT(all, 2 * once);
  EXPECT_NEAR(dispatch_once_time(fabric, group_of(fabric, 8, 1), {bytes, 128, 1}).value, 7.0 / 8 * 1e9 / 360e9, 1e-4) << "one expert: one copy, inside the node";
  EXPECT_EQ(dispatch_once_time(fabric, group_of(fabric, 1, 1), {bytes, 128, 8}).value, 0);
}

TEST(Fabric, one_gpu_sends_nothing) {
  const Fabric fabric = *find_fabric("dgx-h100");
  const Group alone = group_of(fabric, 1, 1);
  EXPECT_EQ(gather_time(fabric, alone, Bytes(1e9)).value, 0);
  EXPECT_EQ(all_to_all_time(fabric, alone, Bytes(1e9)).value, 0);
  EXPECT_EQ(all_reduce_time(fabric, alone, Bytes(1e9)).time.value, 0);
}

TEST(Fabric, groups_that_are_far_apart_have_one_member_a_node) {
  const Fabric fabric = *find_fabric("dgx-h100");
  EXPECT_EQ(group_of(fabric, 16, 8).in_node, 1u);
  EXPECT_EQ(group_of(fabric, 16, 2).in_node, 4u);
  EXPECT_EQ(group_of(fabric, 16, 2).nodes(), 4u);
  EXPECT_GT(gather_time(fabric, group_of(fabric, 16, 8), Bytes(1e9)).value, 4 * gather_time(fabric, group_of(fabric, 16, 1), Bytes(1e9)).value);
}

TEST(Fabric, no_reference_system_no_assumption) {
  EXPECT_TRUE(reference_fabric(test::device("H100-SXM5-80GB")));
  EXPECT_FALSE(reference_fabric(test::device("L40S")));
  EXPECT_FALSE(find_fabric("ethernet"));
}

}  // namespace
}  // namespace flopsight::tuning
