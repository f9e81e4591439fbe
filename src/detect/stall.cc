#include "detect/stall.h"

#include <algorithm>

#include "base/median.h"
#include "detect/regression.h"

namespace flopsight::detect {
namespace {

constexpr std::size_t kWorkedMin = 10;
constexpr std::size_t kSteadyMin = 30;
constexpr double kSteadyRatio = 0.75;
constexpr double kIdleRatio = 0.1;
constexpr double kWaitSmMin = 0.02;
constexpr double kWaitSmSpread = 1.2;
constexpr double kWaitPowerRatio = 0.45;
constexpr double kSilentLinksRatio = 0.01;

std::optional<double> median_of(const std::deque<MinutePoint>& points, std::optional<double> MinutePoint::*quantity) {
  std::vector<double> values;
  for (const MinutePoint& point : points) {
    if (point.*quantity) values.push_back(*(point.*quantity));
  }
  return base::median(std::move(values));
}

}  // namespace

void StallDetector::add(const MinutePoint& point) {
  if (last_seen_ && point.start <= *last_seen_) return;
  last_seen_ = point.start;
  if (!point.tensor_ratio || point.shared) return;
  const bool idle = working_tensor_ && *point.tensor_ratio < kIdleRatio * *working_tensor_ && *point.tensor_ratio < kIdleTensor;
  if (!idle) {
    work(point);
    return;
  }
  if (idle_minutes_ == 0) idle_first_ = point.start;
  ++idle_minutes_;
  idle_tensor_ += (*point.tensor_ratio - idle_tensor_) / idle_minutes_;
  cost_ += units::gpu_hours(units::Seconds(point.allocated_seconds));
  idle_.push_back(point);
  if (idle_.size() > static_cast<std::size_t>(kHangMinutes)) idle_.pop_front();
  hung_ = hung_ || waits();
  const auto worked = static_cast<double>(std::count(before_.begin(), before_.end(), true));
  const bool steady = before_.size() >= kSteadyMin && worked >= kSteadyRatio * static_cast<double>(before_.size());
  if (!hung_ && (idle_minutes_ < kStallMinutes || !steady)) return;
  open_ = Stall{idle_first_,    point.start,    hung_,             *working_tensor_, idle_tensor_,
                point.sm_ratio, working_power_, point.power_watts, cost_};
}

void StallDetector::work(const MinutePoint& point) {
  open_.reset();
  const bool works = *point.tensor_ratio >= kIdleTensor;
  before_.insert(before_.end(), static_cast<std::size_t>(idle_minutes_), false);
  before_.push_back(works);
  while (before_.size() > kHistoryMinutes) before_.pop_front();
  idle_.clear();
  idle_minutes_ = 0;
  idle_tensor_ = 0;
  hung_ = false;
  cost_ = {};
  if (!works) return;
  worked_.push_back(point);
  if (worked_.size() > kHistoryMinutes) worked_.pop_front();
  // Once in five minutes is enough for levels that two hours decide.
  if (worked_.size() < kWorkedMin || (working_tensor_ && point.start.unix_milliseconds / 60'000 % 5 != 0)) return;
  std::vector<double> tensor;
  for (const MinutePoint& each : worked_) tensor.push_back(*each.tensor_ratio);
  const auto high = tensor.begin() + static_cast<std::ptrdiff_t>(tensor.size() * 9 / 10);
  std::nth_element(tensor.begin(), high, tensor.end());
  working_tensor_ = *high;
  working_power_ = median_of(worked_, &MinutePoint::power_watts);
  working_links_ = median_of(worked_, &MinutePoint::link_bytes_per_second);
}

bool StallDetector::waits() const {
  if (idle_.size() < static_cast<std::size_t>(kHangMinutes) || !working_power_ || !working_links_) return false;
  double sm_least = 2, sm_most = 0;
  for (const MinutePoint& point : idle_) {
    if (!point.sm_ratio || !point.power_watts) return false;
    sm_least = std::min(sm_least, *point.sm_ratio);
    sm_most = std::max(sm_most, *point.sm_ratio);
    if (*point.power_watts > kWaitPowerRatio * *working_power_) return false;
    if (point.link_bytes_per_second.value_or(0) > kSilentLinksRatio * *working_links_) return false;
  }
  return sm_least > kWaitSmMin && sm_most <= kWaitSmSpread * sm_least;
}

}  // namespace flopsight::detect
