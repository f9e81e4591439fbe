#pragma once
// Buffers that are used for a moment and again and again, by whichever thread: as many are kept as were in use at once lately, not one of each thread.
// Threads: any.

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace flopsight::base {

class SpareBuffers {
 public:
  // At most `count_max` are kept, and none with room for more than `bytes_max`.
  SpareBuffers(std::size_t count_max, std::size_t bytes_max) : count_max_(count_max), bytes_max_(bytes_max) {}

  // Borrowed for as long as it lives.
  class Buffer {
   public:
    explicit Buffer(SpareBuffers& from) : from_(from), text_(from.take()) {}
    ~Buffer() { from_.give_back(std::move(text_)); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::string& text() { return text_; }

   private:
    SpareBuffers& from_;
    std::string text_;
  };

  std::size_t spare_count() const {
    const std::scoped_lock guard(mutex_);
    return spare_.size();
  }

 private:
  std::string take() {
    const std::scoped_lock guard(mutex_);
    if (spare_.empty()) return {};
    std::string text = std::move(spare_.back());
    spare_.pop_back();
    return text;
  }
  void give_back(std::string text) {
    if (text.capacity() > bytes_max_) return;
    const std::scoped_lock guard(mutex_);
    if (spare_.size() < count_max_) spare_.push_back(std::move(text));
  }

  const std::size_t count_max_, bytes_max_;
  mutable std::mutex mutex_;
  std::vector<std::string> spare_;
};

}  // namespace flopsight::base
