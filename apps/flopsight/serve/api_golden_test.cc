// Answers of the API byte by byte as they are in tests/golden/api, which web/src/api/answers.test.ts has to accept: so the program and its
// page cannot come to mean different things by a key. FLOPSIGHT_UPDATE_GOLDEN=1 rewrites the files.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "serve/test_routes.h"

namespace flopsight::app {
namespace {

using test::LabelTexts;
using net::ServerResponse;
using test::Routed;

const LabelTexts kQuarter = {{"start", "2026-11-29T10:00:00Z"}, {"end", "2026-11-29T10:15:00Z"}};

class ApiGolden : public Routed {
 protected:
  void expect_golden(const std::string& name, const std::string& path, LabelTexts query) {
    query.insert(query.end(), kQuarter.begin(), kQuarter.end());
    const net::ServerResponse response = get(path, query);
    ASSERT_EQ(response.status, 200) << response.body;
    const std::string file = std::string(FLOPSIGHT_SOURCE_DIR) + "/tests/golden/api/" + name + ".json";
    const char* update = std::getenv("FLOPSIGHT_UPDATE_GOLDEN");
    if (update != nullptr && std::string_view(update) == "1") {
      std::filesystem::create_directories(std::string(FLOPSIGHT_SOURCE_DIR) + "/tests/golden/api");
      std::ofstream(file, std::ios::binary) << response.body;
      return;
    }
    const auto expected = base::read_file(file);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    EXPECT_EQ(response.body, *expected) << name;
  }
};

TEST_F(ApiGolden, answers_have_the_form_that_the_page_was_tested_with) {
  ASSERT_EQ(tell("/api/v1/jobs/a-1@a/mfu",
                 R"({"steps": [{"step": 1, "time": "2026-11-29T10:02:10Z", "mfu_ratio": 0.31, "tokens_per_second_per_gpu": 9000},
                               {"step": 2, "time": "2026-11-29T10:02:40Z", "mfu_ratio": 0.33},
                               {"step": 3, "time": "2026-11-29T10:07:00Z", "mfu_ratio": 0.35}]})")
                .status,
            200);
  expect_golden("fleet", "/api/v1/fleet", {{"by", "job"}, {"top", "3"}});
  expect_golden("fleet_by_model", "/api/v1/fleet", {{"by", "model"}});
  expect_golden("fleet_series", "/api/v1/fleet/series", {{"step", "5m"}});
  expect_golden("jobs", "/api/v1/jobs", {{"limit", "2"}});
  expect_golden("job", "/api/v1/jobs/a-1@a", {});
  expect_golden("phases", "/api/v1/jobs/a-1@a/phases", {});
  expect_golden("advice_missing", "/api/v1/jobs/a-1@a/advice", {});
  expect_golden("waste", "/api/v1/waste", {{"by", "user"}});
  expect_golden("series", "/api/v1/jobs/a-1@a/series", {{"step", "1m"}});
  expect_golden("gpus", "/api/v1/gpus", {});
  expect_golden("gpu_series", "/api/v1/gpus/series", {{"job", "a-1@a"}, {"step", "5m"}});
  expect_golden("gpu_series_columns", "/api/v1/gpus/series", {{"host", "n0"}, {"step", "5m"}, {"columns", "ofu_ratio,absent_reason"}});
  expect_golden("mfu", "/api/v1/mfu", {});
  expect_golden("search", "/api/v1/search", {{"q", "A-"}});
}

TEST_F(ApiGolden, advice_for_a_job_of_which_all_is_told) {
  const auto config = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--Llama-3-8B_config.json");
  ASSERT_TRUE(config.ok());
  const ServerResponse told = tell("/api/v1/jobs/a-1@a/model", "{\"config\": " + *config + R"(, "seq_len": 4096, "precision": "bf16", "recompute": "none", "training": {"global_batch": 8, "zero": 0}})");
  ASSERT_EQ(told.status, 200) << told.body;
  expect_golden("advice", "/api/v1/jobs/a-1@a/advice", {});
}

}  // namespace
}  // namespace flopsight::app
