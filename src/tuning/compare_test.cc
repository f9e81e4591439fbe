#include "tuning/compare.h"

#include <gtest/gtest.h>

#include "tuning/gain_record.h"
#include "tuning/lengths.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using test::find;
using test::TestRun;

// As predicted, but for `idle` more of the time.
Measured measured_with_idle(const Step& step, double idle_ratio) {
  Measured m;
  const double predicted_idle = idle_seconds(step.breakdown) / step.step_seconds();
  const double left = (1 - idle_ratio) / (1 - predicted_idle);
  m.ofu_ratio = step.attainable_ofu_ratio * left;
  m.sm_idle_ratio = idle_ratio;
  m.clock_loss_ratio = 0;
  m.tensor_idle_sm_busy_ratio = 1 - *m.ofu_ratio - idle_ratio;
  return m;
}

TEST(Compare, what_runs_as_predicted_is_in_line) {
  TestRun run;
  const Step step = run.step();
  const Comparison c = compare(step, measured_with_idle(step, idle_seconds(step.breakdown) / step.step_seconds()));
  EXPECT_FALSE(c.out_of_line.has_value());
  EXPECT_NEAR(*c.step_seconds, step.step_seconds(), 1e-9);
  EXPECT_TRUE(c.is_step_implied);
  EXPECT_NEAR(c.calibration->busy_scale, 1, 1e-9);
  EXPECT_NEAR(c.calibration->seconds(step), step.step_seconds(), 1e-9);
}

TEST(Compare, idle_time_beyond_the_prediction_is_named_first) {
  TestRun run;
  const Step step = run.step();
  const Comparison c = compare(step, measured_with_idle(step, 0.4));
  EXPECT_EQ(c.out_of_line, "idle");
  EXPECT_NEAR(*c.step_seconds / step.step_seconds(), step.attainable_ofu_ratio / (step.attainable_ofu_ratio * 0.6 / (1 - idle_seconds(step.breakdown) / step.step_seconds())), 1e-9);
  EXPECT_NEAR(c.calibration->seconds(step), *c.step_seconds, 1e-9);
  EXPECT_GT(c.calibration->idle_extra_seconds, 0);
}

TEST(Compare, time_in_other_kernels_is_named) {
  TestRun run;
  Measured m;
  m.ofu_ratio = 0.2;
  m.clock_loss_ratio = 0.02;
  m.tensor_idle_sm_busy_ratio = 0.75;
  m.sm_idle_ratio = 0.03;
  EXPECT_EQ(compare(run.step(), m).out_of_line, "busy");
}

TEST(Compare, the_cause_that_is_out_of_line_is_named_where_causes_are_known) {
  TestRun run;
  const Step step = run.step();
  Measured m = measured_with_idle(step, 0.4);
  EXPECT_TRUE(compare(step, m).causes.empty()) << "none is known";
  m.waiting_ratio = 0.05;
  m.host_ratio = 0.35;
  Comparison c = compare(step, m);
  EXPECT_EQ(c.out_of_line, "idle");
  EXPECT_EQ(c.out_of_line_cause, "host");
  EXPECT_EQ(c.causes.front().part, "host");
  EXPECT_EQ(c.causes.size(), 2u) << "causes of busy time are not";
  m = measured_with_idle(step, idle_seconds(step.breakdown) / step.step_seconds());
  const double memory = step.breakdown.memory_seconds / step.step_seconds();
  m.memory_bound_ratio = memory + 0.1;
  m.other_kernels_ratio = 1 - *m.ofu_ratio - *m.sm_idle_ratio - memory - 0.1 - m.clock_loss_ratio.value_or(0);
  c = compare(step, m);
  EXPECT_FALSE(c.out_of_line) << "as much busy as predicted";
  EXPECT_EQ(c.out_of_line_cause, "memory") << "but with other kernels";
}

TEST(Compare, an_ofu_of_runs_outside_tensor_pipes_implies_no_step) {
  TestRun run;
  run.settings.precision = catalog::Precision::kFp32;
  run.settings.attention = AttentionKernel::kStandard;
  run.settings.recompute = flops::Recompute::kFull;
  EXPECT_EQ(run.step().attainable_ofu_ratio, 0);
  Measured m;
  m.ofu_ratio = 0.2;
  EXPECT_FALSE(compare(run.step(), m).step_seconds.has_value());
}

TEST(Compare, reported_tokens_are_the_measured_step) {
  TestRun run;
  const Step step = run.step();
  Measured m = measured_with_idle(step, 0.1);
  m.tokens_per_second = step.tokens_per_second / 2;
  const Comparison c = compare(step, m);
  EXPECT_NEAR(*c.step_seconds, 2 * step.step_seconds(), 1e-9);
  EXPECT_FALSE(c.is_step_implied);
}

TEST(Compare, nothing_measured_nothing_claimed) {
  TestRun run;
  const Comparison c = compare(run.step(), Measured{});
  EXPECT_FALSE(c.out_of_line.has_value());
  EXPECT_FALSE(c.step_seconds.has_value());
  EXPECT_FALSE(c.calibration.has_value());
}

