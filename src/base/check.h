#pragma once
// FLOPSIGHT_CHECK aborts on a mistake of ours (a broken precondition), in release builds too.
// It is not for bad input: the world's failures are Result<T> (result.h).

#include <cstdio>
#include <cstdlib>

namespace flopsight::base {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "flopsight: internal error: %s does not hold (%s:%d)\n", condition, file,
               line);
  std::abort();
}

}  // namespace flopsight::base

#define FLOPSIGHT_CHECK(condition)                                                      \
  ((condition) ? static_cast<void>(0)                                                   \
               : ::flopsight::base::check_failed(#condition, __FILE__, __LINE__))
