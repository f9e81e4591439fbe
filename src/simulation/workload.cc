#include "simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "simulation/fleet608.h"
#include "simulation/random.h"

namespace flopsight::simulation {
namespace {

// Power of a board under load: a part that does not depend on the clock, and one that goes with its power of 2.5 (voltage
// rises with the clock). Fitted by hand to what is public of H100 SXM: 597 W at SM 0.91, tensor 0.28, DRAM 0.21
// (slurm-job-exporter issue 30 reads 572 W), and 1540 MHz in a dense GEMM at the 700 W limit (1550 to 1630).
constexpr double kClockExponent = 2.5;
constexpr double kStaticRatio = 0.16;
constexpr double kIdleRatio = 0.1;
// The cap regulates a little below the limit.
constexpr double kCapRatio = 0.985;

double dynamic_watts(const Level& level, double board_watts) {
  return board_watts * (0.3 * level.rate(Rate::kSm) + 1.2 * level.rate(Rate::kTensor) + 0.4 * level.rate(Rate::kDram));
}

// Sets clock and power of a busy mode.
void settle(Level& level, const catalog::Device& device, bool may_cap) {
  const double board_watts = device.board_power->value;
  const double clock_max = device.nvml_max_sm_clock->value;
  const double fixed_watts = kStaticRatio * board_watts;
  const double dynamic = dynamic_watts(level, board_watts);
  const double room_watts = kCapRatio * board_watts - fixed_watts;
  level.clock_hertz = clock_max;
  level.rate(Rate::kPower) = fixed_watts + dynamic;
  if (dynamic <= room_watts) return;
  level.rate(Rate::kPower) = kCapRatio * board_watts;
  if (!may_cap) return;
  level.power_capped = true;
  level.clock_hertz = clock_max * std::pow(room_watts / dynamic, 1 / kClockExponent);
}

// A waiting part beside a computing part: the same clock, as the regulator is slower than a step.
void settle_like(Level& level, const Level& busy, const catalog::Device& device) {
  const double board_watts = device.board_power->value;
  const double slow = busy.clock_hertz / device.nvml_max_sm_clock->value;
  level.clock_hertz = busy.clock_hertz;
  level.power_capped = busy.power_capped;
  level.rate(Rate::kPower) =
      kStaticRatio * board_watts + dynamic_watts(level, board_watts) * std::pow(slow, kClockExponent);
}

Level level_of(double tensor, double sm, double engine, double dram) {
  Level level;
  level.rate(Rate::kTensor) = tensor;
  level.rate(Rate::kSm) = sm;
  level.rate(Rate::kOccupancy) = sm * 0.35;
  level.rate(Rate::kEngine) = engine;
  level.rate(Rate::kDram) = dram;
  level.rate(Rate::kFp32) = tensor * 0.05 + sm * 0.04;
  level.rate(Rate::kFp16) = tensor * 0.02;
  level.rate(Rate::kPcieTx) = 2e5 + 3e8 * engine;
  level.rate(Rate::kPcieRx) = 1e5 + 5e8 * engine;
  return level;
}

void training(Workload& w, Level& compute, Level& wait, bool large, Draws& draws) {
  w.step_seconds = large ? draws.log_between(1.5, 40) : draws.log_between(0.4, 4);
  w.compute_ratio = large ? draws.between(0.72, 0.93) : draws.between(0.5, 0.82);
  w.jitter_ratio = 0.05;
  w.cycle_seconds = draws.log_between(600, 2700);
  w.checkpoint_seconds = draws.between(15, 75);
  w.evaluate_seconds = draws.unit() < 0.5 ? draws.between(20, 120) : 0;
  const double tensor = large ? draws.between(0.42, 0.76) : draws.between(0.18, 0.5);
  compute = level_of(tensor, draws.between(0.9, 0.97), 0.985, draws.between(0.2, 0.45));
  wait = level_of(tensor * 0.05, draws.between(0.25, 0.6), 0.96, draws.between(0.08, 0.2));
  const double links = large ? draws.between(2e10, 8e10) : draws.between(1e9, 2e10);
  for (const Rate rate : {Rate::kNvlinkTx, Rate::kNvlinkRx}) {
    compute.rate(rate) = links;
    wait.rate(rate) = links * 4;
  }
  w.framebuffer_ratio = draws.between(0.7, 0.96);
}

void inference(Workload& w, Level& compute, Level& wait, Draws& draws) {
  // Bursts of requests. Decoding reads memory and leaves the tensor pipes almost idle.
  w.step_seconds = draws.log_between(4, 50);
  w.compute_ratio = draws.between(0.3, 0.8);
  w.jitter_ratio = 0.15;
  w.cycle_seconds = 3600;
  compute = level_of(draws.between(0.03, 0.16), draws.between(0.55, 0.85), 0.95, draws.between(0.45, 0.75));
  wait = level_of(0.004, 0.05, 0.2, 0.04);
  compute.rate(Rate::kNvlinkTx) = compute.rate(Rate::kNvlinkRx) = 2e9;
  w.framebuffer_ratio = 0.9;
}

void notebook(Workload& w, Level& compute, Level& wait, Draws& draws) {
  w.step_seconds = draws.between(500, 1500);
  w.compute_ratio = draws.between(0.01, 0.08);
  w.jitter_ratio = 0.4;
  w.cycle_seconds = 7200;
  compute = level_of(draws.between(0.05, 0.3), 0.6, 0.9, 0.2);
  wait = level_of(0, 0, 0, 0);
  wait.rate(Rate::kPcieTx) = 2e5;
  w.framebuffer_ratio = draws.between(0.02, 0.3);
}

// Training time `x` (pauses taken out) as waiting for input, computing and waiting for others.
struct StepTimes {
  double compute = 0;
  double input = 0;
  Mode mode = Mode::kWait;
};
double step_begins(const Workload& w, double n) {
  if (n <= 0) return 0.0;
  return w.step_seconds * (n + w.jitter_ratio * unit_of(hash_of(w.key, static_cast<std::uint64_t>(n))));
}
StepTimes steps(const Workload& w, double x, bool of_odd) {
  const auto begins = [&](double n) { return step_begins(w, n); };
  double n = std::floor(x / w.step_seconds);
  if (x < begins(n)) n -= 1;
  const double each = (of_odd ? w.odd_compute_ratio : w.compute_ratio) * w.step_seconds;
  const double input = w.input_ratio * w.step_seconds;
  const double into = x - begins(n);
  return {n * each + std::clamp(into - input, 0.0, each), n * input + std::min(into, input),
          into < input ? Mode::kInput : into < input + each ? Mode::kCompute : Mode::kWait};
}

}  // namespace

double idle_watts(const catalog::Device& device) { return kIdleRatio * device.board_power->value; }

Level idle_level(const catalog::Device& device, bool locked_clock) {
  Level level;
  level.rate(Rate::kPower) = idle_watts(device);
  level.rate(Rate::kPcieTx) = 1.2e5;
  level.rate(Rate::kPcieRx) = 2e4;
  // What nvidia-smi shows of an idle Hopper is 345 MHz; other generations fall to 210.
  const double idle_clock = device.architecture == "Hopper" ? 345e6 : 210e6;
  level.clock_hertz = locked_clock ? device.nvml_max_sm_clock->value : idle_clock;
  return level;
}

namespace {

Level& level_in(std::array<Level, kModeCount>& levels, Mode mode) { return levels[static_cast<std::size_t>(mode)]; }

// Sets tensor activity while computing, and the clocks and powers that follow from it.
void set_levels(Workload& w, double tensor, const catalog::Device& device, bool may_cap) {
  Level &compute = level_in(w.levels, Mode::kCompute), &wait = level_in(w.levels, Mode::kWait);
  if (is_training(w.kind)) {
    compute.rate(Rate::kTensor) = tensor;
    compute.rate(Rate::kFp32) = tensor * 0.05 + compute.rate(Rate::kSm) * 0.04;
    compute.rate(Rate::kFp16) = tensor * 0.02;
    wait.rate(Rate::kTensor) = tensor * 0.05;
  }
  compute.power_capped = false;
  settle(compute, device, may_cap);
  settle_like(wait, compute, device);
  Level& evaluate = level_in(w.levels, Mode::kEvaluate);
  evaluate = level_of(compute.rate(Rate::kTensor) * 0.6, 0.85, 0.97, compute.rate(Rate::kDram));
  settle(evaluate, device, may_cap);
}

// The attempt as it would go if nothing happened to it.
// `warm`: a link of a chain of jobs that hand over to each other; it starts and ends in a hundredth of its length at most, and writes its
// checkpoints while it goes on.
Workload base_workload(const Segment& segment, std::uint64_t key, const catalog::Device& device, bool may_cap, bool warm) {
  Workload w;
  w.kind = segment.kind;
  w.length_seconds = static_cast<double>(segment.job_end - segment.job_start) / 1000;
  // Attempts of one job are alike; only the moments of their steps differ.
  w.key = hash_of(key, 77 + segment.attempt);
  Draws draws(hash_of(key, 78));
  const double longest = w.length_seconds * (warm ? 0.01 : 0.1);
  w.start_up_seconds = std::min(draws.between(35, 180), longest);
  w.final_seconds = std::min(draws.between(25, 60), longest);
  Level &compute = level_in(w.levels, Mode::kCompute), &wait = level_in(w.levels, Mode::kWait);
  switch (segment.kind) {
    case JobKind::kPretrain:
    case JobKind::kMoePretrain:
    case JobKind::kHybridPretrain: training(w, compute, wait, true, draws); break;
    case JobKind::kFinetune: training(w, compute, wait, false, draws); break;
    case JobKind::kInference: inference(w, compute, wait, draws); break;
    case JobKind::kNotebook: notebook(w, compute, wait, draws); break;
  }
  if (warm) {
    w.evaluate_seconds = 0;
    w.checkpoint_seconds = std::min(w.checkpoint_seconds, 5.0);
  }
  set_levels(w, compute.rate(Rate::kTensor), device, may_cap);
  Level &checkpoint = level_in(w.levels, Mode::kCheckpoint), &start_up = level_in(w.levels, Mode::kStartUp);
  checkpoint = level_of(0, 0.02, 0.06, 0.02);
  checkpoint.rate(Rate::kPcieTx) = 6e9;
  start_up = level_of(0, 0.01, 0.04, 0.01);
  start_up.rate(Rate::kPcieRx) = 4e9;
  for (Level* level : {&checkpoint, &start_up}) settle(*level, device, may_cap);
  w.levels[0] = idle_level(device, !may_cap);
  return w;
}

double seconds_in(const ModeSeconds& spent, Mode mode) { return spent[static_cast<std::size_t>(mode)]; }

double delivered_in(const Workload& w, Mode mode, bool of_odd, const catalog::Device& device) {
  const Level& level = w.level(mode, of_odd);
  return level.rate(Rate::kTensor) * level.clock_hertz / device.tensor_peak_clock->value;
}

// Over the whole of it, of a GPU that is like the others.
double whole_ofu(const Workload& w, const catalog::Device& device) {
  const ModeSeconds spent = w.spent(w.length_seconds);
  double delivered = 0;
  for (const Mode mode : {Mode::kCompute, Mode::kWait, Mode::kEvaluate}) {
    delivered += seconds_in(spent, mode) * delivered_in(w, mode, false, device);
  }
  return delivered / w.length_seconds;
}

double step_ofu(const Workload& w, bool of_odd, const catalog::Device& device) {
  const double compute = of_odd ? w.odd_compute_ratio : w.compute_ratio;
  return compute * delivered_in(w, Mode::kCompute, of_odd, device) +
         (1 - compute - w.input_ratio) * delivered_in(w, Mode::kWait, of_odd, device);
}

// OFU of its steps, over all of the job's GPUs.
double mean_step_ofu(const Workload& w, std::uint32_t gpus, const catalog::Device& device) {
  const double odd = static_cast<double>(w.odd.gpu_count) / gpus;
  return odd * (odd > 0 ? step_ofu(w, true, device) : 0) + (1 - odd) * step_ofu(w, false, device);
}

// Tensor activity for which the whole job reaches an OFU. OFU is nearly in proportion to it, but for the clock under the power cap.
void aim_at(Workload& w, double ofu_ratio, const catalog::Device& device) {
  double tensor = w.level(Mode::kCompute).rate(Rate::kTensor);
  for (int i = 0; i < 40; ++i) {
    const double reached = whole_ofu(w, device);
    if (std::abs(reached - ofu_ratio) < 1e-9) return;
    tensor = std::min(tensor * ofu_ratio / reached, 0.9);
    set_levels(w, tensor, device, true);
  }
}

// The published OFU, in the scenarios that repeat a published case; what formats reach in mixed_precision is assumed: the faster the format, the
// larger the share of a step in which the tensor pipes wait for memory and network.
std::optional<double> aimed_ofu(const Timetable& timetable, const Segment& segment) {
  if (!timetable.is_subject(segment.slot)) return std::nullopt;
  switch (timetable.options().scenario) {
    case Scenario::kMoeMiscount: return 0.2558;
    case Scenario::kHybridMiscount: return 0.1556;
    case Scenario::kFleet608: return fleet608_job(timetable.options().seed, segment.slot).ofu_ratio;
    case Scenario::kMixedPrecision: {
      const double reached = segment.format == Format::kNvfp4 ? 0.30 : segment.format == Format::kFp8 ? 0.36 : 0.43;
      return reached * (0.93 + 0.14 * unit_of(hash_of(timetable.key(segment), 79)));
    }
    default: return std::nullopt;
  }
}

// What the job reports at each step while nothing is the matter. Without a known mistake it is the true MFU.
double base_reported_mfu(const Timetable& timetable, const Segment& segment, double mfu_ratio) {
  if (!timetable.is_subject(segment.slot)) return mfu_ratio;
  switch (timetable.options().scenario) {
    case Scenario::kMoeMiscount: return 0.5427;
    case Scenario::kHybridMiscount: return 0.2451;
    case Scenario::kFleet608: return fleet608_job(timetable.options().seed, segment.slot).reported_mfu_ratio;
    default: return mfu_ratio;
  }
}

// Steps of other length, GPUs that are not like the others.
void apply_condition(Workload& w, const Timetable& timetable, const Segment& segment) {
  const catalog::Device& device = *timetable.options().device;
  const Level &compute = w.level(Mode::kCompute), &wait = w.level(Mode::kWait);
  Level &input = level_in(w.levels, Mode::kInput), &hung = level_in(w.levels, Mode::kHung);
  input = level_of(0, 0.015, 0.03, 0.01);
  input.rate(Rate::kPcieRx) = 1.2e9;
  settle_like(input, compute, device);
  // A kernel that waits for the others on a few SMs.
  hung = level_of(0, 0.12, 1, 0.003);
  hung.rate(Rate::kPcieTx) = hung.rate(Rate::kPcieRx) = 1e5;
  settle(hung, device, true);
  w.hung = segment.condition == Condition::kHung;
  const double longer = step_stretch(segment.condition);
  w.step_seconds *= longer;
  w.compute_ratio /= longer;
  w.input_ratio = 1 - 1 / longer;
  w.odd = odd_gpus(timetable, segment);
  if (w.odd.gpu_count == 0) return;
  // The slow ones take 1/factor of the time for the same cycles, at a lower clock or with a pipe that waits for memory.
  const double own = w.compute_ratio / w.odd.speed_ratio;
  const double step = 1 + own - w.compute_ratio;
  w.step_seconds *= step;
  w.compute_ratio /= step;
  w.odd_compute_ratio = own / step;
  w.odd_levels = w.levels;
  Level &slow = level_in(w.odd_levels, Mode::kCompute), &slow_wait = level_in(w.odd_levels, Mode::kWait);
  if (segment.condition == Condition::kSlowMemory) {
    slow.rate(Rate::kTensor) = compute.rate(Rate::kTensor) * w.odd.speed_ratio;
    return;
  }
  const double board_watts = device.board_power->value;
  slow.clock_hertz = compute.clock_hertz * w.odd.speed_ratio;
  slow.power_capped = false;
  slow.event_reasons = w.odd.event_reasons;
  slow.rate(Rate::kPower) =
      kStaticRatio * board_watts +
      dynamic_watts(slow, board_watts) * std::pow(slow.clock_hertz / device.nvml_max_sm_clock->value, kClockExponent);
  slow_wait = wait;
  settle_like(slow_wait, slow, device);
  slow_wait.event_reasons = w.odd.event_reasons;
}

}  // namespace

double cycles_per_useful_cycle(Format format) {
  constexpr double kTiles = 1.02;
  return kTiles * (format == Format::kNvfp4 ? 1.06 : format == Format::kFp8 ? 1.03 : 1);
}

bool has_locked_clocks(const Options& options) {
  return options.scenario == Scenario::kSharedGpus || options.scenario == Scenario::kMig;
}

Workload workload_of(const Timetable& timetable, const Segment& segment) {
  const Options& options = timetable.options();
  const catalog::Device& device = *options.device;
  const bool warm = options.scenario == Scenario::kMixedPrecision && timetable.is_subject(segment.slot);
  Workload w = base_workload(segment, timetable.key(segment), device, !has_locked_clocks(options), warm);
  const bool reports = options.reports_mfu() && is_training(segment.kind);
  if (reports) {
    if (const auto aim = aimed_ofu(timetable, segment)) aim_at(w, *aim, device);
    const double ofu = step_ofu(w, false, device);
    w.reported_mfu_ratio = base_reported_mfu(timetable, segment, ofu / cycles_per_useful_cycle(segment.format)) / ofu;
    // Until here a factor, as steps may get longer.
    apply_condition(w, timetable, segment);
    w.ofu_ratio = mean_step_ofu(w, timetable.slots()[segment.slot].gpu_count, device);
    w.mfu_ratio = w.ofu_ratio / cycles_per_useful_cycle(segment.format);
    w.reported_mfu_ratio *= w.ofu_ratio;
  }
  if (!segment.is_first() || !segment.is_last()) {
    w.key = hash_of(w.key, segment.stretch);
    w.length_seconds = static_cast<double>(segment.end - segment.start) / 1000;
    if (!segment.starts_up) w.start_up_seconds = 0;
    if (!segment.is_last()) w.final_seconds = 0;
  }
  return w;
}

std::uint64_t Workload::step_count() const {
  if (hung) return 0;
  const double main_seconds = length_seconds - final_seconds - start_up_seconds;
  const double train_seconds = cycle_seconds - evaluate_seconds - checkpoint_seconds;
  const double cycles = std::floor(main_seconds / cycle_seconds);
  const double trained = cycles * train_seconds + std::min(main_seconds - cycles * cycle_seconds, train_seconds);
  auto n = static_cast<std::uint64_t>(trained / step_seconds);
  if (n > 0 && step_begins(*this, static_cast<double>(n)) > trained) --n;
  return n;
}

double Workload::step_begins_seconds(std::uint64_t n) const {
  const double train_seconds = cycle_seconds - evaluate_seconds - checkpoint_seconds;
  const double trained = step_begins(*this, static_cast<double>(n));
  const double cycles = std::floor(trained / train_seconds);
  return start_up_seconds + cycles * cycle_seconds + (trained - cycles * train_seconds);
}

double Workload::step_length_seconds(std::uint64_t n) const {
  return step_begins(*this, static_cast<double>(n + 1)) - step_begins(*this, static_cast<double>(n));
}

ModeSeconds Workload::spent(double x_seconds, Mode* now, bool of_odd) const {
  ModeSeconds out{};
  const auto add = [&](Mode mode, double seconds) { out[static_cast<std::size_t>(mode)] += seconds; };
  const auto is = [&](Mode mode) {
    if (now != nullptr) *now = mode;
  };
  const double x = std::clamp(x_seconds, 0.0, length_seconds);
  if (hung) {
    is(Mode::kHung);
    add(Mode::kHung, x);
    return out;
  }
  add(Mode::kStartUp, std::min(x, start_up_seconds));
  if (x < start_up_seconds) {
    is(Mode::kStartUp);
    return out;
  }
  const double main_seconds = length_seconds - final_seconds - start_up_seconds;
  const double y = std::min(x - start_up_seconds, main_seconds);
  const double train_seconds = cycle_seconds - evaluate_seconds - checkpoint_seconds;
  const double cycles = std::floor(y / cycle_seconds);
  const double into = y - cycles * cycle_seconds;
  const double trained = cycles * train_seconds + std::min(into, train_seconds);
  const StepTimes times = steps(*this, trained, of_odd);
  add(Mode::kInput, times.input);
  add(Mode::kCompute, times.compute);
  add(Mode::kWait, trained - times.input - times.compute);
  add(Mode::kEvaluate, cycles * evaluate_seconds + std::clamp(into - train_seconds, 0.0, evaluate_seconds));
  add(Mode::kCheckpoint, cycles * checkpoint_seconds + std::max(into - train_seconds - evaluate_seconds, 0.0));
  if (into < train_seconds) {
    is(times.mode);
  } else {
    is(into < train_seconds + evaluate_seconds ? Mode::kEvaluate : Mode::kCheckpoint);
  }
  if (final_seconds > 0 && x - start_up_seconds >= main_seconds) {
    add(Mode::kCheckpoint, x - start_up_seconds - main_seconds);
    is(Mode::kCheckpoint);
  }
  return out;
}

}  // namespace flopsight::simulation
