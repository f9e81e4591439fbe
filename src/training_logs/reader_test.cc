#include "training_logs/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace flopsight::training_logs {
namespace {

std::uint64_t count(const Reported& reported, Exclusion exclusion) {
  return reported.excluded[static_cast<std::size_t>(exclusion)];
}

std::string titan(int step, double tflops, int rank = -1) {
  std::ostringstream line;
  if (rank >= 0) line << "[rank" << rank << "]:";
  line << "[titan] 2026-02-24 19:46:17,508 - root - INFO - step: " << step << "  loss:  7.6  tps: 10,050  tflops: " << tflops
       << "  mfu: " << tflops / 10 << "%\n";
  return line.str();
}

std::string whole_text() {
  std::string text = "some noise\nwith tps: of another kind\n";
  for (int step = 1; step <= 40; ++step) {
    for (int rank = 0; rank < 3; ++rank) text += titan(step, 300 + step + rank, rank);
    text += "noise without end " + std::string(static_cast<std::size_t>(step), 'x') + "\r\n";
  }
  return text;
}

TEST(LogReader, pieces_of_any_size_give_the_same_steps) {
  const std::string text = whole_text();
  const Reported whole = read_log(text);
  ASSERT_EQ(whole.steps.size(), 40U);
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    Reader reader{Options{}};
    for (std::size_t at = 0; at < text.size(); at += size) reader.feed(std::string_view(text).substr(at, size));
    const Reported pieces = reader.finish();
    ASSERT_EQ(pieces.steps.size(), whole.steps.size()) << size;
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      EXPECT_EQ(pieces.steps[i].source.offset_bytes, whole.steps[i].source.offset_bytes);
      EXPECT_EQ(pieces.steps[i].source.line, whole.steps[i].source.line);
      EXPECT_EQ(pieces.steps[i].flops_per_second_per_gpu, whole.steps[i].flops_per_second_per_gpu);
    }
    EXPECT_EQ(pieces.lines_total, whole.lines_total);
    EXPECT_EQ(pieces.bytes_total, text.size());
  }
}

TEST(LogReader, a_place_in_the_text_is_where_the_line_begins) {
  const std::string text = whole_text();
  const Reported got = read_log(text);
  for (const Step& step : got.steps) {
    EXPECT_EQ(text.substr(step.source.offset_bytes, 6), "[rank0");
    EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(step.source.offset_bytes), '\n')) + 1,
              step.source.line);
  }
}

TEST(LogReader, one_value_a_step_is_the_median_over_ranks) {
  const Reported got = read_log(titan(1, 300, 0) + titan(1, 310, 1) + titan(1, 900, 2));
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.steps[0].ranks, 3U);
  EXPECT_FALSE(got.steps[0].rank);
  EXPECT_DOUBLE_EQ(*got.steps[0].flops_per_second_per_gpu, 310e12);
}

TEST(LogReader, a_number_that_goes_back_is_another_attempt) {
  std::string text;
  for (int step = 1; step <= 10; ++step) text += titan(step, 300);
  for (int step = 5; step <= 12; ++step) text += titan(step, 300);
  const Reported got = read_log(text);
  EXPECT_EQ(got.attempts, 2U);
  EXPECT_EQ(got.steps.size(), 18U);
  EXPECT_EQ(got.steps[9].attempt, 0U);
  EXPECT_EQ(got.steps[10].attempt, 1U);
  EXPECT_EQ(got.steps[10].step, 5);
}

TEST(LogReader, a_rank_that_lags_is_no_restart) {
  std::string text;
  for (int step = 1; step <= 10; ++step) text += titan(step, 300, 0);
  for (int step = 1; step <= 10; ++step) text += titan(step, 302, 1);
  const Reported got = read_log(text);
  EXPECT_EQ(got.attempts, 1U);
  EXPECT_EQ(got.steps.size(), 10U);
  EXPECT_EQ(count(got, Exclusion::kLate), 7U);  // three steps were still open
  EXPECT_DOUBLE_EQ(*got.steps[9].flops_per_second_per_gpu, 301e12);
}

