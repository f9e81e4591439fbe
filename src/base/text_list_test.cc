#include "base/text_list.h"

#include <gtest/gtest.h>

namespace flopsight::base {
namespace {

TEST(TextList, gives_back_texts_of_any_length_and_byte) {
  TextList list;
  std::vector<std::string> all = {"", "a", std::string("\0\x80\xff", 3)};
  for (const std::size_t length : {126U, 127U, 128U, 129U, 16'383U, 16'384U, 100'000U}) all.emplace_back(length, static_cast<char>(length));
  for (const std::string& text : all) list.push_back(text);
  ASSERT_EQ(list.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(list[i], all[i]) << i;
}

TEST(TextList, texts_that_are_replaced_again_and_again_take_no_more_room) {
  constexpr std::size_t kTexts = 3'000;
  const auto text = [](std::size_t i, int round) { return std::string(i % 300, 'x') + std::to_string(i) + "/" + std::to_string(round); };
  TextList list;
  for (std::size_t i = 0; i < kTexts; ++i) list.push_back(text(i, 0));
  const std::size_t once = list.memory_bytes();
  for (int round = 1; round <= 20; ++round) {
    for (std::size_t i = 0; i < kTexts; i += 2) list.replace(i, text(i, round));
    for (std::size_t i = 0; i < kTexts; ++i) ASSERT_EQ(list[i], text(i, i % 2 == 0 ? round : 0));
  }
  EXPECT_LT(list.memory_bytes(), 2 * once);
}

TEST(NameList, names_by_number) {
  constexpr std::string_view kUuid = "GPU-0123abcd-4567-89ef-0a1b-c2d3e4f50617";
  NameList names;
  names.push_back(kUuid);
  names.push_back("");
  names.push_back("host/3");
  ASSERT_EQ(names.size(), 3);
  EXPECT_EQ(names[0], kUuid);
  EXPECT_EQ(names[1], "");
  EXPECT_EQ(names[2], "host/3");
  names.replace(1, kUuid);
  EXPECT_EQ(names[1], kUuid);
  EXPECT_EQ(names.packed(1).size(), kPackedUuidBytes);
}

}  // namespace
}  // namespace flopsight::base
