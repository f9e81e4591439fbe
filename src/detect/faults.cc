#include "detect/faults.h"

#include <algorithm>
#include <map>

#include "detect/words_internal.h"

namespace flopsight::detect {
namespace {

using samples::AbsentReason;

struct Row {
  FindingKind kind;
  std::uint8_t minutes;
};
constexpr std::array<Row, 9> kRows = {{{FindingKind::kThermal, 5},
                                       {FindingKind::kPowerBrake, 5},
                                       {FindingKind::kStuckClock, 10},
                                       {FindingKind::kPowerCapped, 10},
                                       {FindingKind::kCounterDead, 5},
                                       {FindingKind::kCounterFrozen, 5},
                                       {FindingKind::kProfilerPause, 3},
                                       {FindingKind::kUnseen, 10},
                                       {FindingKind::kUnmeasurable, 30}}};
enum ConditionName : std::size_t { kThermal, kBrake, kStuck, kCapped, kDead, kFrozen, kPause, kUnseen, kUnmeasurable, kNone };

constexpr double kShareMin = 0.5;
constexpr double kBusySm = 0.3;
constexpr double kStuckRatio = 0.6;
constexpr std::uint8_t kBusyMinutes = 30;
constexpr std::uint8_t kCountEnd = 2;
constexpr std::uint8_t kCountBeyond = 5;  // that the count goes beyond its limit, so that it takes some minutes to end

std::size_t condition_of(AbsentReason reason, bool measured_ever) {
  switch (reason) {
    case AbsentReason::kFrozen: return kFrozen;
    case AbsentReason::kProfilerPause: return kPause;
    case AbsentReason::kStale:
    case AbsentReason::kGap:
    case AbsentReason::kNotSeen: return kUnseen;
    case AbsentReason::kNoTensorCounter:
    case AbsentReason::kNoClock:
    case AbsentReason::kNoReferenceClock: return measured_ever ? kDead : kUnmeasurable;
    case AbsentReason::kUncalibrated:
    case AbsentReason::kUnsplitInstances: return kNone;  // nothing that somebody could mend
    case AbsentReason::kBlank:
    case AbsentReason::kNotANumber:
    case AbsentReason::kOutOfRange:
    case AbsentReason::kContradicted: return kDead;
  }
  return kNone;
}

bool is_busy(const MinutePoint& point) { return point.clock_hertz && point.sm_ratio && *point.sm_ratio >= kBusySm; }

}  // namespace

void FaultDetector::count(State& state, std::size_t condition, bool shows, const MinutePoint& point, double lost) {
  Condition* const counter = state.conditions.of(condition, shows);
  if (counter == nullptr) return;
  Condition& it = *counter;
  const std::uint8_t limit = kRows[condition].minutes;
  if (shows) {
    if (it.count == 0) it.first = point.start.unix_milliseconds;
    it.count = static_cast<std::uint8_t>(std::min(it.count + 1, limit + kCountBeyond));
    it.last = point.start.unix_milliseconds;
    it.lost_gpu_seconds += static_cast<float>(std::max(0.0, lost));
    if (point.absent) it.absent = *point.absent;
    if (is_busy(point)) {
      it.clock_hertz = static_cast<float>(*point.clock_hertz);
      it.by_setting = point.setting_ratio.value_or(0) >= kShareMin;
    }
    it.by_hardware = point.unnamed_slowdown_ratio.value_or(0) >= kShareMin;
    it.open = it.open || it.count >= limit;
    return;
  }
  if (it.count > 0) --it.count;
  if (it.count == 0 || (it.open && it.count <= kCountEnd)) it = Condition{};
}

void FaultDetector::see_work(State& state, const MinutePoint& point) {
  const bool hot = point.thermal_ratio.value_or(0) >= kShareMin, brake = point.power_brake_ratio.value_or(0) >= kShareMin;
  const bool busy = is_busy(point);
  double lost = 0;
  if (busy) {
    state.clock_best_hertz = std::max(state.clock_best_hertz, static_cast<float>(*point.clock_hertz));
    lost = (1 - *point.clock_hertz / static_cast<double>(state.clock_best_hertz)) * point.allocated_seconds;
    state.busy_minutes = static_cast<std::uint8_t>(std::min<int>(state.busy_minutes + 1, kBusyMinutes));
  }
  if (point.thermal_ratio) count(state, kThermal, hot, point, lost);
  if (point.power_brake_ratio) count(state, kBrake, brake, point, lost);
  const bool slowed = point.unnamed_slowdown_ratio.value_or(0) >= kShareMin && !hot && !brake;
  if (!busy || state.busy_minutes < kBusyMinutes) {
    if (slowed) count(state, kStuck, true, point, lost);
    return;
  }
  const bool low = *point.clock_hertz < kStuckRatio * static_cast<double>(state.clock_best_hertz) && !hot && !brake;
  const bool capped = point.power_cap_ratio.value_or(0) >= kShareMin;
  count(state, kStuck, slowed || (low && !capped), point, lost);
  count(state, kCapped, low && capped && !slowed, point, lost);
}

void FaultDetector::see(State& state, const MinutePoint& point) {
  if (point.allocated_seconds <= 0) return;
  const std::size_t absent = point.absent ? condition_of(*point.absent, state.measured_ever) : kNone;
  for (std::size_t condition = kDead; condition <= kUnmeasurable; ++condition) {
    count(state, condition, condition == absent, point, 0);
  }
  if (point.absent) return;
  state.measured_ever = true;
  see_work(state, point);
}

void FaultDetector::add(std::span<const GpuMinute> gpus) {
  if (gpus.empty()) return;
  if (gpus.back().gpu >= states_.size()) states_.resize(gpus.back().gpu + 1);
  for (const GpuMinute& gpu : gpus) {
    State& state = states_[gpu.gpu];
    state.seen = true;
    state.host = gpu.host;
    see(state, gpu.point);
    state.conditions.forget_where_all_are_over();
  }
}

Finding FaultDetector::describe(const State& state, std::size_t condition) const {
  const Condition& it = state.conditions.at(condition);
  Finding out;
  out.kind = kRows[condition].kind;
  out.severity = info_of(out.kind).severity;
  out.first = units::Instant{it.first};
  out.last = units::Instant{it.last};
  if (info_of(out.kind).data_quality) {
    out.evidence = {{"unmeasured_seconds", (out.last - out.first).value + 60}};
    const bool is_gone = condition == kDead && it.absent == AbsentReason::kNoTensorCounter;
    out.text = "unmeasured: " + (is_gone ? "its tensor counter is gone, while other metrics of it go on"
                                         : std::string(samples::absent_reason_meaning(it.absent)));
    return out;
  }
  const auto clock = static_cast<double>(it.clock_hertz), best = static_cast<double>(state.clock_best_hertz);
  out.cost = units::gpu_hours(units::Seconds(static_cast<double>(it.lost_gpu_seconds)));
  std::string clocks = "its SM clock while busy is not known";
  if (clock > 0) {
    out.evidence = {{"clock_hertz", clock}, {"clock_best_hertz", best}};
    clocks = "its SM clock was " + megahertz_text(clock) + ", its best was " + megahertz_text(best);
  }
  switch (out.kind) {
    case FindingKind::kThermal: out.text = "slowed down by heat: " + clocks; break;
    case FindingKind::kPowerBrake: out.text = "slowed down by the power brake: " + clocks; break;
    case FindingKind::kPowerCapped: out.text = "held down by its power cap: " + clocks; break;
    default: out.text = "its clock is stuck: " + clocks + (it.by_hardware ? ", by the hardware's slowdown (0x8), which is for heat, the power brake or a fast trigger on power, and does not say for which"
                                                                         : it.by_setting ? ", by a clock setting" : ", and no event reason says why"); break;
  }
  return out;
}

std::vector<Finding> FaultDetector::findings(const SubjectNames& names) const {
  struct OnHost {
    std::size_t gpus = 0;
    std::array<std::vector<std::uint32_t>, kConditions> open;
  };
  std::map<std::uint32_t, OnHost> hosts;  // with something the matter
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    for (std::size_t condition = 0; condition < kConditions; ++condition) {
      const Condition* it = states_[i].conditions.find(condition);
      if (it == nullptr) break;
      if (it->open) hosts[states_[i].host].open[condition].push_back(i);
    }
  }
  if (hosts.empty()) return {};
  for (const State& state : states_) {
    const auto host = hosts.find(state.host);
    if (state.seen && host != hosts.end()) ++host->second.gpus;
  }
  std::vector<Finding> out;
  for (const auto& entry : hosts) {
    for (std::size_t condition = 0; condition < kConditions; ++condition) {
      const std::vector<std::uint32_t>& open = entry.second.open[condition];
      const bool as_host = condition == kPause || (open.size() >= 2 && 2 * open.size() >= entry.second.gpus);
      Finding host;
      for (const std::uint32_t gpu : open) {
        Finding finding = describe(states_[gpu], condition);
        finding.host = names.hosts[entry.first];
        if (!as_host) {
          finding.gpu = names.gpu(gpu);
          out.push_back(std::move(finding));
        } else if (host.host.empty()) {
          host = std::move(finding);
        } else {
          host.first = std::min(host.first, finding.first);
          host.last = std::max(host.last, finding.last);
          if (finding.cost) *host.cost += *finding.cost;
        }
      }
      if (host.host.empty()) continue;
      host.evidence.push_back({"gpu_count", static_cast<double>(open.size())});
      host.text = std::to_string(open.size()) + " GPUs of the host; of one of them: " + host.text;
      out.push_back(std::move(host));
    }
  }
  return out;
}

}  // namespace flopsight::detect
