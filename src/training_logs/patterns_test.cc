#include "training_logs/patterns.h"

#include <gtest/gtest.h>

#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = PatternFile::parse(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? "" : parsed.error().message;
}

Options with(std::string_view text) {
  auto parsed = PatternFile::parse(text);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  Options options;
  if (parsed.ok()) options.patterns = std::make_shared<const PatternFile>(std::move(*parsed));
  return options;
}

TEST(Patterns, a_trainer_of_one_s_own_is_read) {
  const Options options = with(R"(
patterns:
  - name: ours
    regex: '(?P<time>\S+ \S+) r(?P<rank>\d+) it (?P<step>\d+) t=(?P<step_time>[\d.]+) mfu=(?P<mfu>[\d.]+) tok=(?P<tokens>[\d,]+)'
    units: {step_time: ms, mfu: "%", tokens: ktokens/s}
    contains: mfu=
    time_format: '%d.%m.%Y %H:%M:%S.%f%z'
)");
  const Reported got = read_log("noise\n24.02.2026 19:46:17.25+0100 r7 it 12 t=250.5 mfu=41.5 tok=1,250 loss\n", options);
  EXPECT_EQ(got.format, "ours");
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].step, 12);
  EXPECT_EQ(got.steps[0].rank, 7);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 0.2505);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 0.415);
  EXPECT_DOUBLE_EQ(*got.steps[0].tokens_per_second, 1'250'000);
  EXPECT_EQ(units::to_rfc3339(*got.steps[0].time), "2026-02-24T18:46:17.250Z");
}

TEST(Patterns, known_formats_go_on_beside_it) {
  const Options options = with("patterns: [{name: a, regex: 'x(?P<mfu>[0-9]+)', units: {mfu: '%'}}]");
  EXPECT_EQ(read_log("iter 10: loss 9.1, time 301.50ms, mfu 41.25%\n", options).format, "nanogpt");
}

TEST(Patterns, a_mistake_is_one_line_that_says_what_was_expected) {
  EXPECT_EQ(error_of("patterns: [{name: a, regex: '(?P<mfu>.)'}]"),
            "line 1: no unit for the group 'mfu' under units, expected \"%\" or ratio");
  EXPECT_EQ(error_of("patterns:\n- name: a\n  regex: '(?P<step_time>.)'\n  units: {step_time: TFLOP/s}\n"),
            "line 4: 'TFLOP/s' is no unit of step_time, expected s or ms");
  EXPECT_EQ(error_of("patterns: [{name: a, regex: '(?P<speed>.)'}]"),
            "line 1: the group 'speed' is not known, expected step, rank, time, loss, mfu, flops_per_gpu, tokens_per_gpu, tokens, "
            "samples, step_time, batches or peak");
  EXPECT_NE(error_of("patterns: [{name: a, regex: '(?P<step>.'}]").find("missing )"), std::string::npos);
  EXPECT_EQ(error_of("patterns: [{name: a, regex: '(?P<mfu>.)', units: {mfu: '%', tokens: tokens/s}}]"),
            "line 1: a unit for 'tokens', which is no group of the regex");
  EXPECT_EQ(error_of("patterns: [{name: a, regexp: x}]"),
            "line 1: the key 'regexp' is not known, expected name, regex, units, contains or time_format");
  EXPECT_EQ(error_of("patterns: [{regex: '(?P<mfu>.)', units: {mfu: '%'}}]"), "line 1: a pattern without a name");
  EXPECT_EQ(error_of("patterns: [{name: a, regex: '(?P<step>.)'}]").substr(0, 42), "line 1: the regex has no group with a figu");
  EXPECT_EQ(error_of("pattern: []"), "line 1: expected a list under the key patterns");
  EXPECT_EQ(error_of(""), "line 1: expected a list under the key patterns");
}

TEST(Patterns, limits) {
  std::string text = "patterns:\n";
  for (std::size_t i = 0; i < PatternFile::patterns_max; ++i) text += "- {name: a, regex: '(?P<mfu>.)', units: {mfu: '%'}}\n";
  EXPECT_TRUE(PatternFile::parse(text).ok());
  EXPECT_EQ(error_of(text + "- {name: a, regex: '(?P<mfu>.)', units: {mfu: '%'}}\n"), "line 2: more than 100 patterns");
}

TEST(Patterns, an_expression_that_would_take_for_ever_does_not) {
  const Options options = with("patterns: [{name: a, regex: '(x+x+)+y(?P<mfu>[0-9]+)', units: {mfu: '%'}}]");
  EXPECT_EQ(read_log(std::string(60'000, 'x') + "\n", options).lines_matched, 0U);
}

TEST(Patterns, a_figure_that_is_no_number_is_counted) {
  const Options options = with("patterns: [{name: a, regex: 'mfu=(?P<mfu>\\S+)', units: {mfu: '%'}}]");
  const Reported got = read_log("mfu=4x\nmfu=nan\nmfu=40\n", options);
  EXPECT_EQ(got.excluded[static_cast<std::size_t>(Exclusion::kUnparsable)], 2U);
  EXPECT_EQ(got.summary.steps_used, 1U);
}

}  // namespace
}  // namespace flopsight::training_logs
