#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "new_files.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::run_program;
using test::TempFolder;

// Whatever the command: the folder of what it writes is made, its help says so, and a file in the way of a folder is one line.
TEST(NewFiles, every_command_makes_the_folders_of_what_it_writes) {
  const TempFolder folder;
  struct Case {
    std::vector<std::string> command;
    std::string option;
    std::string path;  // told
    std::string made;  // file
  };
  const std::string deep = folder.path() + "/a/b/", plain = folder.write("plain", "");
  const std::vector<Case> cases = {
      {{"rules", "prometheus", "--scrape-interval", "15s"}, "--out", "rules.yml", ""},
      {{"rules", "grafana"}, "--out", "dashboard.json", ""},
      {{"simulate", "--scenario", "steady", "--gpus", "1", "--hours", "0.01", "--quiet"}, "--out", "fleet", "/truth.json"},
      {{"validate", "--simulated", "--gpu", "NVIDIA H100 80GB HBM3", "--precision", "bf16", "--sizes", "128:256", "--unaligned", "0", "--quiet"}, "--out", "h100", "/points.csv"},
      {{"tune", "verify", "--change", "x", "--before-tokens-per-second", "1", "--after-tokens-per-second", "2"}, "--record", "gains.jsonl", ""},
  };
  for (const Case& one : cases) {
    const auto with = [&](std::vector<std::string> more) {
      std::vector<std::string> command = one.command;
      command.insert(command.end(), more.begin(), more.end());
      return run_program(command);
    };
    const Answer done = with({one.option, deep + one.path});
    EXPECT_EQ(done.exit_code, 0) << one.path << ": " << done.err;
    EXPECT_TRUE(std::filesystem::exists(deep + one.path + one.made)) << one.path;
    const Answer refused = with({one.option, plain + "/x/" + one.path});
    EXPECT_EQ(refused.exit_code, 2) << one.path;
    EXPECT_NE(refused.err.find(one.option + " " + plain + "/x"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("cannot be made a folder"), std::string::npos) << refused.err;
    const std::string help = with({"--help"}).out;
    std::string flat;  // the help breaks lines where it likes
    for (const char c : help) {
      if (c != '\n' && c != ' ') flat += c;
    }
    EXPECT_NE(flat.find("foldersthataremissingaremade"), std::string::npos) << one.path << help;
  }
}

TEST(RulesOptions, of_rules_alone_are_refused_for_the_dashboard_that_they_do_not_change) {
  for (const auto& [option, value] : {std::pair("--interval", "5m"), {"--scrape-interval", "15s"}, {"--match", "cluster=\"a\""}, {"--clock", "X900=1.83e9"}, {"--gpu", "H100-SXM5-80GB"}, {"--group-by", "cluster"}}) {
    const Answer answer = run_program({"rules", "grafana", option, value});
    EXPECT_EQ(answer.exit_code, 2) << option;
    EXPECT_EQ(answer.out, "") << option;
    EXPECT_NE(answer.err.find(std::string(option) + ": for rules prometheus only"), std::string::npos) << answer.err;
  }
  EXPECT_EQ(run_program({"rules", "grafana", "--no-alerts"}).exit_code, 2);
  EXPECT_EQ(run_program({"rules", "prometheus", "--interval", "5m", "--gpu", "H100-SXM5-80GB"}).exit_code, 0);
}

TEST(NewFiles, a_folder_is_no_file) {
  const TempFolder folder;
  for (const std::string& path : {folder.path(), folder.path() + "/new/"}) {
    const Answer answer = run_program({"rules", "grafana", "--force", "--out", path});
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.err, "flopsight rules: --out " + path + ": is a folder, expected a file\n");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/new"));
}

}  // namespace
}  // namespace flopsight::app
