#include "net/handler_pool.h"

#include <algorithm>
#include <utility>

namespace flopsight::net {

HandlerPool::HandlerPool(int threads, std::size_t queue_max)
    : queue_max_(queue_max), idle_(static_cast<std::size_t>(std::max(threads, 1))) {
  const std::size_t count = idle_;  // which the first threads change already
  try {
    while (threads_.size() < count) threads_.emplace_back([this] { work(); });
  } catch (...) {
    join();
    throw;
  }
}

HandlerPool::~HandlerPool() { join(); }

bool HandlerPool::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    // A job that a free thread is about to take does not wait.
    if (closed_ || (queue_.size() >= idle_ && queue_.size() - idle_ >= queue_max_)) return false;
    queue_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void HandlerPool::join() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HandlerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> job = std::move(queue_.front());
    queue_.pop_front();
    --idle_;
    lock.unlock();
    job();
    job = nullptr;  // what it holds may lock things of its own
    lock.lock();
    ++idle_;
  }
}

}  // namespace flopsight::net
