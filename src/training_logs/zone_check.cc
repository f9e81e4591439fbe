#include "training_logs/zone_check.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/median.h"

namespace flopsight::training_logs {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kZonesSpan = 14 * 60 * kMinute;  // as far as align() looks
// A line stands for the time since the last one, unless that is so much longer than usual: then it was a pause.
constexpr double kUsualGaps = 3;
constexpr double kCorrelationMin = 0.5;
constexpr double kLeadMin = 0.15;
// Steps outside of a job's life are as good as a lead. Its first and last minutes may be: a slot is closed late, clocks differ.
constexpr std::int64_t kLifeSlack = 5 * kMinute;
constexpr std::uint64_t kOutsideMin = 15;
constexpr double kOutsideLeadMin = 0.02;
constexpr std::uint64_t kMinutesMin = 20;

// Steps with the time that they stand for.
std::vector<LoggedStep> logged_of(std::span<const Step> steps) {
  std::vector<const Step*> timed;
  for (const Step& step : steps) {
    if (step.time && step.is_zone_assumed) timed.push_back(&step);
  }
  std::vector<double> gaps;
  for (std::size_t i = 1; i < timed.size(); ++i) gaps.push_back(std::max(0.0, (*timed[i]->time - *timed[i - 1]->time).value));
  const double usual = base::median(gaps).value_or(0);
  const bool have_rates = std::all_of(timed.begin(), timed.end(), [](const Step* step) { return step->flops_per_second_per_gpu.has_value(); });
  std::vector<LoggedStep> out;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    LoggedStep step;
    step.end = *timed[i]->time;
    step.step_seconds = i == 0 ? usual : std::min(gaps[i - 1], kUsualGaps * usual);
    if (have_rates) step.flops_per_second_per_gpu = *timed[i]->flops_per_second_per_gpu;
    out.push_back(step);
  }
  return out;
}

std::uint64_t minutes_outside(const std::vector<LoggedStep>& steps, units::Window life, std::int64_t offset_milliseconds) {
  std::set<std::int64_t> minutes;
  for (const LoggedStep& step : steps) {
    const std::int64_t at = step.end.unix_milliseconds + offset_milliseconds;
    if (at < life.start.unix_milliseconds - kLifeSlack || at > life.end.unix_milliseconds + kLifeSlack) minutes.insert(at / kMinute);
  }
  return minutes.size();
}

}  // namespace

std::optional<ZoneCheck> check_zone(std::span<const Step> steps, std::span<const ActivitySample> activity, units::Window life) {
  const std::vector<LoggedStep> logged = logged_of(steps);
  std::vector<ActivitySample> samples(activity.begin(), activity.end());
  // A job that holds no GPUs does not work on them.
  for (std::int64_t back = kMinute; back <= kZonesSpan; back += kMinute) {
    samples.push_back({{life.start.unix_milliseconds - back}, 0});
    samples.push_back({{life.end.unix_milliseconds + back - kMinute}, 0});
  }
  const auto aligned = align(logged, samples, true);
  if (!aligned) return std::nullopt;
  ZoneCheck check;
  check.offset_seconds = aligned->offset_seconds;
  check.correlation_ratio = aligned->correlation_ratio;
  check.unshifted_correlation_ratio = aligned->unshifted_correlation_ratio;
  check.minutes = aligned->minutes;
  check.minutes_outside = minutes_outside(logged, life, 0);
  const double lead = aligned->correlation_ratio - aligned->unshifted_correlation_ratio.value_or(-1);
  const bool is_outside = check.minutes_outside >= kOutsideMin && minutes_outside(logged, life, aligned->offset_seconds * 1000) < kOutsideMin;
  check.is_doubtful = aligned->offset_seconds != 0 && check.minutes >= kMinutesMin && logged.size() >= kMinutesMin &&
                      check.correlation_ratio >= kCorrelationMin && (lead >= kLeadMin || (is_outside && lead >= kOutsideLeadMin));
  return check;
}

}  // namespace flopsight::training_logs
