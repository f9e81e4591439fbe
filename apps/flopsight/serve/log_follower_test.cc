#include "serve/log_follower.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using test::TempFolder;
namespace fs = std::filesystem;

std::string lines(int from, int to) {
  std::string text;
  for (int step = from; step <= to; ++step) {
    text += "iteration " + std::to_string(step) + "/ 900 | elapsed time per iteration (ms): 5" + std::to_string(step % 10) +
            "00.0 | throughput per GPU (TFLOP/s/GPU): 300.0 |\nnoise\n";
  }
  return text;
}

void append(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary | std::ios::app) << text; }

LogSource source(const std::string& path) {
  LogSource out;
  out.path = path;
  return out;
}

// What was given, and a clock.
struct Watch {
  explicit Watch(LogFollower followed) : follower(std::move(followed)) {}
  static Watch of(const std::string& path) {
    auto follower = LogFollower::create({source(path)});
    EXPECT_TRUE(follower.ok());
    return Watch(std::move(*follower));
  }

  // Until there is nothing to read at once.
  void poll(double seconds = 1) {
    now = now + units::Seconds(seconds);
    while (follower.poll(now, [&](const FollowedSteps& got) {
      for (const auto& step : got.steps) steps.push_back(*step.step);
      job = got.job;
      format = got.format;
      settings = got.settings;
      if (got.position) position = *got.position;
    })) {
    }
  }
  void poll_until_quiet() {
    poll();
    poll(1000);
  }

  LogFollower follower;
  units::Instant now{test::kStartMilliseconds};
  std::vector<std::int64_t> steps;
  std::string job;
  std::string format;
  std::vector<std::pair<std::string, std::string>> settings;
  LogPosition position;
};

std::vector<std::int64_t> range(int from, int to) {
  std::vector<std::int64_t> out;
  for (int i = from; i <= to; ++i) out.push_back(i);
  return out;
}

TEST(LogFollower, what_is_appended_is_read_once) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 20));
  Watch watch = Watch::of(path);
  watch.poll();
  EXPECT_EQ(watch.steps, range(1, 17));  // the last three may still get lines of other ranks
  append(path, lines(21, 30));
  watch.poll();
  EXPECT_EQ(watch.steps, range(1, 27));
  watch.poll(1000);
  EXPECT_EQ(watch.steps, range(1, 30));
  watch.poll(1000);
  EXPECT_EQ(watch.steps.size(), 30U);
}

TEST(LogFollower, a_line_that_is_not_whole_waits_for_its_end) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 12) + "iteration 13/ 900 | elapsed time per iteration (ms): 51");
  Watch watch = Watch::of(path);
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 12));
  append(path, "00.0 | throughput per GPU (TFLOP/s/GPU): 300.0 |\n");
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 13));
}

TEST(LogFollower, a_file_that_appears_later_is_found) {
  const TempFolder folder;
  Watch watch = Watch::of(folder.path() + "/*.log");
  watch.poll();
  folder.write("late.log", lines(1, 10));
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 10));
}

TEST(LogFollower, a_renamed_file_is_read_to_its_end_and_the_new_one_from_its_start) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 10));
  Watch watch = Watch::of(folder.path() + "/a.log*");  // matches the renamed one as well
  watch.poll();
  append(path, lines(11, 15));
  fs::rename(path, path + ".1");
  watch.poll();  // nothing under the name
  append(path + ".1", lines(16, 16));
  folder.write("a.log", lines(17, 26));
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 26));
  ASSERT_FALSE(watch.follower.files().empty());
  EXPECT_EQ(watch.follower.files()[0].rotations_total, 1U);
}

TEST(LogFollower, a_file_that_was_cut_is_read_from_its_start) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 10));
  Watch watch = Watch::of(path);
  watch.poll();
  std::ofstream(path, std::ios::trunc) << lines(11, 14);
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 14));
}

TEST(LogFollower, a_file_that_was_cut_and_grew_past_its_old_size_is_noticed) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 10));
  Watch watch = Watch::of(path);
  watch.poll();
  std::ofstream(path, std::ios::trunc) << lines(11, 60);
  watch.poll_until_quiet();
  EXPECT_EQ(watch.follower.files()[0].rotations_total, 1U);
  ASSERT_GE(watch.steps.size(), 10U);
  // The bytes behind the old end may have been read before the head was looked at; every step comes all the same.
  for (const std::int64_t step : range(11, 60)) EXPECT_NE(std::find(watch.steps.begin(), watch.steps.end(), step), watch.steps.end()) << step;
}

