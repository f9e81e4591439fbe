#include "training_logs/align.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace flopsight::training_logs {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHalfHour = 30;       // in minutes
constexpr std::int64_t kOffsetsMax = 28;     // half hours either way: the zones of the world
constexpr std::uint64_t kMinutesMin = 20;    // fewer say nothing
constexpr double kCorrelationMin = 0.5;
constexpr double kLeadMin = 0.15;            // over the next best offset
constexpr std::size_t kMinutesOfAStepMax = 24 * 60;

std::int64_t minute_of(units::Instant t) {
  return t.unix_milliseconds / kMinute - (t.unix_milliseconds % kMinute < 0 ? 1 : 0);
}

// Work by minute: each step spread over the time it took.
std::map<std::int64_t, double> work_by_minute(std::span<const LoggedStep> steps) {
  std::map<std::int64_t, double> work;
  for (const LoggedStep& step : steps) {
    if (!(step.step_seconds > 0) || !std::isfinite(step.step_seconds) || !std::isfinite(step.flops_per_second_per_gpu)) continue;
    const double length = std::min(step.step_seconds * 1000, static_cast<double>(kMinutesOfAStepMax * kMinute));
    const std::int64_t end = step.end.unix_milliseconds;
    std::int64_t at = end - static_cast<std::int64_t>(length);
    while (at < end) {
      const std::int64_t minute = minute_of({at});
      const std::int64_t to = std::min(end, (minute + 1) * kMinute);
      work[minute] += static_cast<double>(to - at) / kMinute * step.flops_per_second_per_gpu;
      at = to;
    }
  }
  return work;
}

struct Compared {
  double correlation_ratio = 0;
  std::uint64_t minutes = 0;
  bool defined = false;
};

Compared compare(const std::map<std::int64_t, double>& work, const std::map<std::int64_t, double>& activity,
                 std::int64_t offset_minutes, bool whole) {
  double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  const double scale = std::max_element(work.begin(), work.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
  std::uint64_t met = 0;
  for (const auto& [minute, ofu] : activity) {
    const std::int64_t logged = minute - offset_minutes;
    if (!whole && (logged < work.begin()->first || logged > work.rbegin()->first)) continue;
    const auto at = work.find(logged);
    met += at == work.end() ? 0U : 1U;
    const double x = at == work.end() || !(scale > 0) ? 0 : at->second / scale;
    n += 1;
    sx += x;
    sy += ofu;
    sxx += x * x;
    syy += ofu * ofu;
    sxy += x * ofu;
  }
  Compared out;
  out.minutes = static_cast<std::uint64_t>(n);
  const double spread = (n * sxx - sx * sx) * (n * syy - sy * sy);
  out.defined = met > 0 && spread > 1e-12 * n * n;
  if (out.defined) out.correlation_ratio = (n * sxy - sx * sy) / std::sqrt(spread);
  return out;
}

}  // namespace

std::optional<Alignment> align(std::span<const LoggedStep> steps, std::span<const ActivitySample> samples, bool whole) {
  const std::map<std::int64_t, double> work = work_by_minute(steps);
  std::map<std::int64_t, std::pair<double, int>> sums;
  for (const ActivitySample& sample : samples) {
    if (!std::isfinite(sample.ofu_ratio)) continue;
    auto& [sum, count] = sums[minute_of(sample.time)];
    sum += sample.ofu_ratio;
    ++count;
  }
  std::map<std::int64_t, double> activity;
  for (const auto& [minute, sum] : sums) activity[minute] = sum.first / sum.second;
  if (work.empty() || activity.empty()) return std::nullopt;

  std::optional<Alignment> best;
  double next = -1;
  std::optional<double> unshifted;
  for (std::int64_t half = -kOffsetsMax; half <= kOffsetsMax; ++half) {
    const Compared compared = compare(work, activity, half * kHalfHour, whole);
    if (!compared.defined) continue;
    if (half == 0) unshifted = compared.correlation_ratio;
    if (!best || compared.correlation_ratio > best->correlation_ratio) {
      if (best) next = std::max(next, best->correlation_ratio);
      best = Alignment{half * kHalfHour * 60, compared.correlation_ratio, 0, {}, compared.minutes, false, {}};
    } else {
      next = std::max(next, compared.correlation_ratio);
    }
  }
  if (!best) return std::nullopt;
  best->next_correlation_ratio = next;
  best->unshifted_correlation_ratio = unshifted;
  if (best->minutes < kMinutesMin) {
    best->why = "fewer than " + std::to_string(kMinutesMin) + " minutes to compare";
  } else if (best->correlation_ratio < kCorrelationMin) {
    best->why = "the log and the GPUs do not go up and down together at any offset";
  } else if (best->correlation_ratio - next < kLeadMin) {
    best->why = "another offset fits nearly as well: the work is too even to tell";
  } else {
    best->sure = true;
  }
  return best;
}

}  // namespace flopsight::training_logs
