#pragma once
// While it lives, Ctrl-C and SIGTERM end a command in order instead of killing it. One at a time. Threads: asked() by any.

#include <atomic>

namespace flopsight::app {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  const std::atomic<bool>& asked() const;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

}  // namespace flopsight::app
