#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "training_logs/words_internal.h"

namespace flopsight::training_logs {
namespace {

constexpr std::string_view kWords[] = {"mfu", "tps:", "completed step", "step time", "pst"};

// Line by line, by the library's own search.
std::vector<std::size_t> expected(const std::string& text) {
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\r", begin), text.size());
    std::string line = text.substr(begin, end - begin);
    for (char& c : line) c = static_cast<char>(std::tolower(c));
    std::size_t first = std::string::npos;
    for (const std::string_view word : kWords) {
      const std::size_t at = line.find(word);
      if (at != std::string::npos) first = std::min(first, at + word.size());
    }
    if (first != std::string::npos) ends.push_back(begin + first);
    begin = end + 1;
  }
  return ends;
}

TEST(Words, every_line_with_a_word_is_found_once_whatever_stands_around) {
  const Words words(kWords);
  std::mt19937 random(3);
  constexpr std::string_view kPieces[] = {"mf", "u", "MFU", "tps", ":", "tp", "s", "completed ", "step", " time", "\n", "\r\n", "x", " ", "p"};
  for (const std::size_t pieces : {std::size_t{10}, std::size_t{300}, std::size_t{20'000}}) {
    for (int round = 0; round < 20; ++round) {
      std::string text;
      for (std::size_t i = 0; i < pieces; ++i) text += kPieces[random() % std::size(kPieces)];
      std::vector<std::size_t> ends;
      words.find_lines(text, ends);
      ASSERT_EQ(ends, expected(text));
    }
  }
}

}  // namespace
}  // namespace flopsight::training_logs