TEST(LogFollower, after_a_restart_it_goes_on_where_it_was) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", "  seq_length ............ 4096\n" + lines(1, 40));
  Watch before = Watch::of(path);
  before.poll();
  EXPECT_EQ(before.steps, range(1, 37));
  append(path, lines(41, 50));

  Watch after = Watch::of(path);
  after.follower.restore(before.position);
  after.poll_until_quiet();
  EXPECT_EQ(after.steps, range(38, 50));
  EXPECT_LT(after.follower.files()[0].bytes_read_total, 3000U);
  EXPECT_EQ(after.position.at.line, 2U * 50 + 2);
  EXPECT_EQ(after.format, "megatron");
  ASSERT_EQ(after.settings.size(), 1U);  // from the head, which was looked at again
  EXPECT_EQ(after.settings[0].second, "4096");
}

TEST(LogFollower, a_position_in_another_file_of_that_name_is_not_used) {
  const TempFolder folder;
  const std::string path = folder.write("a.log", lines(1, 40));
  Watch before = Watch::of(path);
  before.poll();
  fs::remove(path);
  folder.write("a.log", lines(100, 150));
  Watch after = Watch::of(path);
  after.follower.restore(before.position);
  after.poll_until_quiet();
  EXPECT_EQ(after.steps, range(100, 150));
}

TEST(LogFollower, a_compressed_file_is_read_once) {
  const TempFolder folder;
  const std::string path = folder.write("a.log.gz", wire::gzip(lines(1, 40)));
  Watch watch = Watch::of(path);
  watch.poll_until_quiet();
  EXPECT_EQ(watch.steps, range(1, 40));
  const std::vector<LogPosition> positions = watch.follower.positions();
  ASSERT_EQ(positions.size(), 1U);
  EXPECT_TRUE(positions[0].done);
  Watch after = Watch::of(path);
  after.follower.restore(positions[0]);
  after.poll_until_quiet();
  EXPECT_TRUE(after.steps.empty());
}

TEST(LogFollower, the_job_is_in_the_path) {
  const TempFolder folder;
  fs::create_directory(folder.path() + "/job-1234");
  folder.write("job-1234/out.log", lines(1, 10));
  LogSource by_path = source(folder.path() + "/job-*/out.log");
  by_path.job_regex = "job-(?P<job>\\d+)/";
  auto follower = LogFollower::create({by_path});
  ASSERT_TRUE(follower.ok());
  Watch watch(std::move(*follower));
  watch.poll_until_quiet();
  EXPECT_EQ(watch.job, "1234");
}

TEST(LogFollower, a_large_file_is_read_in_pieces_and_others_have_their_turn) {
  const TempFolder folder;
  const std::string large = folder.write("a.log", lines(1, 2000));
  folder.write("b.log", lines(1, 20));
  LogFollower::Options options;
  options.poll_bytes_max = 40'000;
  options.piece_bytes = 30'000;
  auto follower = LogFollower::create({source(folder.path() + "/*.log")}, options);
  ASSERT_TRUE(follower.ok());
  std::vector<std::string> order;
  bool more = true;
  int polls = 0;
  while (more && polls < 100) {
    more = follower->poll({test::kStartMilliseconds}, [&](const FollowedSteps& got) { order.push_back(got.path); });
    ++polls;
  }
  EXPECT_GT(polls, 4);
  ASSERT_GE(order.size(), 3U);
  EXPECT_NE(std::find(order.begin(), order.begin() + 3, folder.path() + "/b.log"), order.begin() + 3);
}

TEST(LogFollower, two_frameworks_in_one_file_are_told_apart_also_after_a_restart) {
  const TempFolder folder;
  std::string both = lines(1, 10);
  for (int step = 1; step <= 10; ++step) both += "step: " + std::to_string(step) + "  loss:  7.6  tps: 10,050  tflops: 314.71  mfu: 31.5%\n";
  const std::string path = folder.write("a.log", both);
  std::map<std::string, std::pair<std::size_t, bool>> seen;  // steps by format, and whether it is another than the first
  std::optional<LogPosition> position;
  const auto take = [&](const FollowedSteps& got) {
    seen[got.format].first += got.steps.size();
    seen[got.format].second = got.of_another_framework;
    if (got.position) position = got.position;
  };
  auto follower = LogFollower::create({source(path)});
  ASSERT_TRUE(follower.ok());
  (void)follower->poll({test::kStartMilliseconds}, take);
  (void)follower->poll({test::kStartMilliseconds + 1'000'000}, take);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen["megatron"], std::pair(std::size_t{10}, false));
  EXPECT_EQ(seen["torchtitan"], std::pair(std::size_t{10}, true));
  ASSERT_TRUE(position);
  EXPECT_EQ(position->format, "megatron");

  seen.clear();
  append(path, "step: 11  loss:  7.6  tps: 10,050  tflops: 314.71  mfu: 31.5%\n");
  auto again = LogFollower::create({source(path)});
  ASSERT_TRUE(again.ok());
  again->restore(*position);
  (void)again->poll({test::kStartMilliseconds + 2'000'000}, take);
  (void)again->poll({test::kStartMilliseconds + 3'000'000}, take);
  EXPECT_TRUE(seen["torchtitan"].second);
  EXPECT_GE(seen["torchtitan"].first, 1U);
}

