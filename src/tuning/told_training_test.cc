#include "tuning/told_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopsight::tuning {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ToldTraining, what_is_told_becomes_settings_and_the_rest_is_said_to_be_assumed) {
  const auto told = parse_told_training(
      R"({"config": {"model_type": "x"}, "seq_len": 4096, "precision": "fp8", "recompute": "full", "lora_rank": 8,
          "training": {"global_batch": 64, "micro_batch": 2, "tp": 4, "pp": 2, "zero": 3, "overlap": ["tensor"], "etp": 2, "dispatch": "deepep", "fabric": "dgx-h100"}})");
  ASSERT_TRUE(told.ok()) << told.error().message;
  EXPECT_THAT(told->missing(), IsEmpty());
  std::vector<std::string> assumed;
  const auto settings = settings_of(*told, 32, assumed);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->layout.data, 4U) << "what tp and pp leave";
  EXPECT_EQ(settings->micro_batch, 2U);
  EXPECT_EQ(settings->zero_stage, 3);
  EXPECT_EQ(settings->precision, catalog::Precision::kFp8);
  EXPECT_EQ(settings->recompute, flops::Recompute::kFull);
  EXPECT_TRUE(settings->overlap_tensor);
  EXPECT_EQ(settings->layout.expert_tensor, 2U);
  EXPECT_EQ(settings->dispatch, Dispatch::kOnce);
  EXPECT_FALSE(settings->overlap_data);
  EXPECT_THAT(assumed, testing::Not(Contains(HasSubstr("precision"))));
}

TEST(ToldTraining, what_is_missing_is_named_and_never_assumed) {
  const auto told = parse_told_training(R"({"config": {}, "training": {"tp": 2}})");
  ASSERT_TRUE(told.ok());
  EXPECT_THAT(told->missing(), testing::ElementsAre(HasSubstr("seq_len"), HasSubstr("training.global_batch")));
}

TEST(ToldTraining, mistakes_are_told_by_key) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"training": 3})", "training: found 3, expected an object"},
      {R"({"training": {"global_batch": 1.5}})", "training.global_batch: found 1.5, expected a whole number from 1"},
      {R"({"training": {"zero": 4}})", "training.zero: found 4, expected a whole number from 0 to 3"},
      {R"({"training": {"attention": "slow"}})", "training.attention: found \"slow\", expected standard"},
      {R"({"training": {"dispatch": "post"}})", "training.dispatch: found \"post\", expected all-to-all or deepep"},
      {R"({"training": {"overlap": "data"}})", "training.overlap: found \"data\", expected a list"},
      {R"({"training": {"fabric": "string"}})", "training.fabric: found \"string\", expected dgx-1v"},
      {R"({"training": {"dp": 8}})", "\"dp\" is no key of training"},
  };
  for (const auto& [text, said] : cases) {
    const auto told = parse_told_training(text);
    ASSERT_FALSE(told.ok()) << text;
    EXPECT_THAT(told.error().message, HasSubstr(said));
  }
  std::vector<std::string> assumed;
  const auto told = parse_told_training(R"({"seq_len": 8, "training": {"global_batch": 8, "tp": 3}})");
  EXPECT_THAT(settings_of(*told, 8, assumed).error().message, HasSubstr("tp 3 x pp 1 x cp 1 does not divide the 8 GPUs"));
}

}  // namespace
}  // namespace flopsight::tuning
