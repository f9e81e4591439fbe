#include <gtest/gtest.h>

#include "test_support.h"
#include "wire/gzip.h"
#include "wire/zstd.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::run_program;
using test::TempFolder;

std::string log_text() {
  std::string text = "noise\n";
  for (int step = 1; step <= 12; ++step) {
    text += "[titan] 2026-02-24 19:46:17,508 - root - INFO - step: " + std::to_string(step) +
            "  loss:  7.6  tps: 10,050  tflops: 314.71  mfu: 13.99%\n";
  }
  return text;
}

TEST(Logs, a_log_and_its_compressed_forms_read_the_same) {
  const TempFolder folder;
  const std::string plain = folder.write("a.log", log_text());
  const std::string gz = folder.write("b", wire::gzip(log_text()));
  const std::string zst = folder.write("c.log", wire::zstd_compress(log_text(), 3));
  const Answer answer = run_program({"logs", plain, gz, zst, "--format", "json", "--zone", "Europe/Berlin", "--steps"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const auto parsed = base::json::parse(answer.out);
  ASSERT_TRUE(parsed.ok());
  const auto& files = *parsed->find("files")->as_array();
  ASSERT_EQ(files.size(), 3U);
  for (const auto& file : files) {
    EXPECT_EQ(*file.find("format")->as_string(), "torchtitan");
    EXPECT_EQ(*file.find("steps_used")->as_number(), 12);
    EXPECT_DOUBLE_EQ(*file.find("summary")->find("mfu_ratio")->as_number(), 0.1399);
    EXPECT_NEAR(*file.find("summary")->find("implied_peak_flops_per_second")->as_number(), 2250e12, 1e12);
    const auto& steps = *file.find("steps")->as_array();
    ASSERT_EQ(steps.size(), 12U);
    EXPECT_EQ(*steps[0].find("time")->as_string(), "2026-02-24T18:46:17.508Z");
    EXPECT_EQ(*steps[0].find("line")->as_number(), 2);
  }
}

TEST(Logs, nothing_matched_is_exit_1_and_says_what_came_closest) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", "hello\nstep: 4 mfu of the day\n");
  const Answer answer = run_program({"logs", path});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_NE(answer.err.find("nothing matched in 2 lines; nearest: line 2, it has 'step:' as lines of torchtitan have"), std::string::npos) << answer.err;
  EXPECT_NE(answer.out.find("nothing matched"), std::string::npos);
}

TEST(Logs, mistakes_are_exit_2_and_one_line) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", log_text());
  const std::string patterns = folder.write("p.yaml", "patterns: [{name: a, regex: '(?P<mfu>.)'}]");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"logs", folder.path() + "/none"}, "No such file or directory"},
      {{"logs", folder.path()}, "a folder, expected a file"},
      {{"logs", path, "--zone", "Mars"}, "no time zone 'Mars', expected a name like Europe/Berlin, UTC or +02:00"},
      {{"logs", path, "--patterns", patterns}, "line 1: no unit for the group 'mfu' under units"},
      {{"logs", path, "--format", "xml"}, "--format xml: expected table or json"},
      {{"logs", path, "--log-format", "x"}, "--log-format x: expected"},
      {{"logs", path, "--steps"}, "--steps needs --format json"},
      {{"logs"}, "file is required"},
  };
  for (const auto& [arguments, said] : cases) {
    const Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

TEST(Logs, a_compressed_log_that_is_cut_short_is_read_as_far_as_it_goes) {
  const TempFolder folder;
  std::string text = log_text();
  for (int i = 0; i < 20'000; ++i) text += "noise " + std::to_string(i * 7919 % 10007) + "\n";
  const std::string packed = wire::gzip(text);
  const Answer answer = run_program({"logs", folder.write("a.gz", std::string_view(packed).substr(0, packed.size() / 2))});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_NE(answer.out.find("read up to the damage"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("12, 12 used"), std::string::npos) << answer.out;
}

TEST(Logs, half_a_figure_at_the_end_of_a_damaged_file_is_none) {
  const TempFolder folder;
  const std::string half = "[titan] 2026-02-24 19:46:20,508 - root - INFO - step: 13  loss:  7.6  tps: 10,050  tflops: 3";
  // Behind its header a gzip stream of one stored block is the text itself, so that its end can be cut off to the byte.
  const std::string text = log_text() + half;
  const auto size = static_cast<std::uint16_t>(text.size() + 100);
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11);
  for (const int part : {size & 0xff, size >> 8, ~size & 0xff, (~size >> 8) & 0xff}) packed += static_cast<char>(part);
  const Answer answer = run_program({"logs", folder.write("a.gz", packed + text)});
  EXPECT_NE(answer.out.find("read up to the damage"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("12, 12 used"), std::string::npos) << answer.out;
  const Answer whole = run_program({"logs", folder.write("a.log", text)});
  EXPECT_NE(whole.out.find("13, 13 used"), std::string::npos) << whole.out;
}

TEST(Logs, utf16_is_said) {
  const TempFolder folder;
  const Answer answer = run_program({"logs", folder.write("a.log", std::string_view("\xFF\xFEs\0t\0", 6))});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.err.find("a.log: UTF-16, expected UTF-8"), std::string::npos) << answer.err;
}

TEST(Logs, a_format_that_somebody_names_and_no_line_has_is_said) {
  const TempFolder folder;
  const std::string titan = folder.write("titan.log", "[titan] Peak FLOPS used for computing MFU: 9.890e+14\n" + log_text());
  const Answer answer = run_program({"logs", "--log-format", "megatron", titan});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_NE(answer.err.find("nothing matched"), std::string::npos) << answer.err;
  EXPECT_EQ(run_program({"logs", titan}).exit_code, 0);
}

TEST(Logs, each_of_several_runs_has_its_own_settings) {
  const TempFolder folder;
  std::string text;
  for (const char* gpus : {"64", "256"}) {
    text += "using world size: " + std::string(gpus) + ", data-parallel size: 1\n";
    for (int step = 1; step <= 10; ++step) text += " iteration " + std::to_string(step) + "/ 100 | elapsed time per iteration (ms): 1000.0 | global batch size: 128 |\n";
  }
  const Answer answer = run_program({"logs", folder.write("a.log", text)});
  const std::size_t first = answer.out.find("world_size 64"), second = answer.out.find("megatron 2\n"), third = answer.out.find("world_size 256");
  EXPECT_TRUE(first < second && second < third && third != std::string::npos) << answer.out;
  EXPECT_EQ(answer.out.find("world_size", third + 1), std::string::npos) << answer.out;
}

}  // namespace
}  // namespace flopsight::app
