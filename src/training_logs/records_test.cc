// Lines inside the records of collectors of logs, and what becomes of their order.
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {
namespace {

std::string step(int number) {
  return "step: " + std::to_string(number) + "  loss:  7.6  tps: 10,050  tflops: " + std::to_string(300 + number) + "  mfu: 30.5%";
}

std::string quoted(const std::string& text) { return base::json::dump(base::json::Value(text), 0); }

std::string time_of(const std::string& line) {
  const Reported got = read_log(line + "\n");
  if (got.steps.size() != 1) return std::to_string(got.steps.size()) + " steps";
  return got.steps[0].time ? units::to_rfc3339(*got.steps[0].time) : "no time";
}

bool notes(const Reported& got, const std::string& part) {
  for (const std::string& note : got.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Records, bars_inside_of_them_are_read_as_bars) {
  const std::string bars = "Train:  10%|#| 10/100 [00:03<00:28,  3.20it/s]\rValidation:  50%|#| 5/10 [00:00<00:00, 19.2it/s]\r";
  const std::string text = quoted(bars + bars);
  for (const std::string& line : {"{\"log\": " + text + "}", "{\"line\": " + text + "}", "{\"_msg\": " + text + "}", "{\"jsonPayload\": {\"message\": " + text + "}}",
                                  "2025-03-01T10:00:00+00:00\tkube.app\t{\"log\": " + text + "}", "  \"textPayload\": " + text + ",", "{\"body\": " + text + "}"}) {
    const Reported got = read_log(line + "\n");
    ASSERT_EQ(got.steps.size(), 1U) << line;
    EXPECT_DOUBLE_EQ(got.steps[0].step_seconds.value_or(0), 1 / 3.2) << line;
  }
}

TEST(Records, all_of_a_document_on_one_line_are_read) {
  std::string loki = "{\"status\": \"success\", \"data\": {\"resultType\": \"streams\", \"result\": [{\"stream\": {\"pod\": \"a\"}, \"values\": [";
  std::string elastic = "{\"took\": 1, \"hits\": {\"hits\": [", aws = "{\"events\": [", list = "[";
  for (int i = 1; i <= 5; ++i) {
    const std::string comma = i > 1 ? "," : "", text = quoted(step(i));
    loki += comma + "[\"172069200" + std::to_string(i) + "000000000\"," + text + "]";
    elastic += comma + "{\"_source\": {\"@timestamp\": \"2024-07-11T10:00:0" + std::to_string(i) + "Z\", \"message\": " + text + "}}";
    aws += comma + "{\"timestamp\": 172069200" + std::to_string(i) + "000, \"message\": " + text + "}";
    list += comma + "{\"textPayload\": " + text + ", \"timestamp\": \"2024-07-11T10:00:0" + std::to_string(i) + "Z\"}";
  }
  for (const std::string& document : {loki + "]}]}}", elastic + "]}}", aws + "]}", list + "]"}) {
    const Reported got = read_log(document);
    ASSERT_EQ(got.steps.size(), 5U) << document;
    ASSERT_TRUE(got.steps[4].time) << document;
    EXPECT_EQ(units::to_rfc3339(*got.steps[4].time), "2024-07-11T10:00:05Z") << document;
    EXPECT_EQ(got.attempts, 1U);
  }
}

TEST(Records, a_document_that_is_too_long_for_a_line_is_said_and_not_read) {
  std::string list = "[";
  for (int i = 1; i <= 1000; ++i) list += (i > 1 ? "," : "") + ("{\"textPayload\": " + quoted(step(i)) + "}");
  ASSERT_GT(list.size(), std::size_t{65536});
  const Reported got = read_log(list + "]\n");
  EXPECT_TRUE(got.steps.empty());
  EXPECT_TRUE(notes(got, "1 line is JSON of more than 64 KiB and not read"));
}

TEST(Records, their_times_are_those_of_the_collector) {
  EXPECT_EQ(time_of("{\"__REALTIME_TIMESTAMP\": \"1720692000000000\", \"MESSAGE\": " + quoted(step(1)) + "}"), "2024-07-11T10:00:00Z");
  EXPECT_EQ(time_of("{\"labels\": {\"pod\": \"a\"}, \"line\": " + quoted(step(1)) + ", \"timestamp\": \"2024-07-11T10:00:00.5Z\"}"), "2024-07-11T10:00:00.500Z");
  EXPECT_EQ(time_of("{\"jsonPayload\": {\"message\": " + quoted(step(1)) + "}, \"timestamp\": \"2024-07-11T10:00:00Z\"}"), "2024-07-11T10:00:00Z");
  EXPECT_EQ(time_of("{\"_time\": \"2024-07-11T10:00:00Z\", \"_msg\": " + quoted(step(1)) + "}"), "2024-07-11T10:00:00Z");
  EXPECT_EQ(time_of("{\"ts\": 1720692000.25, \"msg\": " + quoted(step(1)) + "}"), "2024-07-11T10:00:00.250Z");
  EXPECT_EQ(time_of("{\"time\": 12.5, \"msg\": " + quoted(step(1)) + "}"), "no time");
}

// As containerd cuts a line of more than 16 KiB; the other stream may be between the parts.
TEST(Records, parts_of_a_line_are_joined) {
  std::string text;
  for (int i = 1; i <= 6; ++i) {
    const std::string at = "2024-07-11T10:00:0" + std::to_string(i) + ".123456789Z", whole = step(i);
    const std::size_t cut = whole.find("30") + 1;  // in a figure
    text += at + " stdout P noise " + whole.substr(0, cut) + "\n" + at + " stderr F other\n" + at + " stdout F " + whole.substr(cut) + "\n";
  }
  for (const std::size_t size : {text.size(), std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    Reader reader{Options{}};
    for (std::size_t at = 0; at < text.size(); at += size) reader.feed(std::string_view(text).substr(at, size));
    const Reported got = reader.finish();
    ASSERT_EQ(got.steps.size(), 6U) << size;
    EXPECT_DOUBLE_EQ(*got.steps[3].flops_per_second_per_gpu, 304e12);
    EXPECT_EQ(units::to_rfc3339(*got.steps[3].time), "2024-07-11T10:00:04.123Z");
  }
  Reader reader{Options{}};
  reader.feed("2024-07-11T10:00:01Z stdout P " + step(1).substr(0, 50) + "\n");
  EXPECT_EQ(reader.resume_at().offset_bytes, 0U);
  EXPECT_TRUE(notes(reader.finish(), "the last line has no end"));
}

TEST(Records, the_newest_first_is_said) {
  std::string text;
  for (int i = 40; i >= 1; --i) text += step(i) + "\n";
  EXPECT_TRUE(notes(read_log(text), "steps run backwards")) << read_log(text).attempts;
  std::string forward;
  for (int attempt = 0; attempt < 5; ++attempt) {
    for (int i = 1; i <= 6; ++i) forward += step(attempt * 3 + i) + "\n";
  }
  EXPECT_FALSE(notes(read_log(forward), "steps run backwards"));
}

}  // namespace
}  // namespace flopsight::training_logs
