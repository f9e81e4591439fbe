#include "wire/gzip.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>

namespace flopsight::wire {
namespace {

using base::ErrorCode;

constexpr std::size_t kPlenty = 1 << 24;

std::string bytes_of(std::initializer_list<unsigned> bytes) {
  std::string out;
  for (const unsigned byte : bytes) out += static_cast<char>(byte);
  return out;
}

std::string random_bytes(std::size_t size) {
  std::mt19937 random(11);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random() & 0xFF);
  return out;
}

void expect_error(const std::string& bytes, std::size_t bytes_max, ErrorCode code,
                  const std::string& message) {
  const auto result = gunzip(bytes, bytes_max);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code);
  EXPECT_EQ(result.error().message, message);
}

TEST(Gzip, output_of_the_gzip_program_and_a_zlib_stream_are_inflated) {
  // printf 'flopsight\n' | gzip -9 -n
  const std::string by_gzip = bytes_of(
      {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0xcb, 0xc9, 0x2f, 0x28,
       0xce, 0x4c, 0xcf, 0x28, 0xe1, 0x02, 0x00, 0x50, 0x66, 0xa0, 0x32, 0x0a, 0x00, 0x00, 0x00});
  EXPECT_EQ(gunzip(by_gzip, kPlenty).value(), "flopsight\n");
  // zlib.compress(b'flopsight\n') of Python; it stands alone
  const std::string by_zlib = bytes_of({0x78, 0x9c, 0x4b, 0xcb, 0xc9, 0x2f, 0x28, 0xce, 0x4c, 0xcf,
                                        0x28, 0xe1, 0x02, 0x00, 0x16, 0xdf, 0x03, 0xdb});
  EXPECT_EQ(gunzip(by_zlib, kPlenty).value(), "flopsight\n");
  expect_error(by_zlib + by_gzip, kPlenty, ErrorCode::kCorrupt,
               "at byte 18: bytes after the end of the gzip stream");
}

TEST(Gzip, what_is_packed_unpacks_to_the_same_bytes_at_every_level) {
  std::string repeated;
  for (int i = 0; i < 30'000; ++i) repeated += "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 97\n";
  for (const std::string& text : {std::string(), std::string("x"), repeated, random_bytes(100'000),
                                  std::string(1 << 15, 'a'), random_bytes(1 << 15)}) {
    for (const int level : {0, 1, 6, 9}) {
      const std::string packed = gzip(text, level);
      EXPECT_TRUE(looks_like_gzip(packed));
      EXPECT_EQ(gunzip(packed, kPlenty).value(), text);
    }
  }
  EXPECT_LT(gzip(repeated).size(), repeated.size() / 50);
}

TEST(Gzip, packing_is_a_function_of_the_bytes_and_the_level) {
  EXPECT_EQ(gzip("flopsight"), gzip("flopsight", 6));
}

TEST(Gzip, members_one_after_another_are_joined) {
  EXPECT_EQ(gunzip(gzip("a") + gzip("") + gzip("bc"), kPlenty).value(), "abc");
}

TEST(Gzip, output_of_exactly_the_limit_is_given_and_one_byte_more_is_not) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{32 * 1024}, std::size_t{100'000}}) {
    const std::string text(size, 'z');
    EXPECT_EQ(gunzip(gzip(text), size).value(), text);
    expect_error(gzip(text + "z"), size, ErrorCode::kLimit,
                 "inflates to more than " + std::to_string(size) + " bytes");
  }
  // The limit is on the sum of the members.
  EXPECT_EQ(gunzip(gzip("ab") + gzip("c"), 3).value(), "abc");
  expect_error(gzip("ab") + gzip("cd"), 3, ErrorCode::kLimit, "inflates to more than 3 bytes");
}

TEST(Gzip, a_stream_cut_short_anywhere_is_corrupt_at_its_end) {
  const std::string packed = gzip("flopsight flopsight flopsight");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    expect_error(packed.substr(0, size), kPlenty, ErrorCode::kCorrupt,
                 "at byte " + std::to_string(size) + ": the gzip stream ends too early");
  }
  const std::string incompressible = gzip(random_bytes(1 << 16));
  const std::string cut = incompressible.substr(0, incompressible.size() - 1);
  EXPECT_EQ(gunzip(cut, kPlenty).error().code, ErrorCode::kCorrupt);
}

TEST(Gzip, a_changed_byte_never_yields_other_content) {
  const std::string text = "flopsight, flopsight and flopsight";
  const std::string packed = gzip(text);
  for (std::size_t at = 0; at < packed.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string changed = packed;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1U << bit));
      const auto result = gunzip(changed, kPlenty);
      // Header fields outside of the checksum (time, operating system, flags) may change unnoticed.
      if (result.ok()) {
        EXPECT_EQ(*result, text) << at;
      } else {
        EXPECT_EQ(result.error().code, ErrorCode::kCorrupt) << at;
      }
    }
  }
}

TEST(Gzip, a_wrong_checksum_is_corrupt) {
  std::string packed = gzip("flopsight");
  packed[packed.size() - 8] = static_cast<char>(packed[packed.size() - 8] ^ 1);
  const auto result = gunzip(packed, kPlenty);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(result.error().message.ends_with(": incorrect data check")) << result.error().message;
}

TEST(Gzip, text_and_bytes_after_the_end_are_corrupt_with_their_place) {
  expect_error("plain text", kPlenty, ErrorCode::kCorrupt, "at byte 2: incorrect header check");
  const std::string packed = gzip("a");
  expect_error(
      packed + "b", kPlenty, ErrorCode::kCorrupt,
      "at byte " + std::to_string(packed.size()) + ": bytes after the end of the gzip stream");
}

TEST(Gzip, a_stream_that_needs_a_dictionary_is_corrupt) {
  expect_error(bytes_of({0x78, 0xbb, 0x00, 0x00, 0x00, 0x01, 0x00}), kPlenty, ErrorCode::kCorrupt,
               "at byte 6: the stream needs a dictionary");
}

TEST(Gzip, is_known_by_its_first_two_bytes) {
  EXPECT_TRUE(looks_like_gzip(bytes_of({0x1f, 0x8b})));
  EXPECT_FALSE(looks_like_gzip(bytes_of({0x1f})));
  EXPECT_FALSE(looks_like_gzip(""));
  EXPECT_FALSE(looks_like_gzip("# HELP"));
}

}  // namespace
}  // namespace flopsight::wire
