#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "run.h"

namespace flopsight::app {
namespace {

std::string printed(const char* page) {
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{}; }};
  const char* const argv[] = {"flopsight", "docs", page};
  EXPECT_EQ(run(3, argv, env), kExitDone) << err.str();
  return out.str();
}

// FLOPSIGHT_UPDATE_GOLDEN=1 rewrites the pages.
TEST(Docs, generated_pages_are_not_stale) {
  for (const char* page : {"metrics", "attribution", "gpus"}) {
    const std::string path = std::string(FLOPSIGHT_SOURCE_DIR "/docs/") + page + ".md";
    const std::string text = printed(page);
    if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    const auto stored = base::read_file(path);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(*stored, text) << page;
  }
}

TEST(Docs, an_unknown_page_is_one_line_and_exit_2) {
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{}; }};
  const char* const argv[] = {"flopsight", "docs", "nothing"};
  EXPECT_EQ(run(3, argv, env), kExitUsage);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "flopsight docs: nothing: expected metrics, attribution or gpus\n");
}

}  // namespace
}  // namespace flopsight::app
