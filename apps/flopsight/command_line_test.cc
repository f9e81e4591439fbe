#include <gtest/gtest.h>

#include <algorithm>

#include "test_support.h"

namespace flopsight::app {
namespace {

using test::Answer;
using test::run_program;

using Words = std::vector<std::string>;

void expect_one_plain_line(const Answer& answer, const std::string& command) {
  EXPECT_EQ(answer.exit_code, 2) << command;
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << command << ": " << answer.err;
  EXPECT_TRUE(answer.err.starts_with("flopsight " + command + ": ")) << answer.err;
  EXPECT_EQ(answer.err.find('\x1b'), std::string::npos) << command;
  EXPECT_EQ(answer.out, "") << command;
}

TEST(CommandLine, a_name_with_escape_codes_and_newlines_is_one_line_of_plain_text_in_every_command) {
  const std::string evil = "/nowhere/\x1b[31mred\nsecond\rline\x7f";
  const Words commands[] = {
      {"report", "--file", evil},
      {"waste", "--file", evil},
      {"simulate", "--scenario", evil, "--out", "/nowhere/x"},
      {"serve", "--config", evil},
      {"check-config", evil},
      {"import", "--file", evil, "--store", "/nowhere/x"},
      {"logs", evil},
      {"jobs", "import", "--file", evil},
      {"flops", "--config", evil},
      {"audit", "--config", evil, "--mfu", "0.4"},
      {"gemm", "--config", evil, "--gpu", "h100", "--tokens", "8", "--precision", "bf16"},
      {"gemm", "--trace", evil},
      {"agent", "--nvml-library", evil},
      {"tune", "train", "--config", evil, "--gpu", "h100", "--gpus", "8", "--seq-len", "64", "--global-batch", "8"},
      {"tune", "serve", "--config", evil, "--gpu", "h100", "--gpus", "1", "--input-tokens", "64", "--output-tokens", "8"},
      {"tune", "train", "--config", "x", "--gpu", evil, "--gpus", "8", "--seq-len", "64", "--global-batch", "8"},
      {"tune", "verify", "--record", evil, "--list"},
      {"validate", "--simulated", "--gpu", evil},
      {"rules", "--gpu-catalog", evil, "--out", "/nowhere/x"},
      {"findings", "list", "--store", evil},
      {"notify", "test", "--config", evil},
      {"docs", evil},
      {"report", "--format", evil, "--file", "x"},
      {"report", "--step", evil, "--file", "x"},
      {"report", "--" + evil},
      {"gemm", "--top", evil},
  };
  for (const Words& command : commands) expect_one_plain_line(run_program(command), command.front());
}

TEST(CommandLine, every_number_is_finite_and_is_shown_as_it_was_typed) {
  const Words train = {"tune", "train", "--config", "x", "--gpu", "h100", "--gpus", "8", "--seq-len", "64", "--global-batch", "8"};
  const Words serve = {"tune", "serve", "--config", "x", "--gpu", "h100", "--gpus", "8", "--input-tokens", "64", "--output-tokens", "8"};
  const Words verify = {"tune", "verify", "--record", "/nowhere/r", "--change", "x", "--before-tokens-per-second", "1", "--after-tokens-per-second", "1"};
  const Words audit = {"audit", "--config", "x"};
  const std::pair<Words, std::string> options[] = {{train, "--node-gb-per-second"}, {train, "--network-gb-per-second"}, {train, "--usd-per-gpu-hour"}, {serve, "--usd-per-gpu-hour"},
                                                   {serve, "--prefix-hit-ratio"}, {serve, "--acceptance"}, {serve, "--draft-cost"}, {verify, "--predicted-gain"},
                                                   {audit, "--tflops-per-gpu"}, {audit, "--step-seconds"}, {audit, "--padding-ratio"}, {audit, "--capacity-factor"}};
  for (const auto& [command, option] : options) {
    for (const std::string value : {"nan", "NaN", "-nan", "inf", "-Infinity", "1e999", "0x1p3", ""}) {
      Words words = command;
      words.push_back(option + "=" + value);
      const Answer answer = run_program(words);
      expect_one_plain_line(answer, command.front());
      EXPECT_NE(answer.err.find(option), std::string::npos) << answer.err;
      EXPECT_LT(answer.err.size(), 200U) << answer.err;
    }
  }
  Words negative = train;
  negative[7] = "-1";
  EXPECT_NE(run_program(negative).err.find("--gpus -1: expected a whole number"), std::string::npos) << run_program(negative).err;
  negative[7] = "99999999999999999999999";
  EXPECT_NE(run_program(negative).err.find("--gpus 99999999999999999999999: expected"), std::string::npos);
  negative[7] = "010";
  EXPECT_NE(run_program(negative).err.find("--gpus 010: expected"), std::string::npos) << "which the parser takes for eight";
}

}  // namespace
}  // namespace flopsight::app
