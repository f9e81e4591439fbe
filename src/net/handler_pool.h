#pragma once
// A few threads and a bounded queue of work before them.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace flopsight::net {

class HandlerPool {
 public:
  HandlerPool(int threads, std::size_t queue_max);  // throws what std::thread throws
  ~HandlerPool();                                   // joins
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  // False: no thread is free and queue_max jobs wait already. A job must not throw. From any
  // thread.
  bool submit(std::function<void()> job);
  // Runs what is queued, then ends the threads. Takes nothing more.
  void join();

 private:
  void work();

  const std::size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::size_t idle_ = 0;  // threads without a job
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace flopsight::net
