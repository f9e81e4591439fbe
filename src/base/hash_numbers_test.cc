#include "base/hash_numbers.h"

#include <gtest/gtest.h>

#include <string>

namespace flopsight::base {
namespace {

Hash128 name(std::uint32_t number) { return hash128("name " + std::to_string(number)); }

TEST(HashNumbers, each_name_has_its_number_however_many_there_are) {
  constexpr std::uint32_t kNames = 50'000;
  HashNumbers numbers;
  EXPECT_FALSE(numbers.find(hash128("gpu-0")));
  for (std::uint32_t i = 0; i < kNames; ++i) {
    EXPECT_EQ(numbers.emplace(hash128("gpu-" + std::to_string(i)), i), std::pair(i, true));
  }
  EXPECT_EQ(numbers.emplace(hash128("gpu-7"), 9), std::pair(std::uint32_t{7}, false));
  numbers.set(hash128("gpu-8"), 80);
  for (std::uint32_t i = 0; i < kNames; ++i) EXPECT_EQ(numbers.find(hash128("gpu-" + std::to_string(i))), i == 8 ? 80 : i);
  EXPECT_FALSE(numbers.find(hash128("another")));
  EXPECT_EQ(numbers.size(), kNames);
  EXPECT_LE(numbers.memory_bytes(), kNames * 32U);
  numbers.clear();
  EXPECT_FALSE(numbers.find(hash128("gpu-7")));
}

// Hashes that all want the same place, at the end of the table, go round.
TEST(HashNumbers, hashes_that_differ_in_their_upper_halves_only_are_told_apart) {
  HashNumbers numbers;
  for (std::uint32_t i = 0; i < 100; ++i) numbers.emplace({UINT64_MAX, i}, i);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(numbers.find({UINT64_MAX, i}), i);
  EXPECT_FALSE(numbers.find({UINT64_MAX, 100}));
}

TEST(HashNumbers, all_that_are_not_erased_are_found_and_there_is_room_for_as_many_again) {
  HashNumbers numbers;
  for (std::uint32_t i = 0; i < 10'000; ++i) numbers.set(name(i), i);
  const std::size_t full_bytes = numbers.memory_bytes();
  numbers.erase_numbers([](std::uint32_t number) { return number % 10 != 3; });
  EXPECT_EQ(numbers.size(), 1'000U);
  EXPECT_LT(numbers.memory_bytes(), full_bytes / 5);
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(numbers.find(name(i)).value_or(0), i % 10 == 3 ? i : 0) << i;
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(numbers.emplace(name(i), i).first, i);
  EXPECT_EQ(numbers.size(), 10'000U);
}

TEST(HashNumbers, of_none_nothing_is_erased_and_of_all_nothing_is_left) {
  HashNumbers numbers;
  numbers.erase_numbers([](std::uint32_t) { return true; });
  EXPECT_FALSE(numbers.find(name(1)));
  numbers.set(name(1), 1);
  numbers.erase_numbers([](std::uint32_t) { return true; });
  EXPECT_EQ(numbers.size(), 0U);
  EXPECT_FALSE(numbers.find(name(1)));
  EXPECT_TRUE(numbers.emplace(name(1), 7).second);
}

}  // namespace
}  // namespace flopsight::base
