#pragma once
// What was wrong with the data: one line per kind, with how often and where first. It travels beside the
// answer and is shown under it.
//
// Threads: one log, one thread. Memory: bounded by the number of codes, not by what went wrong.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::samples {

// The code of what was kept and cannot be read, of which several tell.
inline constexpr std::string_view kNotReadable = "kept_not_readable";

struct QualityEntry {
  std::string code;  // "blank", "malformed_line", …: a key that scripts may rely on
  std::uint64_t count = 0;
  std::string where;  // the first place, and how many further distinct ones were noted
  std::string meaning;
};

class QualityLog {
 public:
  void add(std::string_view code, std::string_view where, std::uint64_t count = 1);
  void merge(const QualityLog& other);
  std::uint64_t count(std::string_view code) const;
  // Ordered by code. `where` names up to three places.
  std::vector<QualityEntry> entries() const;

 private:
  struct Noted {
    std::uint64_t count = 0;
    std::vector<std::string> places;  // the first three distinct
  };
  std::map<std::string, Noted, std::less<>> noted_;
};

// The sentence for a code; reasons of absence (absent.h) are codes too.
std::string_view quality_meaning(std::string_view code);

}  // namespace flopsight::samples
