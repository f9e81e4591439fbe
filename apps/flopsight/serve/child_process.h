#pragma once
// One program run to its end, without a shell: arguments as they are, nothing on its standard
// input, what it prints collected up to a limit, and an end to waiting.
//
// The child is the head of a process group of its own, which is killed as a whole. It inherits no
// open file and no blocked signal. Threads: any number at once; `stop` may be set by another.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::app {

struct ChildOptions {
  std::chrono::milliseconds timeout{60'000};
  std::size_t output_bytes_max = std::size_t{1} << 30;
  std::vector<std::pair<std::string, std::string>>
      environment;                          // beside and instead of this process's own
  const std::atomic<bool>* stop = nullptr;  // borrowed; true: kill it and return
};

// Standard output of a program that ended with 0. `arguments` begins with its name (looked for in
// PATH) or its path. Errors: kNotFound for a program that is not there, kUnavailable with the first
// line of its standard error for another end, a time-out or a stop, kLimit for too much output,
// kIo.
base::Result<std::string> run_child(const std::vector<std::string>& arguments,
                                    const ChildOptions& options);

}  // namespace flopsight::app
