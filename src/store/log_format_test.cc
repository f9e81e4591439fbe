// docs/formats/log.md is held to the code: its example is read, and written byte by byte.
#include <sstream>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/log.h"
#include "store/test_disk.h"

namespace flopsight::store {
namespace {

// The bytes of the page's only block of hex.
std::string example() {
  const auto page = base::read_file(FLOPSIGHT_SOURCE_DIR "/docs/formats/log.md");
  EXPECT_TRUE(page.ok());
  const std::size_t at = page->find("## An example"), from = page->find("```\n", at) + 4;
  std::istringstream words(page->substr(from, page->find("```", from) - from));
  std::string bytes;
  for (std::string word; words >> word;) bytes.push_back(static_cast<char>(std::stoi(word, nullptr, 16)));
  return bytes;
}

const LogRecord kFirst{LogKind::kRemoteWrite1, units::Instant{1790035200000}, "abc"};
const LogRecord kSecond{LogKind::kExposition, units::Instant{1790035215000}, ""};

TEST(LogFormat, the_example_of_the_page_is_read) {
  TestDisk disk;
  ASSERT_TRUE(disk.create("log/0000000001.log").value()->append(example(), "").ok());
  std::vector<std::tuple<LogKind, std::int64_t, std::string>> seen;
  const auto replay = Log::replay(disk, "log", 1, [&](std::uint32_t, const LogRecord& r) {
    seen.emplace_back(r.kind, r.time.unix_milliseconds, std::string(r.body));
  });
  ASSERT_TRUE(replay.ok());
  EXPECT_EQ(replay->torn_tail_bytes, 0U);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], std::tuple(kFirst.kind, kFirst.time.unix_milliseconds, std::string(kFirst.body)));
  EXPECT_EQ(seen[1], std::tuple(kSecond.kind, kSecond.time.unix_milliseconds, std::string(kSecond.body)));
}

TEST(LogFormat, the_example_of_the_page_is_what_is_written) {
  TestDisk disk;
  const auto log = Log::open(disk, "log", {});
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE((*log)->append(kFirst).ok());
  ASSERT_TRUE((*log)->append(kSecond).ok());
  EXPECT_EQ(disk.content("log/0000000001.log"), example());
}

}  // namespace
}  // namespace flopsight::store
