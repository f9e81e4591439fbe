#include "wire/inflate_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "wire/gzip.h"
#include "wire/zstd.h"

namespace flopsight::wire {
namespace {

std::string text_of(std::size_t bytes) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < bytes) text += "step " + std::to_string(random() % 1000) + (random() % 3 == 0 ? "\n" : std::string(300, 'x'));
  return text;
}

// What the pieces say, or the error.
std::string inflated(InflateStream stream, std::string_view bytes, std::size_t piece) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const base::Status status = stream.feed(bytes.substr(at, piece), [&](std::string_view part) { out += part; });
    if (!status.ok()) return status.error().message;
  }
  const base::Status end = stream.finish();
  return end.ok() ? out : end.error().message;
}

TEST(InflateStream, pieces_of_any_size_give_the_same_bytes) {
  const std::string text = text_of(2 << 20);
  const std::string packed = gzip(text);
  const std::string frame = zstd_compress(text, 3);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{997}, std::size_t{1} << 16, std::size_t{1} << 24}) {
    EXPECT_TRUE(inflated(InflateStream::gzip(), packed, piece) == text) << piece;
    EXPECT_TRUE(inflated(InflateStream::zstd(), frame, piece) == text) << piece;
  }
}

TEST(InflateStream, members_and_frames_follow_one_another) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
    EXPECT_EQ(inflated(InflateStream::gzip(), gzip("one ") + gzip("") + gzip("two"), piece), "one two");
    EXPECT_EQ(inflated(InflateStream::zstd(), zstd_compress("one ", 1) + zstd_compress("two", 1), piece), "one two");
  }
}

TEST(InflateStream, what_is_cut_short_is_corrupt_and_what_came_before_was_handed_on) {
  const std::string text = text_of(1 << 20);
  for (const bool zstd : {false, true}) {
    const std::string packed = zstd ? zstd_compress(text, 3) : gzip(text);
    InflateStream stream = zstd ? InflateStream::zstd() : InflateStream::gzip();
    std::string out;
    ASSERT_TRUE(stream.feed(std::string_view(packed).substr(0, packed.size() / 2), [&](std::string_view part) { out += part; }).ok());
    EXPECT_GT(out.size(), 1000U);
    EXPECT_TRUE(text.starts_with(out));
    ASSERT_FALSE(stream.finish().ok());
    EXPECT_EQ(stream.finish().error().code, base::ErrorCode::kCorrupt);
  }
}

TEST(InflateStream, other_bytes_are_corrupt) {
  EXPECT_NE(inflated(InflateStream::gzip(), "\x1f\x8bnothing of the kind", 100), "");
  EXPECT_NE(inflated(InflateStream::gzip(), gzip("one") + "tail", 100).find("at byte"), std::string::npos);
  EXPECT_NE(inflated(InflateStream::zstd(), "\x28\xb5\x2f\xfd nothing of the kind", 100).find("at byte"), std::string::npos);
  EXPECT_NE(inflated(InflateStream::gzip(), "", 1), "");
}

}  // namespace
}  // namespace flopsight::wire