TEST(LogReader, the_start_of_an_attempt_is_left_out_while_it_is_far_from_what_follows) {
  std::string text = titan(1, 20) + titan(2, 140);
  for (int step = 3; step <= 20; ++step) text += titan(step, 300 + step);
  text += titan(21, 100);  // later is no warm-up
  const Reported got = read_log(text);
  EXPECT_EQ(count(got, Exclusion::kWarmUp), 2U);
  EXPECT_EQ(got.summary.steps_used, 19U);
  EXPECT_EQ(got.steps[0].excluded, Exclusion::kWarmUp);
  EXPECT_FALSE(got.steps[2].excluded);

  Options options;
  options.warm_up_steps = 5;
  EXPECT_EQ(count(read_log(text, options), Exclusion::kWarmUp), 5U);
  options.warm_up_steps = 0;
  EXPECT_EQ(count(read_log(text, options), Exclusion::kWarmUp), 0U);
}

TEST(LogReader, an_mfu_above_one_is_not_believed) {
  const Reported got = read_log(titan(1, 1040));
  EXPECT_EQ(count(got, Exclusion::kAbovePeak), 1U);
  EXPECT_EQ(got.summary.steps_used, 0U);
  EXPECT_DOUBLE_EQ(*got.steps[0].mfu_ratio, 1.04);  // shown, and not clamped
}

TEST(LogReader, a_rate_of_zero_and_a_rate_that_is_no_number_are_not_known) {
  const Reported got = read_log(
      "Step Time : 9.09s GPU utilization: 0.0MODEL_TFLOP/s/GPU\n"
      "iteration 1/ 5 | elapsed time per iteration (ms): 9089.0 |\n"
      "iteration 2/ 5 | elapsed time per iteration (ms): nan | throughput per GPU (TFLOP/s/GPU): 200.0 |\n");
  ASSERT_EQ(got.steps.size(), 2U);
  EXPECT_FALSE(got.steps[0].flops_per_second_per_gpu);
  EXPECT_DOUBLE_EQ(*got.steps[0].step_seconds, 9.089);
  EXPECT_FALSE(got.steps[1].step_seconds);
  EXPECT_EQ(count(got, Exclusion::kUnparsable), 1U);
}

TEST(LogReader, a_printed_peak_goes_with_the_steps_after_it) {
  const Reported got = read_log("Peak FLOPS used for computing MFU: 9.89e+14\n" + titan(1, 300));
  EXPECT_DOUBLE_EQ(*got.steps[0].peak_flops_per_second, 989e12);
  EXPECT_TRUE(got.summary.implied_peak_printed);
}

TEST(LogReader, nothing_matched_says_what_came_closest) {
  const Reported got = read_log("hello\nspeed: 312 TFLOP per s and 40 mfu\nstep: 4 was nice\nworld\n");
  EXPECT_EQ(got.lines_matched, 0U);
  EXPECT_TRUE(got.format.empty());
  EXPECT_TRUE(got.steps.empty());
  ASSERT_TRUE(got.nearest_miss);
  EXPECT_EQ(got.nearest_miss->line, 2U);
  EXPECT_NE(got.nearest_miss->why.find("'mfu'"), std::string::npos) << got.nearest_miss->why;

  const Reported closer = read_log("100 tflops\nstep: 4  tps: none yet\n");
  ASSERT_TRUE(closer.nearest_miss);
  EXPECT_EQ(closer.nearest_miss->line, 2U);
  EXPECT_EQ(closer.nearest_miss->why, "a line of torchtitan, and the figure after 'tps' cannot be used");
  EXPECT_FALSE(read_log("nothing of the kind\n").nearest_miss);
  EXPECT_FALSE(read_log("").nearest_miss);
}

TEST(LogReader, only_the_format_that_was_asked_for) {
  Options options;
  options.format = "nanogpt";
  const Reported got = read_log(titan(1, 300) + "iter 10: loss 9.1, time 301.50ms, mfu 41.25%\n", options);
  ASSERT_EQ(got.steps.size(), 1U);
  EXPECT_EQ(got.format, "nanogpt");
}

