#include "simulation/workload.h"

#include <algorithm>
#include <cmath>

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

// Training time `x` (pauses taken out) as computing and waiting time.
struct StepTimes {
  double compute = 0;
  bool computing = false;
};
StepTimes steps(const Workload& w, double x) {
  const auto begins = [&](double n) {
    if (n <= 0) return 0.0;
    return w.step_seconds * (n + w.jitter_ratio * unit_of(hash_of(w.key, static_cast<std::uint64_t>(n))));
  };
  double n = std::floor(x / w.step_seconds);
  if (x < begins(n)) n -= 1;
  const double each = w.compute_ratio * w.step_seconds;
  const double into = x - begins(n);
  return {n * each + std::min(into, each), into < each};
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

Workload workload_of(const Segment& segment, std::uint64_t key, const catalog::Device& device, bool may_cap) {
  Workload w;
  w.length_seconds = static_cast<double>(segment.end - segment.start) / 1000;
  // Attempts of one job are alike; only the moments of their steps differ.
  w.key = hash_of(key, 77 + segment.attempt);
  Draws draws(hash_of(key, 78));
  const double longest = w.length_seconds * 0.1;
  w.start_up_seconds = std::min(draws.between(35, 180), longest);
  w.final_seconds = std::min(draws.between(25, 60), longest);
  Level &compute = w.levels[static_cast<std::size_t>(Mode::kCompute)],
        &wait = w.levels[static_cast<std::size_t>(Mode::kWait)],
        &evaluate = w.levels[static_cast<std::size_t>(Mode::kEvaluate)],
        &checkpoint = w.levels[static_cast<std::size_t>(Mode::kCheckpoint)],
        &start_up = w.levels[static_cast<std::size_t>(Mode::kStartUp)];
  switch (segment.kind) {
    case JobKind::kPretrain: training(w, compute, wait, true, draws); break;
    case JobKind::kFinetune: training(w, compute, wait, false, draws); break;
    case JobKind::kInference: inference(w, compute, wait, draws); break;
    case JobKind::kNotebook: notebook(w, compute, wait, draws); break;
  }
  settle(compute, device, may_cap);
  settle_like(wait, compute, device);
  evaluate = level_of(compute.rate(Rate::kTensor) * 0.6, 0.85, 0.97, compute.rate(Rate::kDram));
  checkpoint = level_of(0, 0.02, 0.06, 0.02);
  checkpoint.rate(Rate::kPcieTx) = 6e9;
  start_up = level_of(0, 0.01, 0.04, 0.01);
  start_up.rate(Rate::kPcieRx) = 4e9;
  for (Level* level : {&evaluate, &checkpoint, &start_up}) settle(*level, device, may_cap);
  w.levels[0] = idle_level(device, !may_cap);
  return w;
}

ModeSeconds Workload::spent(double x_seconds, Mode* now) const {
  ModeSeconds out{};
  const auto add = [&](Mode mode, double seconds) { out[static_cast<std::size_t>(mode)] += seconds; };
  const auto is = [&](Mode mode) {
    if (now != nullptr) *now = mode;
  };
  const double x = std::clamp(x_seconds, 0.0, length_seconds);
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
  const StepTimes times = steps(*this, trained);
  add(Mode::kCompute, times.compute);
  add(Mode::kWait, trained - times.compute);
  add(Mode::kEvaluate, cycles * evaluate_seconds + std::clamp(into - train_seconds, 0.0, evaluate_seconds));
  add(Mode::kCheckpoint, cycles * checkpoint_seconds + std::max(into - train_seconds - evaluate_seconds, 0.0));
  if (into < train_seconds) {
    is(times.computing ? Mode::kCompute : Mode::kWait);
  } else {
    is(into < train_seconds + evaluate_seconds ? Mode::kEvaluate : Mode::kCheckpoint);
  }
  if (x - start_up_seconds >= main_seconds) {
    add(Mode::kCheckpoint, x - start_up_seconds - main_seconds);
    is(Mode::kCheckpoint);
  }
  return out;
}

}  // namespace flopsight::simulation
