#include "detect/peers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "detect/words_internal.h"

namespace flopsight::detect {
namespace {

enum Compared : std::size_t { kClock, kSm, kOfu, kPower, kTensor };
enum SignName : std::size_t { kSlow, kStraggles, kCool };

constexpr double kDeviations = 6;
constexpr double kMadToDeviation = 1.4826;
constexpr double kClockMargin = 0.08, kSmMargin = 0.08, kOfuMargin = 0.15, kPowerMargin = 0.25;
constexpr double kTensorMin = 0.05;
constexpr double kTensorMore = 1.03;  // of the median: more work is no waiting
constexpr std::uint8_t kCountMax = 15;
constexpr std::uint8_t kCountEnd = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool compared(const GpuMinute& gpu) { return !gpu.mig && !gpu.point.shared; }

double middle(std::vector<double>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

constexpr std::array<Quantity MinutePoint::*, 5> kQuantities = {
    &MinutePoint::clock_hertz, &MinutePoint::sm_ratio, &MinutePoint::ofu_ratio, &MinutePoint::power_watts, &MinutePoint::tensor_ratio};

double margin(std::size_t quantity, double median) {
  switch (quantity) {
    case kClock: return kClockMargin * median;
    case kSm: return kSmMargin;
    case kOfu: return kOfuMargin * median;
    default: return kPowerMargin * median;
  }
}

}  // namespace

// The middle of an even number is the upper of two here: it is what one pass finds, and among five or more it does not matter.
std::array<PeerDetector::Bounds, 5> PeerDetector::bounds_of(std::span<const GpuMinute> gpus) {
  std::array<Bounds, 5> out;
  for (std::size_t q = 0; q < out.size(); ++q) {
    values_.clear();
    for (const GpuMinute& gpu : gpus) {
      if (!compared(gpu)) continue;
      if (const Quantity value = gpu.point.*kQuantities[q]) values_.push_back(*value);
    }
    out[q] = Bounds{0, -kInfinity, kInfinity};
    if (values_.size() < kPeersMin) continue;
    const double median = middle(values_);
    for (double& value : values_) value = std::abs(value - median);
    const double reach = std::max(kDeviations * kMadToDeviation * middle(values_), margin(q, median));
    out[q] = Bounds{median, median - reach, median + reach};
  }
  return out;
}

void PeerDetector::align(std::span<const GpuMinute> gpus) {
  std::size_t at = 0;
  bool same = states_.size() == gpus.size();
  for (const GpuMinute& gpu : gpus) {
    if (!same) break;
    same = states_[at++].gpu == gpu.gpu;
  }
  if (same) return;
  std::vector<State> next;
  next.reserve(gpus.size());
  at = 0;
  for (const GpuMinute& gpu : gpus) {
    while (at < states_.size() && states_[at].gpu < gpu.gpu) ++at;
    if (at < states_.size() && states_[at].gpu == gpu.gpu) {
      next.push_back(std::move(states_[at]));
    } else {
      next.push_back(State{gpu.gpu, gpu.host, {}});
    }
  }
  states_ = std::move(next);
}

void PeerDetector::count(State& state, std::size_t which, bool shows, double value, double median, units::Instant minute, double lost) {
  Sign* const counter = state.signs.of(which, shows);
  if (counter == nullptr) return;
  Sign& sign = *counter;
  if (shows) {
    if (sign.count == 0) {
      sign.first = minute.unix_milliseconds;
      sign.lost_gpu_seconds = 0;
    }
    sign.count = static_cast<std::uint8_t>(std::min<int>(sign.count + 1, kCountMax));
    sign.own.value = static_cast<float>(value);
    sign.peers.value = static_cast<float>(median);
    sign.last = minute.unix_milliseconds;
    sign.lost_gpu_seconds += static_cast<float>(lost);
  } else if (sign.count > 0) {
    --sign.count;
  }
  if (sign.count >= kSignMinutes) sign.open = true;
  if (sign.count > kCountEnd) return;
  // What never became a finding begins anew only at nothing; what was one ends here.
  if (sign.open) sign = Sign{};
}

void PeerDetector::see(State& state, const MinutePoint& point, const std::array<Bounds, 5>& bounds, double job_seconds) {
  const double own_seconds = point.allocated_seconds;
  bool other = false;
  if (point.clock_hertz && bounds[kClock].value > 0) {
    const bool slow = *point.clock_hertz < bounds[kClock].value_min;
    other = slow;
    count(state, kSlow, slow, *point.clock_hertz, bounds[kClock].value, point.start,
          (1 - *point.clock_hertz / bounds[kClock].value) * own_seconds);
  }
  if (point.sm_ratio && point.tensor_ratio && bounds[kSm].value > 0) {
    const bool less_work = point.ofu_ratio && *point.ofu_ratio < bounds[kOfu].value_min;
    const bool busiest = *point.sm_ratio > bounds[kSm].value_max && *point.tensor_ratio <= kTensorMore * bounds[kTensor].value;
    // The whole job waits for the time that it is busy beyond the others.
    const double lost = less_work ? own_seconds * (1 - *point.ofu_ratio / bounds[kOfu].value)
                                  : job_seconds * (1 - bounds[kSm].value / *point.sm_ratio);
    other = other || busiest || less_work;
    const bool by_work = less_work && !busiest;
    count(state, kStraggles, busiest || less_work, by_work ? *point.ofu_ratio : *point.sm_ratio,
          by_work ? bounds[kOfu].value : bounds[kSm].value, point.start, lost);
  }
  if (point.power_watts && bounds[kPower].value > 0) {
    const bool cool = !other && *point.power_watts < bounds[kPower].value_min;
    count(state, kCool, cool, *point.power_watts, bounds[kPower].value, point.start, 0);
  }
}

void PeerDetector::add(std::span<const GpuMinute> gpus) {
  if (gpus.size() < kPeersMin) {
    states_.clear();
    return;
  }
  align(gpus);
  const std::array<Bounds, 5> bounds = bounds_of(gpus);
  if (bounds[kTensor].value < kTensorMin) return;
  double job_seconds = 0;
  for (const GpuMinute& gpu : gpus) job_seconds += gpu.point.allocated_seconds;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!compared(gpus[i])) continue;
    see(states_[i], gpus[i].point, bounds, job_seconds);
    states_[i].signs.forget_where_all_are_over();
  }
}

