#pragma once
// The last few of a course of values, in one piece of memory that is no larger than it has to be: a fleet has thousands of jobs, and a deque takes
// half a kilobyte before it holds anything. Threads: values.

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <utility>
#include <vector>

namespace flopsight::detect {

template <typename T>
class Recent {
 public:
  explicit Recent(std::size_t count_max) : count_max_(count_max) {}

  // The oldest goes where there are count_max already.
  void push_back(T value) {
    if (values_.size() == count_max_) values_.erase(values_.begin());
    if (values_.size() == values_.capacity()) values_.reserve(std::min(count_max_, std::max(kFirst, 2 * values_.size())));
    values_.push_back(std::move(value));
  }
  // Those before the first that is not of them; values ascend in what `is_old` looks at.
  template <typename IsOld>
  void drop_while(IsOld is_old) {
    values_.erase(values_.begin(), std::find_if_not(values_.begin(), values_.end(), is_old));
  }
  void pop_back() { values_.pop_back(); }
  // Gives the memory back.
  void clear() { values_ = {}; }

  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  const T& operator[](std::size_t i) const { return values_[i]; }
  const T& front() const { return values_.front(); }
  const T& back() const { return values_.back(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  static constexpr std::size_t kFirst = 8;
  std::size_t count_max_;
  std::vector<T> values_;
};

// Which of the last kCountMax were something.
template <std::size_t kCountMax>
class RecentFlags {
 public:
  // The oldest goes where there are kCountMax already.
  void push_back(bool flag) {
    flags_ <<= 1;
    flags_[0] = flag;
    size_ = std::min(size_ + 1, kCountMax);
  }
  std::size_t size() const { return size_; }
  std::size_t count() const { return flags_.count(); }  // that were

 private:
  std::bitset<kCountMax> flags_;
  std::size_t size_ = 0;
};

}  // namespace flopsight::detect
