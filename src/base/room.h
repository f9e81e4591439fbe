#pragma once
// Room for what is kept of each GPU and job. A vector that doubles is half empty at worst, and of a million GPUs that is a lot.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace flopsight::base {

// For `count` entries, growing by a sixteenth: what is copied meanwhile is sixteen times what is there in the end.
template <typename T>
void make_room(std::vector<T>& entries, std::size_t count) {
  constexpr std::size_t kFirst = 64;
  if (count > entries.capacity()) entries.reserve(std::max(count, entries.capacity() + entries.capacity() / 16 + kFirst));
}

// So that there are at least `count` entries, new ones as `fill`.
template <typename T>
void fill_up_to(std::vector<T>& entries, std::size_t count, const T& fill = {}) {
  if (entries.size() >= count) return;
  make_room(entries, count);
  entries.resize(count, fill);
}

template <typename T>
T& add_one(std::vector<T>& entries) {
  make_room(entries, entries.size() + 1);
  return entries.emplace_back();
}

}  // namespace flopsight::base