Finding PeerDetector::describe(std::size_t sign, const Sign& shown) const {
  constexpr std::array kKinds = {FindingKind::kSlowClock, FindingKind::kStraggler, FindingKind::kLowPower};
  Finding out;
  out.kind = kKinds[sign];
  out.severity = info_of(out.kind).severity;
  out.first = units::Instant{shown.first};
  out.last = units::Instant{shown.last};
  const auto value = static_cast<double>(shown.own.value), median = static_cast<double>(shown.peers.value);
  if (sign == kSlow) {
    out.evidence = {{"clock_hertz", value}, {"peers_clock_median_hertz", median}};
    out.text = "its SM clock is " + megahertz_text(value) + ", that of its peers in the job " + megahertz_text(median);
  } else if (sign == kStraggles && value < median) {
    out.evidence = {{"ofu_ratio", value}, {"peers_ofu_median_ratio", median}};
    out.text = "its OFU is " + percent(value) + ", that of its peers in the job " + percent(median);
  } else if (sign == kStraggles) {
    out.evidence = {{"sm_active_ratio", value}, {"peers_sm_active_median_ratio", median}};
    out.text = "its SMs are busy " + percent(value) + " of the time over the same work for which its peers take " + percent(median) +
               "; they wait for it";
  } else {
    out.evidence = {{"power_watts", value}, {"peers_power_median_watts", median}};
    out.text = "it draws " + in_words("%.0f W", value) + ", its peers in the job " + in_words("%.0f W", median);
  }
  if (sign != kCool) out.cost = units::gpu_hours(units::Seconds(static_cast<double>(shown.lost_gpu_seconds)));
  return out;
}

std::vector<Finding> PeerDetector::findings(const std::string& job, const SubjectNames& names) const {
  struct OnHost {
    std::size_t gpus = 0;
    std::array<std::vector<const State*>, kSigns> open;
  };
  std::map<std::uint32_t, OnHost> hosts;
  for (const State& state : states_) {
    OnHost& host = hosts[state.host];
    ++host.gpus;
    for (std::size_t sign = 0; sign < kSigns; ++sign) {
      const Sign* shown = state.signs.find(sign);
      if (shown != nullptr && shown->open) host.open[sign].push_back(&state);
    }
  }
  std::vector<Finding> out;
  for (const auto& entry : hosts) {
    for (std::size_t sign = 0; sign < kSigns; ++sign) {
      const std::vector<const State*>& open = entry.second.open[sign];
      const bool as_host = open.size() >= 2 && 2 * open.size() >= entry.second.gpus;
      for (const State* state : open) {
        Finding finding = describe(sign, state->signs.at(sign));
        finding.job = job;
        finding.host = names.hosts[entry.first];
        if (as_host) {
          finding.evidence.push_back({"gpu_count", static_cast<double>(open.size())});
          finding.text = std::to_string(open.size()) + " GPUs of the host; of one of them: " + finding.text;
          for (const State* each : open) finding.first = std::min(finding.first, units::Instant{each->signs.at(sign).first});
          out.push_back(std::move(finding));
          break;
        }
        finding.gpu = names.gpu(state->gpu);
        out.push_back(std::move(finding));
      }
    }
  }
  return out;
}

}  // namespace flopsight::detect
