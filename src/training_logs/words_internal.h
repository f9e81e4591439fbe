#pragma once
// Where in a large text one of some words stands, whatever its case: an automaton after Aho and Corasick, one table look-up a byte.
// It is what makes a gigabyte of lines that say nothing cheap.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace flopsight::training_logs {

class Words {
 public:
  // Words of visible ASCII, without line ends.
  explicit Words(std::span<const std::string_view> words);

  // For each line that has one of the words, the place behind the first of them. Lines end with \n or \r.
  void find_lines(std::string_view text, std::vector<std::size_t>& ends) const;

 private:
  struct Lane;
  void scan(Lane& lane, const unsigned char* text, std::vector<std::size_t>& ends) const;
  void number_states(std::span<const std::string_view> words);

  std::array<std::uint8_t, 256> class_{};
  std::size_t classes_ = 1;
  std::uint16_t first_found_ = 0;           // states from here on are those in which a word has ended
  std::vector<std::uint16_t> next_;         // state times classes_ plus class, to state times classes_
};

}  // namespace flopsight::training_logs
