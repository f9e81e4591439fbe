#include "serve/finding_minutes.h"

#include <gtest/gtest.h>

#include "serve/test_routes.h"

namespace flopsight::app {
namespace {

using test::after;
using test::labels_of;
using test::Message;

// Six GPUs: three of one job, two of another, one of nobody; one of the first falls silent for a while in the middle.
class Minutes : public testing::Test, public test::IngestHarness {
 protected:
  Minutes() {
    base_.live.gap_attribution_max = units::Seconds(120);  // a longer silence has no cells
    fresh("minutes");
    for (int t = 0; t < 1'800; t += 15) {
      Message message;
      for (int n = 0; n < 6; ++n) {
        if (n == 1 && t >= 600 && t < 900) continue;
        message.gpu(labels_of(n, n < 3 ? "a" : n < 5 ? "b" : ""), 0.1 * (n + 1), t);
      }
      now_ = after(t);
      EXPECT_EQ(write(message).status, 204);
    }
    flush(true);
  }
  // What was read, as text.
  std::vector<std::string> read(MinuteReader& reader, int first_minute, int last_minute) {
    AnswerSettings settings;
    settings.fleet.catalog = &catalog_;
    auto store = ingest_->store();
    const std::int64_t begin = after(0).unix_milliseconds / 60'000 * 60'000;
    const auto minutes = reader.read(*store, settings, {{begin + first_minute * 60'000}, {begin + last_minute * 60'000}});
    std::vector<std::string> lines;
    if (!minutes.ok()) return {minutes.error().message};
    const auto gpu = [&](const detect::GpuMinute& one) {
      return " " + std::string(reader.gpu_names()[one.gpu]) + "@" + reader.host_names()[one.host] + "=" + std::to_string(one.point.measured_seconds) + "/" +
             std::to_string(one.point.ofu_ratio.value_or(-1));
    };
    for (const FleetMinute& minute : *minutes) {
      std::string line = std::to_string((minute.start.unix_milliseconds - begin) / 60'000) + ":";
      for (const detect::GpuMinute& one : minute.gpus) line += gpu(one);
      for (const JobMinute& job : minute.jobs) {
        line += " | " + reader.job_id(job.job);
        for (const detect::GpuMinute& one : gpus_of(minute, job)) line += gpu(one);
      }
      lines.push_back(line);
    }
    return lines;
  }
};

TEST_F(Minutes, read_in_pieces_of_any_size_they_are_the_same_also_those_of_a_gpu_that_falls_silent) {
  MinuteReader whole(nullptr);
  const std::vector<std::string> expected = read(whole, 0, 30);
  ASSERT_EQ(expected.size(), 30U);
  EXPECT_NE(expected[12].find("GPU-00000001"), std::string::npos) << "not seen, and so told: " << expected[12];
  for (const std::size_t at_once : {1U, 2U, 4U, 5U}) {
    MinuteReader pieces(nullptr, at_once);
    EXPECT_EQ(read(pieces, 0, 30), expected) << at_once;
    MinuteReader by_and_by(nullptr, at_once);
    std::vector<std::string> lines;
    for (int minute = 0; minute < 30; minute += 3) {
      for (std::string& line : read(by_and_by, minute, minute + 3)) lines.push_back(std::move(line));
    }
    EXPECT_EQ(lines, expected) << at_once << " in several reads";
  }
  EXPECT_EQ(whole.models().size(), 1U);
  EXPECT_TRUE(whole.gpu_number(std::string(whole.gpu_names()[3])).has_value());
  EXPECT_FALSE(whole.gpu_number("GPU-nobody").has_value());
}

TEST_F(Minutes, a_job_that_is_over_is_forgotten_and_another_may_have_its_number) {
  const auto begin = [](int minute) { return units::Instant{after(0).unix_milliseconds / 60'000 * 60'000} + units::Seconds(60.0 * minute); };
  const auto nobody = [](std::uint32_t) { return false; };
  MinuteReader reader(nullptr);
  const std::vector<std::string> first = read(reader, 0, 30);
  const std::uint32_t a = reader.job_number("a@a").value();
  reader.forget(begin(29 + 25 * 60), nobody);
  EXPECT_EQ(reader.job_count(), 2U) << "not longer silent than it may be";
  reader.forget(begin(30 + 25 * 60), [&](std::uint32_t job) { return job == a; });
  EXPECT_EQ(reader.job_count(), 1U);
  EXPECT_EQ(reader.job_id(a), "a@a");
  EXPECT_FALSE(reader.job_number("b@a").has_value());
  EXPECT_FALSE(reader.gpus()[reader.gpu_number("GPU-00000003-aaaa-bbbb-cccc-000000000000").value()].has_job);
  EXPECT_TRUE(reader.gpus()[reader.gpu_number("GPU-00000000-aaaa-bbbb-cccc-000000000000").value()].has_job);
  // Jobs of other days have room in the place of those that are over.
  for (int day = 2; day < 6; ++day) {
    const int from = day * 26 * 3'600;
    const std::string job = "day-" + std::to_string(day);
    run(job, {0, 1}, from, from + 300);
    flush(true);
    const std::vector<std::string> lines = read(reader, from / 60, from / 60 + 5);
    ASSERT_FALSE(lines.empty());
    for (const std::string& line : lines) EXPECT_NE(line.find(" | " + job + "@a GPU-00000000"), std::string::npos) << line;
    reader.forget(begin(from / 60 + 5), nobody);
    EXPECT_EQ(reader.job_count(), 1U);
    const std::uint32_t number = reader.job_number(job + "@a").value();
    EXPECT_LT(number, 2U);
    const auto course = reader.course(*ingest_->store(), number, {begin(0), begin(from / 60 + 5)});
    ASSERT_TRUE(course.ok());
    EXPECT_EQ(course->size(), lines.size()) << "of this job and of none that had its number";
    EXPECT_TRUE(reader.changes(number).empty());
  }
  // One that comes back is what it was.
  EXPECT_EQ(read(reader, 0, 30), first);
}

}  // namespace
}  // namespace flopsight::app
