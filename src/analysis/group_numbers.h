#pragma once
// Which group of a report by job, user, team or namespace a holder falls into, as a number. May be kept from one report to the next over the same
// table of holders: for tens of thousands of jobs, making and comparing their keys is a large part of a question.
// Threads: one at a time.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "samples/gpu.h"

namespace flopsight::analysis {

enum class GroupBy { kJob, kUser, kTeam, kNamespace, kHost, kGpu, kModel, kFamily };

// Whether groups are of holders, and not of GPUs.
constexpr bool is_of_holders(GroupBy by) {
  return by == GroupBy::kJob || by == GroupBy::kUser || by == GroupBy::kTeam || by == GroupBy::kNamespace;
}

class GroupNumbers {
 public:
  // 0 is nobody, and a holder of whom nothing that the grouping names is known.
  static constexpr std::uint32_t kNobody = 0;

  // `by` is_of_holders(). `holder` is what `id` stands for, and stays so until forget().
  std::uint32_t of(GroupBy by, samples::HolderId id, const samples::Holder& holder);
  // Some holder has changed.
  void forget() { *this = {}; }

 private:
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();
  struct One {
    std::vector<std::uint32_t> of_holder;
    std::unordered_map<std::string, std::uint32_t> of_key;
  };
  std::array<One, 4> by_;
  std::string key_;
};

}  // namespace flopsight::analysis
