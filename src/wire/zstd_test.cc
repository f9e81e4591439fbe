#include "wire/zstd.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace flopsight::wire {
namespace {

using base::ErrorCode;

void expect_error(const std::string& bytes, std::size_t bytes_max, ErrorCode code,
                  const std::string& message) {
  std::string into = "before";
  const base::Status status = zstd_decompress(bytes, bytes_max, into);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, code);
  EXPECT_EQ(status.error().message, message);
  EXPECT_EQ(into, "");
}

TEST(Zstd, what_is_packed_unpacks_to_the_same_bytes_at_every_level) {
  std::mt19937 random(11);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random() & 0xFF);
  std::string into = "what was there before";
  for (const std::string& text :
       {std::string(), std::string("x"), noise, std::string(1 << 20, 'a')}) {
    for (const int level : {1, 3, 9, 19}) {
      ASSERT_TRUE(zstd_decompress(zstd_compress(text, level), text.size(), into).ok());
      EXPECT_EQ(into, text);
    }
  }
  EXPECT_LT(zstd_compress(std::string(1 << 20, 'a'), 1).size(), 200U);
}

TEST(Zstd, a_frame_of_the_zstd_program_is_unpacked) {
  // printf 'flopsight\n' > f; zstd -19 f
  const std::string by_zstd(
      "\x28\xb5\x2f\xfd\x24\x0a\x51\x00\x00"
      "flopsight\n\x63\xd0\x75\x54",
      23);
  std::string into;
  const base::Status status = zstd_decompress(by_zstd, 100, into);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(into, "flopsight\n");
}

TEST(Zstd, an_announced_length_over_the_limit_is_refused) {
  const std::string packed = zstd_compress(std::string(1'001, 'a'), 3);
  expect_error(packed, 1'000, ErrorCode::kLimit,
               "the zstd frame announces 1001 bytes, more than 1000");
  std::string into;
  EXPECT_TRUE(zstd_decompress(packed, 1'001, into).ok());
}

TEST(Zstd, bytes_that_are_no_single_frame_are_corrupt) {
  const std::string damaged = "a zstd frame that is cut short or damaged";
  expect_error("", 100, ErrorCode::kCorrupt, "not a zstd frame");
  expect_error("flopsight", 100, ErrorCode::kCorrupt, "not a zstd frame");
  const std::string packed = zstd_compress("flopsight flopsight flopsight", 3);
  expect_error(
      packed + packed, 100, ErrorCode::kCorrupt,
      "at byte " + std::to_string(packed.size()) + ": bytes after the end of the zstd frame");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    std::string into;
    ASSERT_FALSE(zstd_decompress(packed.substr(0, size), 100, into).ok());
  }
  expect_error(packed.substr(0, packed.size() - 1), 100, ErrorCode::kCorrupt, damaged);
}

TEST(Zstd, a_frame_that_does_not_say_its_length_is_not_taken) {
  // printf 'flopsight\n' | zstd --no-check: a stream, whose length was not known at its start
  expect_error(std::string("\x28\xb5\x2f\xfd\x00\x58\x51\x00\x00"
                           "flopsight\n",
                           19),
               100, ErrorCode::kCorrupt, "a zstd frame without its length");
}

}  // namespace
}  // namespace flopsight::wire
