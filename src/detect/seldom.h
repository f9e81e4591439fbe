#pragma once
// Counters of what may be the matter with one GPU, in no memory while nothing is, as with most GPUs of a fleet. Threads: values.

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

namespace flopsight::detect {

// A counter has a `count`, which is 0 while it counts nothing.
template <typename Counter, std::size_t kCounters>
class Seldom {
 public:
  // Null where none of them counts anything.
  const Counter* find(std::size_t which) const { return counters_ ? &(*counters_)[which] : nullptr; }
  // Where find() finds it.
  const Counter& at(std::size_t which) const { return (*counters_)[which]; }
  // To count with; null where none counts anything and this one is not to begin.
  Counter* of(std::size_t which, bool begins) {
    if (!counters_ && begins) counters_ = std::make_unique<std::array<Counter, kCounters>>();
    return counters_ ? &(*counters_)[which] : nullptr;
  }
  void forget_where_all_are_over() {
    if (counters_ && std::all_of(counters_->begin(), counters_->end(), [](const Counter& it) { return it.count == 0; })) counters_.reset();
  }

 private:
  std::unique_ptr<std::array<Counter, kCounters>> counters_;
};

}  // namespace flopsight::detect
