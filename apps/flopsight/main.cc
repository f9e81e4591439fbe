#include <chrono>
#include <iostream>

#include <unistd.h>

#include "run.h"

int main(int argc, char** argv) {
  using namespace std::chrono;
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