TEST(LogFollower, files_beyond_the_limit_are_left_out_and_counted) {
  const TempFolder folder;
  for (const char* name : {"a.log", "b.log", "c.log"}) folder.write(name, lines(1, 2));
  LogFollower::Options options;
  options.files_max = 2;
  auto follower = LogFollower::create({source(folder.path() + "/*.log")}, options);
  ASSERT_TRUE(follower.ok());
  (void)follower->poll({test::kStartMilliseconds}, [](const FollowedSteps&) {});
  EXPECT_EQ(follower->files().size(), 2U);
  EXPECT_EQ(follower->left_out_total(), 1U);
}

TEST(LogFollower, what_is_no_file_is_an_error_of_that_file) {
  const TempFolder folder;
  fs::create_directory(folder.path() + "/a.log");
  Watch watch = Watch::of(folder.path() + "/a.log");
  watch.poll();
  ASSERT_EQ(watch.follower.files().size(), 1U);
  EXPECT_NE(watch.follower.files()[0].error.find("a folder, expected a file"), std::string::npos);
}

TEST(LogSources, a_file_of_sources) {
  const auto sources = training_logs::parse_log_sources(
      "training-logs:\n  - path: /logs/*/out.log\n    job-regex: /logs/(?P<job>[^/]+)/\n    format: megatron\n    zone: Europe/Berlin\n"
      "  - {path: /b.log, job: nightly}\n");
  ASSERT_TRUE(sources.ok()) << sources.error().message;
  ASSERT_EQ(sources->size(), 2U);
  EXPECT_EQ((*sources)[0].zone, "Europe/Berlin");
  EXPECT_EQ((*sources)[1].job, "nightly");
  EXPECT_TRUE(LogFollower::create(*sources).ok());
}

TEST(LogSources, mistakes_name_their_line) {
  const auto error_of = [](std::string_view text) {
    const auto sources = training_logs::parse_log_sources(text);
    if (!sources.ok()) return sources.error().message;
    const auto follower = LogFollower::create(*sources);
    return follower.ok() ? std::string() : follower.error().message;
  };
  EXPECT_EQ(error_of("training-logs:\n- job: a\n"), "line 2: a source without a path");
  EXPECT_EQ(error_of("training-logs:\n- path: a\n  jobs: b\n"), "line 3: jobs: no such key, expected path, job, job-regex, format, zone or pattern-file");
  EXPECT_EQ(error_of("training-logs:\n- {path: a, zone: Mars}\n").substr(0, 37), "line 2: no time zone 'Mars', expected");
  EXPECT_EQ(error_of("training-logs:\n- {path: a, format: x}\n").substr(0, 35), "line 2: format: found \"x\", expected");
  EXPECT_EQ(error_of("training-logs:\n- {path: a, job-regex: x}\n"), "line 2: job-regex: expected a group (?P<job>…)");
  EXPECT_EQ(error_of("training-logs:\n- {path: a, job: x, job-regex: y}\n"), "line 2: both job and job-regex, expected one of them");
  EXPECT_NE(error_of("training-logs:\n- {path: a, pattern-file: /none}\n").find("line 2: "), std::string::npos);
  std::string most = "training-logs:\n";
  for (std::size_t i = 0; i < training_logs::kLogSourcesMax; ++i) most += "- {path: a, job: b}\n";
  EXPECT_EQ(error_of(most), "");
  EXPECT_EQ(error_of(most + "- {path: a, job: b}\n"), "line 2: more than 1000 sources");
  EXPECT_EQ(error_of("x: 1"), "line 1: expected a list under the key training-logs, and no other key");
}

}  // namespace
}  // namespace flopsight::app
