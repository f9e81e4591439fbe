#pragma once
// A thread that sends to the engine what waits for it, and tries again, ever less often, while the engine does not take it.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "serve/ingest.h"

namespace flopsight::app {

class Delivery {
 public:
  // `ingest` is borrowed. `say` gets a line when the engine stops taking what is sent, and when it does again.
  Delivery(Ingest& ingest, std::function<void(const std::string&)> say);
  // Ends with the request that is under way; what waits stays in the outbox.
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

 private:
  void run();

  Ingest& ingest_;
  std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace flopsight::app
