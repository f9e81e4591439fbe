#include "schedulers/gres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopsight::schedulers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Tres, typed_entries_detail_the_untyped_one_and_are_not_added) {
  const auto gpus = gpus_of_tres("cpu=10,mem=100G,node=1,billing=10,gres/gpu=1,gres/gpu:a100=1");
  ASSERT_TRUE(gpus.ok());
  EXPECT_EQ(gpus->count, 1U);
  EXPECT_THAT(gpus->groups, ElementsAre(GpuGroup{"a100", 1, false}));
}

TEST(Tres, only_typed_entries_count_as_they_are) {
  const auto gpus = gpus_of_tres("cpu=4,gres/gpu:a100=2,gres/gpu:nvidia_h100_80gb_hbm3_1g.10gb=1");
  ASSERT_TRUE(gpus.ok());
  EXPECT_EQ(gpus->count, 3U);
  EXPECT_THAT(gpus->groups, ElementsAre(GpuGroup{"a100", 2, false},
                                        GpuGroup{"nvidia_h100_80gb_hbm3_1g.10gb", 1, true}));
}

TEST(Tres, what_the_types_leave_over_has_no_type) {
  const auto gpus = gpus_of_tres("gres/gpu=3,gres/gpu:a100=1");
  ASSERT_TRUE(gpus.ok());
  EXPECT_THAT(gpus->groups, ElementsAre(GpuGroup{"a100", 1, false}, GpuGroup{"", 2, false}));
}

TEST(Tres, types_that_add_up_to_more_are_a_contradiction_and_the_total_stands) {
  const auto gpus = gpus_of_tres("gres/gpu=1,gres/gpu:a100=1,gres/gpu:v100=1");
  ASSERT_TRUE(gpus.ok());
  EXPECT_EQ(gpus->count, 1U);
  EXPECT_TRUE(gpus->contradicts);
  EXPECT_THAT(gpus->groups, IsEmpty());
}

TEST(Tres, zero_is_zero_and_no_entry_is_unknown) {
  EXPECT_EQ(gpus_of_tres("cpu=1,gres/gpu=0")->count, 0U);
  EXPECT_EQ(gpus_of_tres("cpu=1,mem=4G")->count, std::nullopt);
  EXPECT_EQ(gpus_of_tres("gres/gpumem=40777023488,gres/gpuutil=100,gres/shard=4")->count,
            std::nullopt);
  EXPECT_EQ(gpus_of_tres("")->count, std::nullopt);
}

TEST(Tres, an_entry_that_is_cut_off_is_an_error) {
  for (const char* text : {"cpu=1,gres/gpu", "gres/gpu=", "gres/gpu=1+", "gres/gpu:a100=x"}) {
    EXPECT_FALSE(gpus_of_tres(text).ok()) << text;
  }
}

TEST(Tres, slurms_own_utilization_is_found_and_infinite_is_none) {
  EXPECT_EQ(gpu_utilization_of_tres("cpu=00:00:10,gres/gpumem=4,gres/gpuutil=187"), 187.0);
  EXPECT_EQ(gpu_utilization_of_tres("gres/gpuutil=inf"), std::nullopt);
  EXPECT_EQ(gpu_utilization_of_tres("gres/gpu=1"), std::nullopt);
}

struct GresCase {
  const char* text;
  std::optional<std::uint32_t> count;
  std::vector<std::string> indices;
};

TEST(Gres, every_form_that_slurm_prints_is_read) {
  const GresCase kCases[] = {
      {"gpu:a100:4(S:0-3)", 4, {}},
      {"gpu:a100:3(IDX:0-2)", 3, {"0", "1", "2"}},
      {"gpu:a100:3(IDX:0-1,7)", 3, {"0", "1", "7"}},
      {"gpu:titanrtx:0", 0, {}},
      {"gpu:a100_1g.5gb:0(IDX:N/A)", 0, {}},
      {"(null)", {}, {}},
      {"N/A", {}, {}},
      {"", {}, {}},
      {"gpu:2", 2, {}},
      {"gpu", 1, {}},
      {"gpu:a100", 1, {}},
      {"gpu(IDX:0-1)", 2, {"0", "1"}},
      {"gres:gpu:a100:2", 2, {}},
      {"gres/gpu:a100=2", 2, {}},
      {"gres/gpu:2", 2, {}},
      {"shard:4,gpu:h100:5(IDX:0-4),nic:1", 5, {"0", "1", "2", "3", "4"}},
      {"gpu:a100:1(IDX:3),gpu:v100:1(IDX:5)", 2, {"3", "5"}},
      {"gpu:nvidia_h100_80gb_hbm3_1g.10gb:2(IDX:0-1)", 2, {}},
      {"mps:100,license:3", {}, {}},
  };
  for (const GresCase& c : kCases) {
    const auto gpus = gpus_of_gres(c.text);
    ASSERT_TRUE(gpus.ok()) << c.text << ": " << gpus.error().message;
    EXPECT_EQ(gpus->counts.count, c.count) << c.text;
    EXPECT_EQ(gpus->indices, c.indices) << c.text;
  }
}

TEST(Gres, a_text_that_a_column_cut_off_is_an_error_and_no_smaller_number) {
  for (const char* text :
       {"gpu:a100:3(IDX:0-", "gpu:a1+", "gpu:a100:2(IDX:1-0)", "gpu:a100=", "gpu:1(IDX:x)"}) {
    EXPECT_FALSE(gpus_of_gres(text).ok()) << text;
  }
}

TEST(Gres, indices_end_at_their_limit) {
  EXPECT_EQ(gpus_of_gres("gpu:1024(IDX:0-1023)")->indices.size(), 1024U);
  EXPECT_FALSE(gpus_of_gres("gpu:1025(IDX:0-1024)").ok());
}

TEST(Gres, a_mig_type_is_recognised_by_its_profile) {
  for (const char* type : {"1g.10gb", "a100_1g.5gb", "nvidia_h100_80gb_hbm3_1g.10gb", "mig-1g.10gb",
                           "a100_mig", "7g.80gb.me"}) {
    EXPECT_TRUE(is_mig_type(type)) << type;
  }
  for (const char* type : {"", "a100", "nvidia_h100_80gb_hbm3", "rtx8000", "ag.5gb", "gb200",
                           "1g.gb", "v100-sxm2-32gb"}) {
    EXPECT_FALSE(is_mig_type(type)) << type;
  }
}

}  // namespace
}  // namespace flopsight::schedulers
