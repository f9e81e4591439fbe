#include <chrono>
#include <iostream>
#include <new>
#include <string_view>

#include <unistd.h>

#include "run.h"

namespace {

// In any thread, and without needing memory itself. What was acknowledged is durable already.
void out_of_memory() {
  constexpr std::string_view kLine = "flopsight: out of memory, expected less input or a higher limit on memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
  _exit(flopsight::app::kExitUsage);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono;
  std::set_new_handler(out_of_memory);
  std::ios::sync_with_stdio(false);
  const flopsight::app::Env env{
      std::cout, std::cerr,
      [] {
        return flopsight::units::Instant{
            duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
      },
      isatty(STDERR_FILENO) == 1};
  const int exit_code = flopsight::app::run(argc, argv, env);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "flopsight: cannot write to standard output\n";
    return flopsight::app::kExitUsage;
  }
  return exit_code;
}
