#include "wire/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace flopsight::wire {
namespace {

// The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms: the form of stored files depends on it.
TEST(Crc32, is_that_of_gzip) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
  EXPECT_EQ(crc32(""), 0U);
}

TEST(Crc32, goes_on_from_what_goes_before) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{500}, bytes.size()}) {
    EXPECT_EQ(crc32(std::string_view(bytes).substr(cut), crc32(std::string_view(bytes).substr(0, cut))), crc32(bytes)) << cut;
  }
}

}  // namespace
}  // namespace flopsight::wire
