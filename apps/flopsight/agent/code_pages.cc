#include "agent/code_pages.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/mman.h>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::app {
namespace {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_file = false;  // of a file, and read-only
};

// "7f01c0de1000-7f01c0de9000 r-xp 00026000 08:01 1234   /lib/libc.so.6"; nothing for a line of another kind.
std::optional<Mapping> mapping_of(std::string_view line) {
  Mapping mapping;
  const auto [dash, first] = std::from_chars(line.data(), line.data() + line.size(), mapping.begin, 16);
  if (first != std::errc() || dash == line.data() + line.size() || *dash != '-') return std::nullopt;
  const auto [space, second] = std::from_chars(dash + 1, line.data() + line.size(), mapping.end, 16);
  if (second != std::errc() || line.data() + line.size() - space < 5) return std::nullopt;
  mapping.is_file = space[1] == 'r' && space[2] == '-' && space[4] == 'p' && line.find(" /") != line.npos;
  return mapping;
}

}  // namespace

void let_go_of_code_pages() {
  const auto smaps = base::read_file("/proc/self/smaps", std::size_t{16} << 20);
  if (!smaps.ok()) return;
  std::optional<Mapping> current;
  for (const std::string& line : base::split(*smaps, '\n')) {
    if (const auto mapping = mapping_of(line)) {
      current = mapping;
    } else if (current && current->is_file && line.starts_with("Anonymous:")) {
      const bool is_copy = base::trim(std::string_view(line).substr(10)) == "0 kB";
      // The kernel's interface takes an address as a pointer.
      if (is_copy) static_cast<void>(madvise(reinterpret_cast<void*>(current->begin), current->end - current->begin, MADV_DONTNEED));
      current.reset();
    }
  }
}

}  // namespace flopsight::app
