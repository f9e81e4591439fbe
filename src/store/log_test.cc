#include "store/log.h"

#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "store/test_disk.h"

namespace flopsight::store {
namespace {

LogRecord record(const std::string& body) { return {LogKind::kRemoteWrite1, units::Instant{1790000000000}, body}; }

struct Read {
  std::vector<std::string> bodies;
  LogReplay report;
};

Read read(Disk& disk, std::uint32_t first = 1) {
  Read out;
  auto report = Log::replay(disk, "log", first, [&](std::uint32_t, const LogRecord& r) {
    out.bodies.emplace_back(r.body);
  });
  EXPECT_TRUE(report.ok()) << report.error().message;
  out.report = *report;
  return out;
}

std::unique_ptr<Log> open(Disk& disk, LogOptions options = {}) {
  auto log = Log::open(disk, "log", options);
  EXPECT_TRUE(log.ok()) << log.error().message;
  return std::move(log).value();
}

TEST(Log, records_come_back_in_order_with_kind_and_time) {
  TestDisk disk;
  auto log = open(disk);
  ASSERT_TRUE(log->append({LogKind::kExposition, units::Instant{123456}, "target\ntext"}).ok());
  ASSERT_TRUE(log->append(record("")).ok());
  std::vector<LogRecord> kinds;
  ASSERT_TRUE(Log::replay(disk, "log", 1, [&](std::uint32_t segment, const LogRecord& r) {
                EXPECT_EQ(segment, 1U);
                kinds.push_back(r);
                if (kinds.size() == 1) {
                  EXPECT_EQ(r.body, "target\ntext");
                }
              }).ok());
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].kind, LogKind::kExposition);
  EXPECT_EQ(kinds[0].time.unix_milliseconds, 123456);
  EXPECT_EQ(kinds[1].kind, LogKind::kRemoteWrite1);
}

TEST(Log, nothing_acknowledged_is_lost_whenever_the_power_goes) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    TestDisk disk(seed);
    std::vector<std::string> appended;
    std::size_t acknowledged = 0;
    LogOptions options;
    options.segment_bytes = 300;
    // Three lives, each ended by a power cut; what survived the first counts as written.
    for (int life = 0; life < 3; ++life) {
      auto log = open(disk, options);
      for (std::size_t n = random() % 40; n > 0; --n) {
        std::string body = "life " + std::to_string(life) + " record " + std::to_string(n);
        body.append(random() % 60, 'x');
        const auto position = log->append(record(body));
        ASSERT_TRUE(position.ok());
        appended.push_back(body);
        if (random() % 3 == 0) {
          ASSERT_TRUE(log->sync(*position).ok());
          acknowledged = appended.size();
        }
        if (random() % 10 == 0) {
          ASSERT_TRUE(log->rotate().ok());
        }
      }
      log.reset();
      disk.lose_power();
      const Read after = read(disk);
      ASSERT_GE(after.bodies.size(), acknowledged);
      // What is read is what was appended, in order; unacknowledged records may be missing.
      std::size_t at = 0;
      for (const std::string& body : after.bodies) {
        while (at < appended.size() && appended[at] != body) {
          ASSERT_GE(at, acknowledged) << "an acknowledged record is missing: " << appended[at];
          ++at;
        }
        ASSERT_LT(at, appended.size()) << "a record that nobody wrote: " << body;
        ++at;
      }
      appended = after.bodies;
      acknowledged = appended.size();
      // What a crash leaves of unacknowledged records is a torn tail, in this and in later lives.
      if (life == 2) {
        EXPECT_EQ(read(disk).bodies, after.bodies);
      }
    }
  }
}

TEST(Log, a_torn_tail_is_no_damage_also_after_a_restart) {
  TestDisk disk;
  {
    auto log = open(disk);
    ASSERT_TRUE(log->append(record("one")).ok());
    ASSERT_TRUE(log->append(record("two")).ok());
  }
  disk.content("log/0000000001.log").resize(disk.content("log/0000000001.log").size() - 1);
  EXPECT_GT(read(disk).report.torn_tail_bytes, 0U);
  auto log = open(disk);
  ASSERT_TRUE(log->append(record("three")).ok());
  const Read after = read(disk);
  EXPECT_EQ(after.bodies, (std::vector<std::string>{"one", "three"}));
  EXPECT_TRUE(after.report.damage.empty());
}

TEST(Log, damage_inside_is_said_with_how_much_and_the_rest_is_read) {
  TestDisk disk;
  auto log = open(disk);
  for (const char* body : {"one", "two", "three"}) ASSERT_TRUE(log->append(record(body)).ok());
  ASSERT_TRUE(log->rotate().ok());
  ASSERT_TRUE(log->append(record("four")).ok());
  std::string& bytes = disk.content("log/0000000001.log");
  const std::size_t second = 24 + 20 + 3;
  bytes[second + 20] ^= 1;
  const Read after = read(disk);
  EXPECT_EQ(after.bodies, (std::vector<std::string>{"one", "four"}));
  ASSERT_EQ(after.report.damage.size(), 1U);
  EXPECT_EQ(after.report.damage[0],
            "log/0000000001.log: byte 47: a checksum differs; 48 bytes from there on are lost");
  bytes.resize(second);
  EXPECT_EQ(read(disk).report.damage[0], "log/0000000001.log: it is too short; 48 bytes from there on are lost");
}

