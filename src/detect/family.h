#pragma once
// A job against the other runs of its family (analysis/families.h says which those are): nothing of the job's own past is needed, so a run that
// is slow from its first step on is found too.
//
// The job is below when its level is under 85 % of the family's median, and by more than 3.5 robust deviations (median absolute deviation
// times 1.4826; Iglewicz and Hoaglin, "How to detect and handle outliers", 1993) of its logarithms; five other runs are needed. Threads: pure.

#include <optional>
#include <span>

namespace flopsight::detect {

inline constexpr std::size_t kFamilyRunsMin = 5;

struct FamilyShortfall {
  double family_ofu_ratio = 0;  // median of the other runs
  double size_ratio = 0;        // the job's level by it
  double deviation_ratio = 0;  // robust deviations below
};

// `ofu_ratio`: median of an hour at least in which the job worked; `others`: levels of the other runs, of which those under kLevelMin are left out.
std::optional<FamilyShortfall> family_shortfall(double ofu_ratio, std::span<const double> others);

}  // namespace flopsight::detect
