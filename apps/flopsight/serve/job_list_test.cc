// Filters of the list of jobs, and advice for one of them, as the API answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "serve/test_routes.h"

namespace flopsight::app {
namespace {

using test::assumes;
using test::count;
using test::LabelTexts;
using test::Routed;
using test::text;
using test::Value;
using testing::HasSubstr;

TEST_F(Routed, a_list_of_jobs_is_filtered_before_it_is_cut_into_pages) {
  const auto ids = [&](LabelTexts query) {
    std::vector<std::string> out;
    const Value answer = json("/api/v1/jobs", query);
    for (std::size_t i = 0; i < count(answer, "jobs"); ++i) out.push_back(text(answer, "jobs." + std::to_string(i) + ".job"));
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(ids({{"user", "bob"}}), ElementsAre("a-1")) << "the whole name, not bob1";
  EXPECT_THAT(ids({{"q", "BOB"}}), ElementsAre("a-1", "a-2"));
  EXPECT_THAT(ids({{"q", "a-3"}, {"limit", "1"}}), ElementsAre("a-3")) << "it is the last of the unfiltered list";
  EXPECT_THAT(ids({{"model", "H100-SXM5-80GB"}}).size(), 4);
  EXPECT_TRUE(ids({{"model", "A100-SXM4-80GB"}}).empty());
  EXPECT_TRUE(ids({{"namespace", "elsewhere"}}).empty());
  EXPECT_TRUE(ids({{"team", "none"}, {"user", "bob"}}).empty());
  const Value page = json("/api/v1/jobs", {{"q", "bob"}, {"limit", "1"}});
  EXPECT_EQ(text(page, "next_cursor"), "1");
}

TEST_F(Routed, advice_says_what_is_missing_until_all_of_it_is_told) {
  const auto missing = [&] {
    const Value answer = json("/api/v1/jobs/a-2@a/advice");
    std::string out;
    for (std::size_t i = 0; i < count(answer, "missing"); ++i) out += text(answer, "missing." + std::to_string(i)) + "\n";
    return out;
  };
  EXPECT_THAT(missing(), HasSubstr("config: "));
  const auto config = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Llama-3-8B_config.json");
  const auto tell_model = [&](const std::string& rest) { return tell("/api/v1/jobs/a-2@a/model", "{\"config\": " + *config + rest + "}"); };
  ASSERT_EQ(tell_model("").status, 200);
  EXPECT_THAT(missing(), HasSubstr("training.global_batch"));
  EXPECT_EQ(tell_model(R"(, "training": {"tp": "two"})").status, 400) << "nothing is kept that cannot be read";
  ASSERT_EQ(tell_model(R"(, "seq_len": 4096, "training": {"global_batch": 8, "tp": 3})").status, 200);
  EXPECT_THAT(missing(), HasSubstr("does not divide the 1 GPUs"));
  ASSERT_EQ(tell_model(R"(, "seq_len": 4096, "training": {"global_batch": 8, "zero": 0})").status, 200);
  EXPECT_EQ(missing(), "");
  const Value answer = json("/api/v1/jobs/a-2@a/advice");
  EXPECT_GT(count(answer, "advice"), 0U);
  EXPECT_EQ(text(answer, "settings.gpu"), "H100-SXM5-80GB");
  EXPECT_EQ(text(answer, "model_from"), "told of the job");
  EXPECT_TRUE(assumes(answer, "attention is not told"));
  EXPECT_THAT(error("/api/v1/jobs/nobody/advice"), HasSubstr("404"));
}

}  // namespace
}  // namespace flopsight::app