TEST(Compare, gains_shrink_where_half_of_the_time_is_idle) {
  TestRun run;
  TrainCase one = run.training();
  const double before = *find(advise_training(run.steps, one), "io_aware_attention")->gain_ratio;
  one.calibration = compare(one.step, measured_with_idle(one.step, 0.5)).calibration;
  const Findings findings = advise_training(run.steps, one);
  const Advice* after = find(findings, "io_aware_attention");
  ASSERT_NE(after, nullptr);
  EXPECT_NEAR(*after->gain_ratio / before, 0.5, 0.06);
  EXPECT_LT(*after->tokens_per_second, one.step.tokens_per_second) << "of the job as it runs, not as it was predicted";
}

TEST(Record, lines_are_read_as_they_were_written) {
  GainRecord r;
  r.time = "2026-11-29T12:00:00Z";
  r.change = "recompute \"none\"";
  r.before = "a";
  r.after = "b";
  r.predicted_gain_ratio = 0.3;
  r.obtained_gain_ratio = 0.25;
  GainRecord other = r;
  other.predicted_gain_ratio.reset();
  other.obtained_gain_ratio = -0.1;
  other.by = GainBy::kOfu;
  const auto read = read_records(record_line(r) + "\n" + record_line(other)).value().records;
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].change, r.change);
  EXPECT_EQ(read[0].predicted_gain_ratio, 0.3);
  EXPECT_FALSE(read[1].predicted_gain_ratio.has_value());
  EXPECT_EQ(read[1].by, GainBy::kOfu);
}

TEST(Record, its_summary_counts_what_was_predicted) {
  GainRecord good, bad, untold;
  good.predicted_gain_ratio = 0.3;
  good.obtained_gain_ratio = 0.25;
  bad.predicted_gain_ratio = 0.1;
  bad.obtained_gain_ratio = -0.05;
  untold.obtained_gain_ratio = 2;
  const RecordSummary s = summary_of({good, bad, untold});
  EXPECT_EQ(s.verified_total, 2u);
  EXPECT_NEAR(*s.error_median_ratio, -0.1, 1e-12);
  EXPECT_NEAR(*s.error_absolute_median_ratio, 0.1, 1e-12);
  EXPECT_EQ(s.worse_total, 1u);
  EXPECT_FALSE(summary_of({}).error_median_ratio.has_value());
}

TEST(Record, mistakes_name_their_line) {
  const std::string good = record_line({"2026-11-29T12:00:00Z", "c", "a", "b", 0.1, 0.1, GainBy::kTokens});
  EXPECT_EQ(read_records("{}\n" + good).error().message, "line 1: time: expected a text");
  EXPECT_EQ(read_records(good + "{}\n" + good).value().first_unread, "line 2: time: expected a text") << "of a file that is a record, one line";
  EXPECT_EQ(read_records(good + "{}\n" + good).value().records.size(), 2u);
  EXPECT_NE(read_records("GPU,rate\n").error().message.find("line 1: "), std::string::npos) << "another file";
  EXPECT_EQ(read_records(std::string(kRecordBytesMax + 1, ' ')).error().code, base::ErrorCode::kLimit);
  EXPECT_TRUE(read_records(std::string(1000, '\n')).ok());
}

TEST(Record, a_line_that_was_cut_locks_nothing_wherever_it_was_cut) {
  const std::string good = record_line({"2026-11-29T12:00:00Z", "c", "a", "b", 0.1, 0.1, GainBy::kTokens});
  for (std::size_t bytes = 1; bytes + 1 < good.size(); ++bytes) {
    const auto kept = read_records(good + good.substr(0, bytes));
    ASSERT_TRUE(kept.ok()) << bytes;
    EXPECT_EQ(kept->records.size(), 1u);
    EXPECT_EQ(kept->unread_total, 1u) << bytes;
    EXPECT_TRUE(kept->first_unread.starts_with("line 2: ")) << kept->first_unread;
    EXPECT_FALSE(kept->ends_in_line);
    const auto after = read_records(good + good.substr(0, bytes) + "\n" + good).value();
    EXPECT_EQ(after.records.size(), 2u) << "what follows on a new line is read";
    EXPECT_TRUE(after.ends_in_line);
  }
  EXPECT_TRUE(read_records(good + good.substr(0, good.size() - 1)).value().unread_total == 0) << "only the newline is missing";
  const std::string without_gain = good.substr(0, good.find("\"obtained")) + "\"obtained_gain_ratio\":null,\"by\":\"ofu\"}\n";
  EXPECT_NE(read_records(without_gain).value().first_unread.find("obtained_gain_ratio"), std::string::npos) << "as a division by nothing was once kept";
}

TEST(Lengths, columns_in_any_order_and_mistakes_with_their_place) {
  EXPECT_EQ(read_lengths("count,tokens\n2,512\n").value().front(), (std::pair<std::uint64_t, double>(512, 2)));
  EXPECT_EQ(read_lengths("tokens,count\n1,1\nx,1\n").error().message, "line 3, column tokens: expected 1 to 134217728");
  EXPECT_EQ(read_lengths("a,b\n").error().message, "line 1: expected the columns tokens and count");
}

TEST(Lengths, a_million_rows_and_one_more) {
  std::string text = "tokens,count\n";
  for (std::size_t i = 0; i < kLengthsMax; ++i) text += "1,1\n";
  EXPECT_TRUE(read_lengths(text).ok());
  EXPECT_EQ(read_lengths(text + "1,1\n").error().code, base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::tuning