TEST(Log, damage_in_the_last_segment_is_told_from_a_torn_tail_by_the_records_after_it) {
  TestDisk disk;
  auto log = open(disk);
  for (const char* body : {"one", "two", "three"}) ASSERT_TRUE(log->append(record(body)).ok());
  disk.content("log/0000000001.log")[24 + 20 + 3 + 20] ^= 1;
  const Read damaged = read(disk);
  ASSERT_EQ(damaged.report.damage.size(), 1U);
  EXPECT_EQ(damaged.report.damage[0], "log/0000000001.log: byte 47: a checksum differs; 48 bytes from there on are lost");
  EXPECT_EQ(damaged.report.torn_tail_bytes, 0U);
  {
    TestDisk again = disk;
    ASSERT_TRUE(Log::open(again, "log", {}).ok());  // as a start does, which begins the next segment
    EXPECT_EQ(read(again).report.damage, damaged.report.damage) << "at every start";
  }
  disk.content("log/0000000001.log").resize(24 + 20 + 3 + 20 + 3);
  const Read torn = read(disk);
  EXPECT_TRUE(torn.report.damage.empty());
  EXPECT_EQ(torn.report.torn, std::vector<std::string>{"log/0000000001.log: byte 47: a checksum differs; 23 bytes from there on"});
  ASSERT_TRUE(log->rotate().ok());
  // Nothing tells how long the first one was.
  std::vector<std::string> gone;
  for (const char* name : {"log/0000000001.log", "log/0000000002.log"}) {
    disk.content(name).clear();
    gone.push_back(std::string(name) + ": byte 0: not the head of a segment of this version; 0 bytes from there on");
  }
  EXPECT_EQ(read(disk).report.torn, gone);
}

TEST(Log, a_segment_that_was_to_be_read_and_is_not_there_is_said) {
  TestDisk disk;
  auto log = open(disk);
  for (const char* body : {"one", "two", "three", "four"}) {
    ASSERT_TRUE(log->append(record(body)).ok());
    ASSERT_TRUE(log->rotate().ok());
  }
  const auto damage = [&](std::uint32_t first, bool is_begun) {
    const auto report = Log::replay(disk, "log", first, [](std::uint32_t, const LogRecord&) {}, is_begun);
    EXPECT_TRUE(report.ok());
    return report->damage;
  };
  EXPECT_TRUE(damage(1, true).empty());
  const std::string lost = " not there, and was to be read; what it held is lost unless the store has it";
  ASSERT_TRUE(disk.remove("log/0000000003.log").ok());
  EXPECT_EQ(damage(1, true), (std::vector<std::string>{"log: 0000000003.log is" + lost}));
  ASSERT_TRUE(log->drop_before(3).ok());
  // An older store, or an empty one, before a log whose beginning went into another.
  EXPECT_EQ(damage(2, true), (std::vector<std::string>{"log: 0000000002.log to 0000000003.log are" + lost}));
  EXPECT_EQ(damage(1, false), (std::vector<std::string>{"log: 0000000001.log to 0000000003.log are" + lost}));
  EXPECT_TRUE(damage(4, true).empty());
  for (const char* name : {"log/0000000004.log", "log/0000000005.log"}) ASSERT_TRUE(disk.remove(name).ok());
  EXPECT_EQ(damage(4, true), (std::vector<std::string>{"log: 0000000004.log is" + lost}));
  EXPECT_TRUE(damage(1, false).empty()) << "a new store";
  // What comes now is behind what the store says that it has.
  log.reset();
  auto again = Log::open(disk, "log", {}, 4);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->append(record("five"))->segment, 4U);
  EXPECT_EQ(read(disk, 4).bodies, std::vector<std::string>{"five"});
}

TEST(Log, room_that_others_take_is_noticed_by_the_next_record_and_by_who_asks) {
  TestDisk disk;
  LogOptions options;
  options.free_bytes_min = 1'000;
  auto log = open(disk, options);
  ASSERT_TRUE(log->append(record("one")).ok());
  EXPECT_TRUE(log->look_for_room().ok());
  disk.space_bytes = 1'000;
  EXPECT_EQ(log->look_for_room().error().code, base::ErrorCode::kLimit);
  EXPECT_EQ(log->append(record("two")).error().code, base::ErrorCode::kLimit);
}

