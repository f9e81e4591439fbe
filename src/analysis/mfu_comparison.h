#pragma once
// Reported MFU beside OFU over a fleet, in the figures of the published study (arXiv 2605.20799:
// 608 jobs, Pearson r = 0.53, 0.78 without the jobs whose FLOPs formula is known to be wrong, mean
// absolute error 6.2 points, 79.4 % of jobs within 10).
//
// Points are percentage points as ratios: |MFU - OFU| of 0.05 is 5 points. Absent: fewer than three
// jobs (any two points lie on a line), or no spread in one of the two, for correlations; no job, for
// the others. Threads: pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::analysis {

struct MfuPoint {
  std::string job;
  std::string name_space;
  std::uint64_t gpu_count = 0;
  double mfu_ratio = 0;
  double ofu_ratio = 0;
  bool formula_known_wrong = false;
};

struct MfuAgreement {
  std::uint64_t job_count = 0;
  std::optional<double> pearson_ratio;          // -1 to 1
  std::optional<double> spearman_ratio;         // of ranks, ties sharing theirs
  std::string_view correlation_absent_reason;   // "few_jobs", "no_spread"; empty where both are known
  std::optional<double> error_mean_ratio;       // mean of |MFU - OFU|
  std::optional<double> within_5_points_ratio;  // share of the jobs
  std::optional<double> within_10_points_ratio;
};

struct MfuComparison {
  struct Size {
    std::uint64_t gpu_count_min = 0;
    std::optional<std::uint64_t> gpu_count_max;  // inclusive; absent: no limit
    MfuAgreement agreement;                      // without jobs that are known to be wrong
  };
  MfuAgreement all;
  MfuAgreement without_known_wrong;
  std::vector<Size> by_size;  // classes with a job in them
  std::vector<MfuPoint> points;
};

MfuAgreement mfu_agreement(std::span<const MfuPoint> points);
MfuComparison compare_mfu(std::vector<MfuPoint> points);

}  // namespace flopsight::analysis
