#pragma once
// One program run to its end, without a shell: arguments as they are, nothing or a given text on its
// standard input, what it prints collected up to a limit, and an end to waiting.
//
// The child is the head of a process group of its own, which is killed as a whole. It inherits no
// open file and no blocked signal. Threads: any number at once; `stop` may be set by another.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
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
  std::optional<std::vector<std::string>> inherited;  // names of this process's environment that it gets; absent: all
  std::optional<std::string> input;         // on its standard input; absent: nothing
  bool drop_excess_output = false;          // read and forget what passes the limit, instead of ending it
  const std::atomic<bool>* stop = nullptr;  // borrowed; true: kill it and return
};

// How a program ended by itself.
struct ChildEnd {
  std::string output;
  std::string complaint;  // first line of its standard error
  int exit_code = 0;      // 128 and the signal's number where it was ended by one, as a shell says it
};

// Errors: kNotFound for a program that is not there, kUnavailable for a time-out or a stop, kLimit for too much output, kIo.
base::Result<ChildEnd> run_child_to_end(const std::vector<std::string>& arguments,
                                        const ChildOptions& options);

// Standard output of a program that ended with 0. `arguments` begins with its name (looked for in
// PATH) or its path. Errors: as above, and kUnavailable with the first line of its standard error for another end.
base::Result<std::string> run_child(const std::vector<std::string>& arguments,
                                    const ChildOptions& options);

}  // namespace flopsight::app