TEST(LogReader, what_is_complete_is_taken_and_the_rest_is_read_again) {
  const std::string text = whole_text();
  Reader first{Options{}};
  const std::size_t cut = text.size() / 2 + 11;
  first.feed(std::string_view(text).substr(0, cut));
  std::vector<Taken> taken = first.take();
  ASSERT_EQ(taken.size(), 1U);
  std::vector<Step> steps = std::move(taken[0].steps);
  const SourceLine at = first.resume_at();
  const std::uint64_t resume = at.offset_bytes;
  ASSERT_LT(resume, cut);
  ASSERT_FALSE(steps.empty());
  EXPECT_TRUE(first.take().empty());

  Reader second{Options{}};
  second.resume(std::string_view(text).substr(0, 100), at);
  second.feed(std::string_view(text).substr(resume));
  const Reported rest = second.finish();
  for (const Step& step : rest.steps) steps.push_back(step);
  const Reported whole = read_log(text);
  ASSERT_EQ(steps.size(), whole.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, whole.steps[i].step);
    EXPECT_EQ(steps[i].source.line, whole.steps[i].source.line);
  }
}

TEST(LogReader, a_line_is_read_up_to_its_limit) {
  // One byte less than the limit before the words, and at the limit: the line is as long as the limit, and one longer.
  const std::string tail = "step: 4 tps: 1,000 mfu: 10.00%";
  for (const std::size_t over : {std::size_t{0}, std::size_t{1}}) {
    const std::string line = std::string(Limits::line_bytes_max - tail.size() + over, ' ') + tail + "\n";
    for (const std::size_t size : {line.size(), std::size_t{1000}}) {
      Reader reader{Options{}};
      const std::string text = line + titan(5, 300);
      for (std::size_t at = 0; at < text.size(); at += size) reader.feed(std::string_view(text).substr(at, size));
      const Reported got = reader.finish();
      EXPECT_EQ(got.lines_total, 2U);
      const auto cut = std::count(got.notes.begin(), got.notes.end(), "1 lines were longer than 64 KiB and cut");
      EXPECT_EQ(static_cast<std::size_t>(cut), over) << size;
      EXPECT_EQ(got.steps.back().step, 5);
    }
  }
}

TEST(LogReader, more_steps_than_are_kept_are_thinned_evenly) {
  std::string text;
  Reader reader{Options{}};
  for (std::size_t step = 1; step <= Limits::steps_max + 2; ++step) {
    text += "iter " + std::to_string(step) + ": loss 9, time 300.00ms, mfu 40.00%\n";
    if (text.size() > 100'000) {
      reader.feed(text);
      text.clear();
    }
  }
  reader.feed(text);
  const Reported got = reader.finish();
  EXPECT_EQ(got.steps_total, Limits::steps_max + 2);
  EXPECT_GT(got.steps_dropped, 0U);
  EXPECT_EQ(got.steps.size() + got.steps_dropped, got.steps_total);
  EXPECT_LE(got.steps.size(), Limits::steps_max);
  EXPECT_DOUBLE_EQ(*got.summary.mfu_ratio, 0.4);
}

TEST(LogReader, a_document_larger_than_its_limit_is_read_as_lines) {
  std::string document = R"({"iteration-time": {"values": {"1": 2.5, "2": 2.5}}})";
  EXPECT_EQ(read_log(document).steps.size(), 2U);
  const std::string filled = document + std::string(Limits::document_bytes_max - document.size(), '\n');
  EXPECT_EQ(read_log(filled).steps.size(), 2U);
  EXPECT_EQ(read_log(filled + "\n").steps.size(), 0U);
}

TEST(LogReader, a_repeated_hour_goes_on) {
  // Clocks went back from 03:00 to 02:00 at 01:00Z on 2026-10-25 in Berlin.
  Options options;
  options.zone = *base::Zone::find("Europe/Berlin");
  const auto line = [](int step, const char* time) {
    return "[2026-10-25 " + std::string(time) + "] iteration " + std::to_string(step) + "/ 9 | elapsed time per iteration (ms): 9.0 |\n";
  };
  const Reported got = read_log(line(1, "02:50:00") + line(2, "02:10:00") + line(3, "03:10:00"), options);
  EXPECT_EQ(units::to_rfc3339(*got.steps[0].time), "2026-10-25T00:50:00Z");
  EXPECT_EQ(units::to_rfc3339(*got.steps[1].time), "2026-10-25T01:10:00Z");
  EXPECT_EQ(units::to_rfc3339(*got.steps[2].time), "2026-10-25T02:10:00Z");
}

}  // namespace
}  // namespace flopsight::training_logs
