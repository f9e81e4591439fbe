#pragma once
// Levels of runs, by family: what a run is compared with (detect/family.h), also runs that ended. As text they outlive the process, in the book of jobs.
//
// Limits: kRunsKept runs of a family, the last ones; kFamiliesMax families, then new ones are left out; kWrittenMax levels in the text.
// Threads: values.

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::app {

class FamilyLevels {
 public:
  static constexpr std::size_t kRunsKept = 50;
  static constexpr std::size_t kFamiliesMax = 10'000;
  static constexpr std::size_t kWrittenMax = 20'000;

  // The level of a run now; told again it is replaced.
  void keep(const std::string& family, const std::string& job, double ofu_ratio);
  // Of the family's other runs.
  std::vector<double> others(const std::string& family, const std::string& job) const;
  bool empty() const { return families_.empty(); }

  // [["llama-# | ann | …", "llama-7", 0.41], …]
  std::string text() const;
  // What cannot be read of it is left out.
  void restore(std::string_view text);

 private:
  struct Level {
    std::string job;
    double ofu_ratio = 0;
  };
  std::map<std::string, std::deque<Level>> families_;
};

}  // namespace flopsight::app
