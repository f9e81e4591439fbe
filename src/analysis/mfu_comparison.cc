#include "analysis/mfu_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace flopsight::analysis {
namespace {

// Up to a host, up to a rack, up to the size from which the study found most jobs within five
// points, and above.
constexpr std::uint64_t kSizes[] = {8, 64, 768};

// Two points are always on a line: their r is 1 or -1, whatever was reported.
constexpr std::size_t kCorrelatedMin = 3;

// Not by the sum of squares, which of three times 0.4 is not 0, as their mean is rounded.
bool are_alike(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

std::optional<double> pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  if (x.size() < kCorrelatedMin || are_alike(x) || are_alike(y)) return std::nullopt;
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx <= 0 || yy <= 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

}  // namespace

MfuAgreement mfu_agreement(std::span<const MfuPoint> points) {
  MfuAgreement out;
  out.job_count = points.size();
  if (points.empty()) {
    out.correlation_absent_reason = "few_jobs";
    return out;
  }
  std::vector<double> mfu, ofu;
  double error_sum = 0;
  std::uint64_t within_5 = 0, within_10 = 0;
  for (const MfuPoint& point : points) {
    mfu.push_back(point.mfu_ratio);
    ofu.push_back(point.ofu_ratio);
    const double error = std::abs(point.mfu_ratio - point.ofu_ratio);
    error_sum += error;
    // A difference of exactly so many points is within, also where the subtraction is off in its
    // last digit.
    constexpr double kRounding = 1e-12;
    within_5 += error <= 0.05 + kRounding ? 1 : 0;
    within_10 += error <= 0.10 + kRounding ? 1 : 0;
  }
  const auto n = static_cast<double>(points.size());
  out.pearson_ratio = pearson(mfu, ofu);
  out.spearman_ratio = pearson(ranks_of(mfu), ranks_of(ofu));
  if (!out.pearson_ratio || !out.spearman_ratio) {
    out.correlation_absent_reason = points.size() < kCorrelatedMin ? "few_jobs" : "no_spread";
  }
  out.error_mean_ratio = error_sum / n;
  out.within_5_points_ratio = static_cast<double>(within_5) / n;
  out.within_10_points_ratio = static_cast<double>(within_10) / n;
  return out;
}

MfuComparison compare_mfu(std::vector<MfuPoint> points) {
  MfuComparison out;
  out.all = mfu_agreement(points);
  std::vector<MfuPoint> trusted;
  std::copy_if(points.begin(), points.end(), std::back_inserter(trusted),
               [](const MfuPoint& point) { return !point.formula_known_wrong; });
  out.without_known_wrong = mfu_agreement(trusted);
  std::uint64_t from = 1;
  for (std::size_t i = 0; i <= std::size(kSizes); ++i) {
    MfuComparison::Size size;
    size.gpu_count_min = from;
    if (i < std::size(kSizes)) size.gpu_count_max = kSizes[i];
    std::vector<MfuPoint> in_class;
    for (const MfuPoint& point : trusted) {
      if (point.gpu_count >= from &&
          (!size.gpu_count_max || point.gpu_count <= *size.gpu_count_max))
        in_class.push_back(point);
    }
    size.agreement = mfu_agreement(in_class);
    if (!in_class.empty()) out.by_size.push_back(size);
    if (size.gpu_count_max) from = *size.gpu_count_max + 1;
  }
  out.points = std::move(points);
  return out;
}

}  // namespace flopsight::analysis
