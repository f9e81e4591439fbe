#pragma once
// Room for what is kept of each GPU and job. A vector that doubles is half empty at worst, and of a million GPUs that is a lot.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/packed_name.h"

namespace flopsight::base {

// For `count` entries, growing by an eighth.
template <typename T>
void make_room(std::vector<T>& entries, std::size_t count) {
  constexpr std::size_t kFirst = 64;
  if (count > entries.capacity()) entries.reserve(std::max(count, entries.capacity() + entries.capacity() / 8 + kFirst));
}

template <typename T>
T& add_one(std::vector<T>& entries) {
  make_room(entries, entries.size() + 1);
  return entries.emplace_back();
}

// Names by number, packed and one after another in one piece of memory: a string of its own takes as much again as a UUID. 4 GiB of them at most.
class NameList {
 public:
  void push_back(std::string_view name) {
    const std::string packed = packed_name(name);
    make_room(bytes_, bytes_.size() + packed.size());
    bytes_.insert(bytes_.end(), packed.begin(), packed.end());
    add_one(ends_) = static_cast<std::uint32_t>(bytes_.size());
  }
  std::size_t size() const { return ends_.size(); }
  std::string operator[](std::size_t i) const {
    const std::size_t start = i == 0 ? 0 : ends_[i - 1];
    return unpacked_name({bytes_.data() + start, ends_[i] - start});
  }

 private:
  std::vector<char> bytes_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace flopsight::base