TEST(Log, on_a_full_disk_it_opens_and_takes_records_when_there_is_room) {
  TestDisk disk;
  disk.space_bytes = 0;
  LogOptions options;
  options.free_bytes_min = 0;
  auto log = open(disk, options);
  EXPECT_FALSE(log->append(record("one")).ok());
  EXPECT_EQ(disk.file_count(), 0U);
  disk.space_bytes = 1 << 20;
  ASSERT_TRUE(log->append(record("two")).ok());
  EXPECT_EQ(read(disk).bodies, std::vector<std::string>{"two"});
}

TEST(Log, a_full_disk_refuses_and_leaves_no_trace_and_takes_again_when_there_is_room) {
  TestDisk disk;
  LogOptions options;
  options.free_bytes_min = 100;
  auto log = open(disk, options);
  ASSERT_TRUE(log->append(record("one")).ok());
  disk.space_bytes = 24 + 23 + 30;  // room for a part of a record, and none for the reserve
  const auto refused = log->append(record("a record that is too long"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kLimit);
  disk.space_bytes = 1 << 20;
  const auto position = log->append(record("three"));
  ASSERT_TRUE(position.ok());
  ASSERT_TRUE(log->sync(*position).ok());
  EXPECT_EQ(read(disk).bodies, (std::vector<std::string>{"one", "three"}));
}

TEST(Log, a_write_that_fails_halfway_and_cannot_be_cut_back_costs_a_segment_and_no_record) {
  TestDisk disk;
  LogOptions options;
  options.free_bytes_min = 0;
  auto log = open(disk, options);
  ASSERT_TRUE(log->append(record("one")).ok());
  disk.space_bytes = 24 + 23 + 30 + 100;
  disk.truncate_fails = true;
  ASSERT_FALSE(log->append(record(std::string(5000, 'x'))).ok());
  disk.space_bytes = 1 << 20;
  ASSERT_TRUE(log->append(record("three")).ok());
  const Read after = read(disk);
  EXPECT_EQ(after.bodies, (std::vector<std::string>{"one", "three"}));
  EXPECT_TRUE(after.report.damage.empty());
}

TEST(Log, a_sync_that_fails_is_an_error_for_all_that_waited_and_the_next_segment_is_new) {
  TestDisk disk;
  auto log = open(disk);
  const auto one = log->append(record("one"));
  disk.sync_fails = true;
  EXPECT_EQ(log->sync(*one).error().code, base::ErrorCode::kIo);
  disk.sync_fails = false;
  EXPECT_FALSE(log->sync(*one).ok());
  const auto two = log->append(record("two"));
  EXPECT_EQ(two->segment, one->segment + 1);
  EXPECT_TRUE(log->sync(*two).ok());
}

TEST(Log, the_limit_of_all_segments_holds_at_and_one_past_it) {
  TestDisk disk;
  LogOptions options;
  options.bytes_max = 24 + 20 + 10;
  auto log = open(disk, options);
  EXPECT_EQ(log->append(record(std::string(11, 'x'))).error().code, base::ErrorCode::kLimit);
  EXPECT_TRUE(log->append(record(std::string(10, 'x'))).ok());
}

TEST(Log, dropped_segments_are_gone_and_replay_starts_where_it_is_told) {
  TestDisk disk;
  auto log = open(disk);
  for (const char* body : {"one", "two", "three"}) {
    ASSERT_TRUE(log->append(record(body)).ok());
    ASSERT_TRUE(log->rotate().ok());
  }
  EXPECT_EQ(read(disk, 2).bodies, (std::vector<std::string>{"two", "three"}));
  ASSERT_TRUE(log->drop_before(3).ok());
  EXPECT_EQ(read(disk).bodies, (std::vector<std::string>{"three"}));
  EXPECT_EQ(disk.file_count(), 2U);
}

TEST(Log, many_threads_append_and_wait_for_one_sync_each) {
  const std::string folder = testing::TempDir() + "flopsight_log_test";
  std::filesystem::remove_all(folder);
  {
    auto log = Log::open(real_disk(), folder, {});
    ASSERT_TRUE(log.ok()) << log.error().message;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const auto position = (*log)->append(record(std::to_string(t) + " " + std::to_string(i)));
          EXPECT_TRUE(position.ok());
          EXPECT_TRUE((*log)->sync(*position).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::size_t count = 0;
  ASSERT_TRUE(Log::replay(real_disk(), folder, 1, [&](std::uint32_t, const LogRecord&) { ++count; }).ok());
  EXPECT_EQ(count, 400U);
  std::filesystem::remove_all(folder);
}

TEST(FolderLock, a_second_holder_is_told_who_has_it_and_gets_it_after) {
  const std::string folder = testing::TempDir() + "flopsight_lock_test";
  std::filesystem::create_directories(folder);
  {
    const auto first = FolderLock::take(folder);
    ASSERT_TRUE(first.ok());
    const auto second = FolderLock::take(folder);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().message.find("in use by another flopsight (process"), std::string::npos);
  }
  EXPECT_TRUE(FolderLock::take(folder).ok());
}

}  // namespace
}  // namespace flopsight::store
