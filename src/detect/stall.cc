#include "detect/stall.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"

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

}  // namespace

std::optional<double> StallDetector::median_of(const Recent<Worked>& minutes, std::uint16_t Worked::*quantity) {
  std::vector<double> values;
  for (const Worked& minute : minutes) {
    if (const float value = from_half(minute.*quantity); !std::isnan(value)) values.push_back(static_cast<double>(value));
  }
  return base::median(std::move(values));
}

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
  idle_.push_back({(point.power_watts ? point.sm_ratio : Quantity()).single(), point.power_watts.single(),
                   static_cast<float>(point.link_bytes_per_second.value_or(0))});
  hung_ = hung_ || waits();
  const auto worked = static_cast<double>(before_.count());
  const bool steady = before_.size() >= kSteadyMin && worked >= kSteadyRatio * static_cast<double>(before_.size());
  if (!hung_ && (idle_minutes_ < kStallMinutes || !steady)) return;
  open_ = Stall{idle_first_,    point.start,    hung_,             *working_tensor_, idle_tensor_,
                point.sm_ratio, working_power_, point.power_watts, cost_};
}

void StallDetector::work(const MinutePoint& point) {
  open_.reset();
  const bool works = *point.tensor_ratio >= kIdleTensor;
  for (int i = 0; i < std::min(idle_minutes_, static_cast<int>(kStallHistoryMinutes)); ++i) before_.push_back(false);
  before_.push_back(works);
  idle_.clear();
  idle_minutes_ = 0;
  idle_tensor_ = 0;
  hung_ = false;
  cost_ = {};
  if (!works) return;
  worked_.push_back({to_half(point.tensor_ratio.single()), to_half(point.power_watts.single()), to_half(point.link_bytes_per_second.single())});
  // Once in five minutes is enough for levels that two hours decide.
  if (worked_.size() < kWorkedMin || (working_tensor_ && point.start.unix_milliseconds / 60'000 % 5 != 0)) return;
  std::vector<double> tensor;
  for (const Worked& each : worked_) tensor.push_back(static_cast<double>(from_half(each.tensor_ratio)));
  const auto high = tensor.begin() + static_cast<std::ptrdiff_t>(tensor.size() * 9 / 10);
  std::nth_element(tensor.begin(), high, tensor.end());
  working_tensor_ = *high;
  working_power_ = median_of(worked_, &Worked::power_watts);
  working_links_ = median_of(worked_, &Worked::link_bytes_per_second);
}

bool StallDetector::waits() const {
  if (idle_.size() < static_cast<std::size_t>(kHangMinutes) || !working_power_ || !working_links_) return false;
  double sm_least = 2, sm_most = 0;
  for (const Idle& minute : idle_) {
    if (std::isnan(minute.sm_ratio)) return false;
    const auto sm = static_cast<double>(minute.sm_ratio);
    sm_least = std::min(sm_least, sm);
    sm_most = std::max(sm_most, sm);
    if (static_cast<double>(minute.power_watts) > kWaitPowerRatio * *working_power_) return false;
    if (static_cast<double>(minute.link_bytes_per_second) > kSilentLinksRatio * *working_links_) return false;
  }
  return sm_least > kWaitSmMin && sm_most <= kWaitSmSpread * sm_least;
}

}  // namespace flopsight::detect
