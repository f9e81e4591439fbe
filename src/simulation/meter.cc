#include "simulation/meter.h"

#include <algorithm>
#include <cmath>

#include "simulation/random.h"

namespace flopsight::simulation {
namespace {

// Noise of a GPU's own: a wander by time spent computing for activity (it stops when the GPU waits), by the clock on the
// wall for power. The first number is the wander's size in seconds, the second its pace.
constexpr double kTensorNoiseSeconds = 0.1, kSmNoiseSeconds = 0.02, kDramNoiseSeconds = 0.15, kLinkNoiseSeconds = 0.3;
constexpr double kComputePaceSeconds = 5, kPowerPaceSeconds = 10;
constexpr double kPowerNoiseRatioSeconds = 0.018;  // of the board's power
// How GPUs of one kind differ: in work of an uneven split, in power at a clock.
constexpr double kTensorSpread = 0.015, kPowerSpread = 0.03;
constexpr double kClockStepHertz = 15e6;

enum Trait : std::uint64_t { kWork = 101, kSilicon, kCooling, kEnergyBefore, kNoise, kWall, kClock, kXid };

double seconds_between(std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / 1000; }
double rounded(double value, double per_unit) { return std::round(value * per_unit) / per_unit; }

}  // namespace

void Integral::add(const Integral& other, double weight) {
  seconds += weight * other.seconds;
  cycles_total += weight * other.cycles_total;
  tensor_cycles_total += weight * other.tensor_cycles_total;
  sm_cycles_total += weight * other.sm_cycles_total;
  capped_seconds += weight * other.capped_seconds;
  for (std::size_t i = 0; i < kRateCount; ++i) rate_seconds[i] += weight * other.rate_seconds[i];
  for (std::size_t i = 0; i < tensor_seconds_by_cause.size(); ++i) {
    tensor_seconds_by_cause[i] += weight * other.tensor_seconds_by_cause[i];
    tensor_cycles_by_cause[i] += weight * other.tensor_cycles_by_cause[i];
  }
  for (std::size_t m = 0; m < kModeCount; ++m) {
    mode_seconds[m] += weight * other.mode_seconds[m];
    mode_sm_seconds[m] += weight * other.mode_sm_seconds[m];
    mode_tensor_seconds[m] += weight * other.mode_tensor_seconds[m];
  }
}

ClockCause clock_cause(const Level& level) {
  if ((level.event_reasons & 0x68U) != 0) return ClockCause::kThermal;
  if (level.power_capped) return ClockCause::kPower;
  return (level.event_reasons & 0x2U) != 0 ? ClockCause::kSetting : ClockCause::kNone;
}

void Meter::Counters::add(const Integral& from, double weight) {
  seconds += weight * from.seconds;
  joules += weight * from.of(Rate::kPower);
  cycles_total += weight * from.cycles_total;
  sm_cycles_total += weight * from.sm_cycles_total;
  tensor_cycles_total += weight * from.tensor_cycles_total;
  nvlink_bytes += weight * (from.of(Rate::kNvlinkTx) + from.of(Rate::kNvlinkRx));
  capped_seconds += weight * from.capped_seconds;
}

void Meter::Counters::add(const Counters& from, double weight) {
  seconds += weight * from.seconds;
  joules += weight * from.joules;
  cycles_total += weight * from.cycles_total;
  sm_cycles_total += weight * from.sm_cycles_total;
  tensor_cycles_total += weight * from.tensor_cycles_total;
  nvlink_bytes += weight * from.nvlink_bytes;
  capped_seconds += weight * from.capped_seconds;
}

XidError xid_of(const Timetable& timetable, const Segment& segment) {
  Segment died = segment;
  if (!segment.restarting) {
    if (!segment.held || segment.attempt == 0) return {};
    --died.attempt;
  }
  const Slot& slot = timetable.slots()[segment.slot];
  Draws draws(hash_of(timetable.try_key(died), kXid));
  if (draws.unit() > 0.4) return {};
  constexpr std::uint32_t kCodes[] = {31, 43, 79, 94};
  const std::uint32_t code = kCodes[draws.below(std::size(kCodes))];
  return {slot.gpu_first + static_cast<std::uint32_t>(draws.below(slot.gpu_count)), code};
}

Meter::Meter(const Timetable& timetable)
    : timetable_(timetable),
      device_(*timetable.options().device),
      may_cap_(!has_locked_clocks(timetable.options())) {
  idle_ = idle_level(device_, !may_cap_);
}

double Meter::trait(std::uint32_t gpu, std::uint64_t which) const {
  return 2 * unit_of(hash_of(timetable_.options().seed, which, gpu)) - 1;
}

Meter::Known& Meter::known(std::uint32_t slot, std::int64_t t) {
  Known* pair = &known_[slot % (known_.size() / 2) * 2];
  for (int i = 0; i < 2; ++i) {
    const Segment& s = pair[i].segment;
    if (!pair[i].valid || s.slot != slot || t < s.start || t >= s.end) continue;
    pair[i].recent = true;
    pair[1 - i].recent = false;
    return pair[i];
  }
  const int old = pair[0].recent ? 1 : 0;
  Known& fresh = pair[old];
  fresh.segment = timetable_.at(slot, t);
  fresh.valid = true;
  fresh.to = -1;
  if (fresh.segment.held) {
    fresh.workload = workload_of(timetable_, fresh.segment);
  }
  fresh.recent = true;
  pair[1 - old].recent = false;
  return fresh;
}

const Segment& Meter::segment(std::uint32_t slot, std::int64_t t) { return known(slot, t).segment; }

// A GPU whose silicon needs more power runs slower under the same cap.
double Meter::clock_hertz(std::uint32_t gpu, const Level& level) const {
  if (!level.power_capped) return level.clock_hertz;
  return std::min(level.clock_hertz * (1 - 0.4 * kPowerSpread * trait(gpu, kSilicon)),
                  device_.nvml_max_sm_clock->value);
}

void Meter::add_noise(std::uint32_t gpu, std::uint32_t slot, const Known& in, Integral& out) const {
  const bool is_odd = in.workload.is_odd(gpu);
  const Known::Spent& spent = is_odd ? in.odd : in.usual;
  const std::uint64_t key = hash_of(hash_of(timetable_.options().seed, kNoise, gpu), slot, in.workload.key);
  const auto from = wander(key, spent.compute_from_seconds / kComputePaceSeconds);
  const auto to = wander(key, spent.compute_to_seconds / kComputePaceSeconds);
  const Level& level = in.workload.level(Mode::kCompute, is_odd);
  const double clock = clock_hertz(gpu, level);
  const auto add = [&](Rate rate, double noise_seconds, unsigned channel) {
    const double more = level.rate(rate) * noise_seconds * (to[channel] - from[channel]);
    out.rate_seconds[static_cast<std::size_t>(rate)] += more;
    return more;
  };
  const double tensor_more = add(Rate::kTensor, kTensorNoiseSeconds, 0), sm_more = add(Rate::kSm, kSmNoiseSeconds, 1);
  out.tensor_cycles_total += clock * tensor_more;
  out.sm_cycles_total += clock * sm_more;
  const auto cause = static_cast<std::size_t>(clock_cause(level));
  out.tensor_seconds_by_cause[cause] += tensor_more;
  out.tensor_cycles_by_cause[cause] += clock * tensor_more;
  out.mode_tensor_seconds[static_cast<std::size_t>(Mode::kCompute)] += tensor_more;
  out.mode_sm_seconds[static_cast<std::size_t>(Mode::kCompute)] += sm_more;
  add(Rate::kDram, kDramNoiseSeconds, 2);
  add(Rate::kNvlinkTx, kLinkNoiseSeconds, 3);
  add(Rate::kNvlinkRx, kLinkNoiseSeconds, 3);
}

Meter::Known::Spent Meter::spent_in(const Known& in, std::int64_t from, std::int64_t to, bool of_odd) {
  const ModeSeconds before = in.workload.spent(seconds_between(in.segment.start, from), nullptr, of_odd);
  const ModeSeconds after = in.workload.spent(seconds_between(in.segment.start, to), nullptr, of_odd);
  Known::Spent out;
  for (std::size_t m = 0; m < kModeCount; ++m) out.seconds[m] = after[m] - before[m];
  out.compute_from_seconds = before[static_cast<std::size_t>(Mode::kCompute)];
  out.compute_to_seconds = after[static_cast<std::size_t>(Mode::kCompute)];
  return out;
}

void Meter::add_segment(std::uint32_t gpu, std::uint32_t slot, Known& in, std::int64_t from, std::int64_t to,
                        Integral& out) {
  if (in.from != from || in.to != to) {
    in.from = from;
    in.to = to;
    in.usual = {};
    if (!in.segment.held) {
      in.usual.seconds[0] = seconds_between(from, to);
    } else {
      in.usual = spent_in(in, from, to, false);
      if (in.workload.odd.gpu_count > 0) in.odd = spent_in(in, from, to, true);
    }
  }
  const bool is_odd = in.segment.held && in.workload.is_odd(gpu);
  const ModeSeconds& spent = is_odd ? in.odd.seconds : in.usual.seconds;
  const double work = 1 + kTensorSpread * trait(gpu, kWork);
  const double hunger = 1 + kPowerSpread * trait(gpu, kSilicon);
  out.seconds += seconds_between(from, to);
  for (std::size_t m = 0; m < kModeCount; ++m) {
    const double seconds = spent[m];
    if (seconds == 0) continue;
    const Level& level = in.segment.held ? in.workload.level(static_cast<Mode>(m), is_odd) : idle_;
    const double clock = clock_hertz(gpu, level);
    const double tensor_seconds = seconds * level.rate(Rate::kTensor) * work;
    out.cycles_total += clock * seconds;
    out.tensor_cycles_total += clock * seconds * level.rate(Rate::kTensor) * work;
    out.sm_cycles_total += clock * seconds * level.rate(Rate::kSm);
    const auto cause = static_cast<std::size_t>(clock_cause(level));
    out.tensor_seconds_by_cause[cause] += tensor_seconds;
    out.tensor_cycles_by_cause[cause] += clock * tensor_seconds;
    out.mode_seconds[m] += seconds;
    out.mode_sm_seconds[m] += seconds * level.rate(Rate::kSm);
    out.mode_tensor_seconds[m] += tensor_seconds;
    if (level.power_capped) out.capped_seconds += seconds;
    for (std::size_t r = 0; r < kRateCount; ++r) {
      double rate = level.rates[r];
      if (r == static_cast<std::size_t>(Rate::kTensor)) rate *= work;
      // Under the cap all boards draw the same.
      if (r == static_cast<std::size_t>(Rate::kPower) && !level.power_capped) {
        rate = std::min(rate * hunger, device_.board_power->value * 0.985);
      }
      out.rate_seconds[r] += rate * seconds;
    }
  }
  if (in.segment.held) add_noise(gpu, slot, in, out);
}

Integral Meter::integral(std::uint32_t gpu, std::uint32_t slot, std::int64_t from, std::int64_t to) {
  Integral out;
  for (std::int64_t t = from; t < to;) {
    Known& at = known(slot, t);
    const std::int64_t end = std::min(to, at.segment.end);
    add_segment(gpu, slot, at, t, end, out);
    t = end;
  }
  const std::uint64_t key = hash_of(timetable_.options().seed, kWall, gpu);
  const double noise = wander(key, seconds_between(0, to) / kPowerPaceSeconds)[0] -
                       wander(key, seconds_between(0, from) / kPowerPaceSeconds)[0];
  out.rate_seconds[static_cast<std::size_t>(Rate::kPower)] +=
      kPowerNoiseRatioSeconds * device_.board_power->value * noise;
  return out;
}

Integral Meter::whole(std::uint32_t gpu, std::int64_t from, std::int64_t to) {
  const std::uint32_t first = timetable_.first_slot(gpu), seats = timetable_.seats(gpu);
  if (seats == 1 && timetable_.slots()[first].mig_slices == 0) return integral(gpu, first, from, to);
  Integral out;
  double rest = 1;
  for (std::uint32_t i = 0; i < seats; ++i) {
    const double weight = timetable_.slots()[first + i].weight();
    out.add(integral(gpu, first + i, from, to), weight);
    rest -= weight;
  }
  if (rest < 1e-9) return out;
  const double seconds = rest * seconds_between(from, to);
  out.seconds += seconds;
  out.cycles_total += seconds * idle_.clock_hertz;
  for (std::size_t r = 0; r < kRateCount; ++r) out.rate_seconds[r] += seconds * idle_.rates[r];
  return out;
}

Readings Meter::read(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, unsigned groups) {
  Readings out;
  if ((groups & kRatios) != 0) read_ratios(gpu, slot, t, out);
  if ((groups & kInstants) != 0) read_instants(gpu, slot, t, out);
  if ((groups & kCounters) != 0) read_counters(gpu, slot, t, out);
  if ((groups & kMemory) != 0) read_memory(slot, t, out);
  if ((groups & kReported) != 0 && segment(slot, t).held) out.mfu_ratio = workload(slot, t).reported_mfu_ratio;
  return out;
}

void Meter::read_ratios(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out) {
  const std::int64_t from = t - timetable_.options().interval_milliseconds();
  // An instance has counters of its own; who shares a GPU in time reads those of the whole.
  const Integral w =
      timetable_.slots()[slot].mig_slices > 0 ? integral(gpu, slot, from, t) : whole(gpu, from, t);
  const auto ratio = [](double value) { return std::clamp(rounded(value, 1e6), 0.0, 1.0); };
  const auto mean = [&](Rate rate) { return w.of(rate) / w.seconds; };
  out.tensor_ratio = ratio(w.tensor_cycles_total / w.cycles_total);
  out.sm_ratio = ratio(w.sm_cycles_total / w.cycles_total);
  out.occupancy_ratio = ratio(mean(Rate::kOccupancy));
  out.engine_ratio = ratio(mean(Rate::kEngine));
  out.dram_ratio = ratio(mean(Rate::kDram));
  out.fp32_ratio = ratio(mean(Rate::kFp32));
  out.fp16_ratio = ratio(mean(Rate::kFp16));
  out.utilization_percent_value = std::round(100 * mean(Rate::kEngine));
  out.nvlink_tx_bytes = std::max(0.0, std::round(mean(Rate::kNvlinkTx)));
  out.nvlink_rx_bytes = std::max(0.0, std::round(mean(Rate::kNvlinkRx)));
  out.pcie_tx_bytes = std::round(mean(Rate::kPcieTx));
  out.pcie_rx_bytes = std::round(mean(Rate::kPcieRx));
}

double Meter::process_percent(std::uint32_t gpu, std::uint32_t slot, std::int64_t t) {
  const Integral w = integral(gpu, slot, t - timetable_.options().interval_milliseconds(), t);
  return std::round(100 * timetable_.slots()[slot].weight() * w.of(Rate::kEngine) / w.seconds);
}

void Meter::read_instants(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out) {
  out.power_watts = rounded(std::max(1.0, whole(gpu, t - 1000, t).of(Rate::kPower)), 1000);
  const double lately = whole(gpu, t - 20'000, t).of(Rate::kPower) / 20;
  out.temperature_celsius =
      std::round(27 + 4 * trait(gpu, kCooling) + 36 * lately / device_.board_power->value);
  const Known& at = known(slot, t);
  const Level* level = &idle_;
  if (at.segment.held) {
    Mode mode = Mode::kStartUp;
    const bool is_odd = at.workload.is_odd(gpu);
    at.workload.spent(seconds_between(at.segment.start, t), &mode, is_odd);
    level = &at.workload.level(mode, is_odd);
    if (is_odd && at.workload.odd.celsius > 0) out.temperature_celsius = std::round(at.workload.odd.celsius + trait(gpu, kCooling));
  }
  const double clock = clock_hertz(gpu, *level);
  out.clock_hertz = std::round(clock / 1e6) * 1e6;
  out.event_reasons = (level->power_capped ? 0x4 : !at.segment.held && may_cap_ ? 0x1 : 0x0) | level->event_reasons;
  const XidError xid = timetable_.options().scenario == Scenario::kRestartStorm
                           ? xid_of(timetable_, at.segment)
                           : XidError{};
  out.xid = xid.gpu == gpu ? xid.code : 0;
  if (!level->power_capped) return;
  // Under the cap the clock goes up and down by its steps many times a second, around its mean: a reading is one of them.
  Draws draws(hash_of(hash_of(timetable_.options().seed, kClock, gpu), static_cast<std::uint64_t>(t)));
  const double room = std::min(25e6, (device_.nvml_max_sm_clock->value - clock) / 2);
  const double steps = (clock + room * (draws.unit() + draws.unit() - 1)) / kClockStepHertz;
  const double up = draws.unit() < steps - std::floor(steps) ? 1 : 0;
  out.clock_hertz = kClockStepHertz * (std::floor(steps) + up);
}

// Segment by segment from the first on, so that the sum does not depend on what was asked before.
Meter::Counters Meter::counted(std::uint32_t gpu, std::uint32_t slot, std::int64_t t) {
  if (counters_.empty()) {
    by_slot_ = !may_cap_;
    counters_.resize(by_slot_ ? timetable_.slots().size() : timetable_.options().gpus);
  }
  Counters& c = counters_[by_slot_ ? slot : gpu];
  if (c.since < 0 || t < c.since) {
    c = {};
    c.since = timetable_.options().start_milliseconds();
  }
  const std::int64_t host = gpu / timetable_.options().gpus_per_host;
  while (true) {
    const Segment here = segment(slot, c.since);
    if (t < here.end) break;
    c.add(integral(gpu, slot, c.since, here.end), 1);
    if (timetable_.rebooting_host(here) == host) {
      c = {};
      c.rebooted = true;
    }
    c.since = here.end;
  }
  Counters now = c;
  if (t > c.since) now.add(integral(gpu, slot, c.since, t), 1);
  return now;
}

void Meter::read_counters(std::uint32_t gpu, std::uint32_t slot, std::int64_t t, Readings& out) {
  const std::uint32_t first = timetable_.first_slot(gpu), seats = timetable_.seats(gpu);
  const Slot& own = timetable_.slots()[slot];
  Counters whole_gpu = counted(gpu, first, t);
  Counters instance = whole_gpu;
  if (seats > 1 || own.mig_slices > 0) {
    whole_gpu = {};
    double rest = 1;
    for (std::uint32_t i = 0; i < seats; ++i) {
      const Counters part = counted(gpu, first + i, t);
      const double weight = timetable_.slots()[first + i].weight();
      whole_gpu.add(part, weight);
      rest -= weight;
      if (first + i == slot) instance = part;
    }
    const double seconds = seconds_between(timetable_.options().start_milliseconds(), t);
    if (rest > 1e-9) whole_gpu.joules += rest * seconds * idle_.rate(Rate::kPower);
    if (own.mig_slices == 0) instance = whole_gpu;
  }
  // What it had drawn since the driver was loaded, before the simulation began.
  const double before = whole_gpu.rebooted ? 0 : 1e6 * std::exp(9 * (trait(gpu, kEnergyBefore) + 1) / 2);
  out.energy_millijoules_total = std::round((before + whole_gpu.joules) * 1000);
  out.nvlink_megabytes_total = std::round(whole_gpu.nvlink_bytes / 1e6);
  out.power_violation_microseconds_total = std::round(whole_gpu.capped_seconds * 1e6);
  // Counted over the SMs of the GPU, or of the instance.
  const double sms = *device_.sm_count * (own.mig_slices > 0 ? own.weight() : 1);
  out.sm_cycles_elapsed_total = std::round(instance.cycles_total * sms);
  out.sm_cycles_active_total = std::round(instance.sm_cycles_total * sms);
  out.mma_cycles_total = std::round(instance.tensor_cycles_total * sms);
}

void Meter::read_memory(std::uint32_t slot, std::int64_t t, Readings& out) {
  const Slot& seat = timetable_.slots()[slot];
  const std::uint32_t first = slot - seat.seat;
  const double size = device_.memory_gigabytes.back() * 1020.0 * (seat.mig_slices > 0 ? seat.weight() : 1);
  double used = 0;
  const std::uint32_t seats = seat.mig_slices > 0 ? 1 : seat.seats;
  for (std::uint32_t i = 0; i < seats; ++i) {
    const Known& at = known(seat.mig_slices > 0 ? slot : first + i, t);
    if (!at.segment.held) continue;
    // It fills while the job starts up.
    const double filled =
        at.segment.starts_up ? std::min(1.0, seconds_between(at.segment.start, t) / (at.workload.start_up_seconds + 1e-9)) : 1;
    used += at.workload.framebuffer_ratio * filled / seats;
  }
  out.framebuffer_reserved_mebibytes_total = std::round(0.006 * size);
  out.framebuffer_used_mebibytes_total = std::round(used * (size - out.framebuffer_reserved_mebibytes_total));
  out.framebuffer_free_mebibytes_total =
      std::round(size) - out.framebuffer_reserved_mebibytes_total - out.framebuffer_used_mebibytes_total;
}

}  // namespace flopsight::simulation
