#include "wire/snappy.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace flopsight::wire {
namespace {

using base::ErrorCode;

void expect_error(const std::string& bytes, std::size_t bytes_max, ErrorCode code,
                  const std::string& message) {
  std::string into = "before";
  const base::Status status = snappy_decompress(bytes, bytes_max, into);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, code);
  EXPECT_EQ(status.error().message, message);
  EXPECT_EQ(into, "");
}

TEST(Snappy, a_block_by_the_letter_of_the_format_is_unpacked) {
  std::string into;
  // Length 12; a literal of 4 bytes; a copy of 8 bytes from 4 back.
  EXPECT_TRUE(snappy_decompress("\x0c\x0c"
                                "gpu!\x11\x04",
                                12, into)
                  .ok());
  EXPECT_EQ(into, "gpu!gpu!gpu!");
}

TEST(Snappy, what_is_packed_unpacks_to_the_same_bytes_into_a_used_string) {
  std::mt19937 random(11);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random() & 0xFF);
  std::string into = "what was there before";
  for (const std::string& text :
       {std::string(), std::string("x"), noise, std::string(1 << 20, 'a'), std::string("short")}) {
    ASSERT_TRUE(snappy_decompress(snappy_compress(text), text.size(), into).ok());
    EXPECT_EQ(into, text);
  }
  EXPECT_LT(snappy_compress(std::string(1 << 20, 'a')).size(), (1U << 20) / 20);
}

TEST(Snappy, a_used_string_keeps_its_capacity) {
  std::string into;
  ASSERT_TRUE(snappy_decompress(snappy_compress(std::string(5'000, 'a')), 5'000, into).ok());
  const std::size_t capacity = into.capacity();
  ASSERT_TRUE(snappy_decompress(snappy_compress("b"), 5'000, into).ok());
  EXPECT_EQ(into.capacity(), capacity);
}

TEST(Snappy, an_announced_length_over_the_limit_is_refused) {
  const std::string packed = snappy_compress(std::string(1'001, 'a'));
  expect_error(packed, 1'000, ErrorCode::kLimit,
               "the snappy block announces 1001 bytes, more than 1000");
  std::string into;
  EXPECT_TRUE(snappy_decompress(packed, 1'001, into).ok());
}

TEST(Snappy, an_announced_length_that_cannot_be_is_refused_before_memory_is_taken) {
  const std::string announces_4_gib =
      "\xff\xff\xff\xff\x0f"
      "aaaa";
  std::string into;
  expect_error(announces_4_gib, std::size_t{1} << 40U, ErrorCode::kInvalid,
               "the snappy block announces 4294967295 bytes, which 9 compressed ones cannot hold");
  ASSERT_FALSE(snappy_decompress(announces_4_gib, std::size_t{1} << 40U, into).ok());
  EXPECT_LT(into.capacity(), 1'000U);
}

TEST(Snappy, the_densest_block_is_not_taken_for_a_lie) {
  // One literal byte and copies of 64 bytes, 3 bytes each.
  std::string block = "\x81\x80\x04";  // 1 + 1024 * 64 = 65537
  block += std::string(
      "\x00"
      "a",
      2);
  for (int i = 0; i < 1024; ++i) block += std::string("\xfe\x01\x00", 3);
  std::string into;
  ASSERT_TRUE(snappy_decompress(block, 1 << 20, into).ok());
  EXPECT_EQ(into, std::string(65'537, 'a'));
}

TEST(Snappy, bytes_that_are_no_block_are_refused) {
  const std::string damaged = "a snappy block that is cut short or damaged";
  const std::string no_length = "at byte 0: not the length that a snappy block starts with";
  expect_error("", 100, ErrorCode::kInvalid, no_length);
  expect_error("\xff\xff\xff\xff\xff\xff", 100, ErrorCode::kInvalid, no_length);
  expect_error(
      "\x0c\x0c"
      "gpu!\x11\x05",
      100, ErrorCode::kInvalid, damaged);  // from before the start
  expect_error(
      "\x0c\x0c"
      "gpu!",
      100, ErrorCode::kInvalid, damaged);
  expect_error(
      "\x05\x0c"
      "gpu!"
      "\x00"
      "a"
      "b",
      100, ErrorCode::kInvalid, damaged);
  const std::string packed = snappy_compress("flopsight flopsight flopsight");
  for (std::size_t size = 1; size < packed.size(); ++size) {
    std::string into;
    EXPECT_FALSE(snappy_decompress(packed.substr(0, size), 100, into).ok());
  }
}

}  // namespace
}  // namespace flopsight::wire
