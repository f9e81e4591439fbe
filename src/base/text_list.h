#pragma once
// Texts by number, one after another in one piece of memory: a string of its own takes 32 bytes and more beside its letters. 4 GiB of them at most.
// Threads: one at a time; several may read.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/packed_name.h"

namespace flopsight::base {

class TextList {
 public:
  // The next number, from 0 on.
  void push_back(std::string_view text);
  void replace(std::size_t number, std::string_view text);
  // Until the next push_back() or replace().
  std::string_view operator[](std::size_t number) const;
  std::size_t size() const { return starts_.size(); }

  std::size_t memory_bytes() const { return bytes_.capacity() + starts_.capacity() * sizeof(std::uint32_t); }

 private:
  void append(std::size_t number, std::string_view text);
  void forget_replaced();

  std::vector<char> bytes_;  // of each its length, seven bits a byte, and itself
  std::vector<std::uint32_t> starts_;
  std::size_t replaced_bytes_ = 0;
};

// Names, packed (packed_name.h).
class NameList {
 public:
  void push_back(std::string_view name) { texts_.push_back(packed_name(name)); }
  void replace(std::size_t number, std::string_view name) { texts_.replace(number, packed_name(name)); }
  std::string operator[](std::size_t number) const { return unpacked_name(texts_[number]); }
  std::string_view packed(std::size_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  TextList texts_;
};

}  // namespace flopsight::base
