#pragma once
// What a command may touch of the world, so that tests can run it whole.

#include <functional>
#include <iosfwd>

#include "units/time.h"

namespace flopsight::app {

struct Env {
  std::ostream& out;  // the answer, and nothing else
  std::ostream& err;  // one line on failure; progress on a terminal
  std::function<units::Instant()> now;
  bool err_is_terminal = false;
};

// 0 done; 1 the answer is a failure; 2 wrong usage or bad input.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

}  // namespace flopsight::app
