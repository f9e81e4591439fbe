#include "base/hash_numbers.h"

#include <gtest/gtest.h>

#include <string>

namespace flopsight::base {
namespace {

Hash128 name(std::uint32_t number) { return hash128("name " + std::to_string(number)); }

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
