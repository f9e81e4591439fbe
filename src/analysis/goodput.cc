#include "analysis/goodput.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"

namespace flopsight::analysis {
namespace {

using training_logs::Step;

}  // namespace

std::optional<RepeatedSteps> repeated_steps(std::span<const Step> steps) {
  std::vector<double> seconds;
  RepeatedSteps out;
  bool numbered = false;
  const Step* last = nullptr;  // of the attempt at hand, by number
  for (const Step& step : steps) {
    if (!step.step) continue;
    numbered = true;
    if (step.step_seconds && !step.excluded) seconds.push_back(*step.step_seconds);
    if (last != nullptr && step.attempt != last->attempt) {
      ++out.restarts;
      if (*step.step <= *last->step) out.steps += static_cast<std::uint64_t>(*last->step - *step.step + 1);
      last = nullptr;
    }
    if (last == nullptr || *step.step > *last->step) last = &step;
  }
  const auto median = base::median(std::move(seconds));
  if (!numbered || !median) return std::nullopt;
  out.seconds = static_cast<double>(out.steps) * *median;
  return out;
}

std::vector<units::Instant> precision_switches(std::span<const Step> steps) {
  // Formats differ by a factor of two; a few steps in a row are no misprint.
  constexpr double kOther = 1.4;
  constexpr std::size_t kRun = 5;
  struct Point {
    units::Instant time;
    double peak = 0;
  };
  std::vector<Point> points;
  for (const Step& step : steps) {
    std::optional<double> peak = step.peak_flops_per_second;
    if (!peak && step.mfu_ratio && step.flops_per_second_per_gpu && *step.mfu_ratio > 0) peak = *step.flops_per_second_per_gpu / *step.mfu_ratio;
    if (peak && *peak > 0 && step.time && !step.excluded) points.push_back({*step.time, *peak});
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.time < b.time; });
  std::vector<units::Instant> out;
  if (points.empty()) return out;
  const auto differs = [](double a, double b) { return std::max(a, b) > kOther * std::min(a, b); };
  double now = points.front().peak;
  for (std::size_t i = 0; i + kRun <= points.size(); ++i) {
    const auto run = std::span(points).subspan(i, kRun);
    const bool other = std::all_of(run.begin(), run.end(), [&](const Point& p) { return differs(p.peak, now) && !differs(p.peak, run.front().peak); });
    if (!other) continue;
    out.push_back(run.front().time);
    now = run.front().peak;
  }
  return out;
}

double young_interval_seconds(double checkpoint_seconds, double failure_seconds) { return std::sqrt(2 * checkpoint_seconds * failure_seconds); }

double daly_interval_seconds(double checkpoint_seconds, double failure_seconds) {
  if (checkpoint_seconds >= 2 * failure_seconds) return failure_seconds;
  const double share = checkpoint_seconds / (2 * failure_seconds);
  return young_interval_seconds(checkpoint_seconds, failure_seconds) * (1 + std::sqrt(share) / 3 + share / 9) - checkpoint_seconds;
}

Goodput goodput_of(const Phases& phases, const std::optional<RepeatedSteps>& repeated) {
  Goodput out;
  out.allocated_seconds = std::accumulate(phases.gpu_seconds.begin(), phases.gpu_seconds.end(), 0.0);
  out.starting_seconds = phases.of(Phase::kStartUp);
  out.checkpointing_seconds = phases.of(Phase::kCheckpoint);
  out.restarting_seconds = phases.of(Phase::kRestart);
  out.stalled_seconds = phases.of(Phase::kStalled);
  out.slowed_seconds = phases.of(Phase::kSlowed);
  out.ending_seconds = phases.of(Phase::kIdleTail);
  out.unmeasured_seconds = phases.of(Phase::kUnmeasured);
  const double worked = phases.of(Phase::kTraining) + phases.of(Phase::kEvaluation);
  const double held_wall_seconds = phases.wall_seconds - phases.away_wall_seconds;
  const double gpus = held_wall_seconds > 0 ? out.allocated_seconds / held_wall_seconds : 0;
  out.failure_count = phases.failures.size();
  const auto seen = [](const Phases::Failure& failure) { return failure.checkpoint_seen; };
  if (repeated) {
    out.lost_seconds = repeated->seconds * gpus;
    out.lost_source = "log";
    out.lost_steps = repeated->steps;
  } else if (phases.failures.empty()) {
    out.lost_seconds = 0;
    out.lost_source = "no failure seen";
  } else if (std::all_of(phases.failures.begin(), phases.failures.end(), seen)) {
    out.lost_seconds = 0;
    for (const Phases::Failure& failure : phases.failures) *out.lost_seconds += failure.since_checkpoint_wall_seconds * gpus;
    out.lost_source = "checkpoints seen";
  }
  // Never more than was done: a log may reach back before the window.
  if (out.lost_seconds) out.lost_seconds = std::min(*out.lost_seconds, worked);
  out.productive_seconds = worked - out.lost_seconds.value_or(0);
  const double measured = out.allocated_seconds - out.unmeasured_seconds;
  if (measured > 0 && phases.absent_reason.empty()) {
    out.goodput_ratio = out.productive_seconds / measured;
    out.ettr_ratio = *out.goodput_ratio * held_wall_seconds / phases.wall_seconds;
  }
  if (phases.checkpoint_count > 0) {
    const auto count = static_cast<double>(phases.checkpoint_count);
    out.checkpoint_wall_seconds = phases.checkpoint_wall_seconds / count;
    if (gpus > 0) out.checkpoint_interval_wall_seconds = worked / gpus / count;
  }
  if (out.failure_count == 0 || held_wall_seconds <= 0) return out;
  out.failure_interval_wall_seconds = held_wall_seconds / static_cast<double>(out.failure_count);
  if (!out.checkpoint_wall_seconds) return out;
  out.young_interval_wall_seconds = young_interval_seconds(*out.checkpoint_wall_seconds, *out.failure_interval_wall_seconds);
  out.daly_interval_wall_seconds = daly_interval_seconds(*out.checkpoint_wall_seconds, *out.failure_interval_wall_seconds);
  return out;
}

}  // namespace flopsight::analysis
