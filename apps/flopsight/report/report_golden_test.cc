// Every capture of a real exporter, reported as JSON and as a table, byte by byte as it is in tests/golden/report.
// FLOPSIGHT_UPDATE_GOLDEN=1 rewrites the files; the difference is then read like any other change.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;

const std::string& root() {
  static const std::string path = FLOPSIGHT_SOURCE_DIR "/";
  return path;
}

// The captures, by their path under the root, in order of name.
std::vector<std::string> captures() {
  std::vector<std::string> out;
  for (const char* folder : {"amd_exporter", "dcgm_exporter", "gpu_exporters"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root() + "tests/fixtures/" + folder)) {
      // The .csv files are lists of counters, not scrapes.
      if (entry.path().extension() == ".csv") continue;
      out.push_back(std::string("tests/fixtures/") + folder + "/" + entry.path().filename().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The path of the tree is that of whoever built it.
std::string without_root(std::string text_of_report) {
  for (std::size_t found = text_of_report.find(root()); found != std::string::npos;
       found = text_of_report.find(root(), found)) {
    text_of_report.erase(found, root().size());
  }
  return text_of_report;
}

// "tests/golden/report/NAME.json": the capture's name without folders and spaces.
std::string golden_path(const std::string& capture, const std::string& extension) {
  std::string name = capture.substr(capture.rfind('/') + 1);
  name.resize(name.rfind('.'));
  std::replace(name.begin(), name.end(), ' ', '_');
  return "tests/golden/report/" + name + extension;
}

void expect_golden(const std::string& capture, const std::string& format, const std::string& extension) {
  const Answer answer = run_program({"report", "--file", root() + capture, "--format", format});
  const std::string text_of_answer =
      without_root(answer.exit_code == 0 ? answer.out : answer.err);
  const std::string path = golden_path(capture, extension);
  const char* update = std::getenv("FLOPSIGHT_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(root() + "tests/golden/report");
    std::ofstream(root() + path, std::ios::binary) << text_of_answer;
    return;
  }
  const auto expected = base::read_file(root() + path);
  ASSERT_TRUE(expected.ok()) << path << ": run once with FLOPSIGHT_UPDATE_GOLDEN=1 and read what it says";
  EXPECT_EQ(*expected, text_of_answer) << path;
}

TEST(ReportGolden, captures_as_json) {
  for (const std::string& capture : captures()) expect_golden(capture, "json", ".json");
}

TEST(ReportGolden, captures_as_tables) {
  for (const std::string& capture : captures()) expect_golden(capture, "table", ".txt");
}

// A capture that is removed or renamed takes its golden files with it.
TEST(ReportGolden, every_golden_file_has_its_capture) {
  std::vector<std::string> expected;
  for (const std::string& capture : captures()) {
    expected.push_back(golden_path(capture, ".json"));
    expected.push_back(golden_path(capture, ".txt"));
  }
  EXPECT_GE(expected.size(), 26U);
  for (const auto& entry : std::filesystem::directory_iterator(root() + "tests/golden/report")) {
    const std::string path = "tests/golden/report/" + entry.path().filename().string();
    EXPECT_NE(std::find(expected.begin(), expected.end(), path), expected.end()) << path;
  }
}

}  // namespace
}  // namespace flopsight::app
