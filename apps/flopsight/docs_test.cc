#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

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
  for (const char* page : {"metrics", "attribution", "gpus", "configuration"}) {
    const std::string path = std::string(FLOPSIGHT_SOURCE_DIR "/docs/") + page + ".md";
    const std::string text = printed(page);
    if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    const auto stored = base::read_file(path);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(*stored, text) << page;
  }
}

// What the README shows is what the program prints.
TEST(Docs, the_readmes_outputs_are_the_programs) {
  const std::string root = FLOPSIGHT_SOURCE_DIR "/";
  const auto readme = base::read_file(root + "README.md");
  ASSERT_TRUE(readme.ok()) << readme.error().message;
  const std::vector<std::vector<std::string>> commands = {
      {"flopsight", "report", "--file", root + "examples/h100-kubernetes.prom"},
      {"flopsight", "report", "--file", root + "examples/simulated-h100-hour.prom.gz", "--prices",
       root + "examples/prices.csv"}};
  for (const auto& command : commands) {
    std::vector<const char*> argv;
    for (const std::string& word : command) argv.push_back(word.c_str());
    std::ostringstream out, err;
    const Env env{out, err, [] { return units::Instant{}; }};
    ASSERT_EQ(run(static_cast<int>(argv.size()), argv.data(), env), kExitDone) << err.str();
    std::string text = out.str();
    for (std::size_t at = 0; (at = text.find(root, at)) != std::string::npos;) text.erase(at, root.size());
    EXPECT_NE(readme->find(text), std::string::npos) << "the README lacks:\n" << text;
  }
}

TEST(Docs, an_unknown_page_is_one_line_and_exit_2) {
  std::ostringstream out, err;
  const Env env{out, err, [] { return units::Instant{}; }};
  const char* const argv[] = {"flopsight", "docs", "nothing"};
  EXPECT_EQ(run(3, argv, env), kExitUsage);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "flopsight docs: nothing: expected metrics, attribution, gpus or configuration\n");
}

}  // namespace
}  // namespace flopsight::app
