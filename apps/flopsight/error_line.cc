#include "error_line.h"

#include <ostream>

#include "base/text.h"

namespace flopsight::app {
namespace {

constexpr std::size_t kLineBytesMax = 2'000;

}  // namespace

std::string error_line(std::string_view command, std::string_view message) {
  return "flopsight " + std::string(command) + ": " + base::printable(base::trim(message), kLineBytesMax) + "\n";
}

int fail(const Env& env, std::string_view command, std::string_view message) {
  env.err << error_line(command, message);
  return kExitUsage;
}

}  // namespace flopsight::app
