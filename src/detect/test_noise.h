#pragma once
// Job-days of minutes that do not exist, for tests of detectors: what a training job's OFU looks like when nothing is the matter with it. Assumed,
// not measured; docs/detection.md repeats it:
//   level 0.15 to 0.55; independent noise of 1 to 3 % a minute, one in a hundred minutes four times that; first-order autoregressive noise (0.9 a
//   minute) of 0.5 to 2 %; a wander of 2 % over three hours
//   start-up of 3 to 20 minutes; a checkpoint every 20 to 90 minutes that stops work for 0.3 to 3 minutes
//   in half of the jobs an evaluation every 1 to 4 hours, 2 to 12 minutes at 55 to 100 % of the level
//   a restart a day on average, 3 to 15 minutes; the exporter silent twice a day, for 1 to 5 minutes
// One job in ten serves requests instead: independent noise of 8 to 15 %, no pauses.
// Threads: values.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "detect/series.h"

namespace flopsight::detect::test {

inline constexpr std::int64_t kNoiseStart = 1'767'225'600'000;
inline constexpr std::int64_t kMinuteMilliseconds = 60'000;

class Draws {  // SplitMix64 (Steele, Lea, Flood 2014)
 public:
  explicit Draws(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  double unit() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1p-53;
  }
  double between(double low, double high) { return low + (high - low) * unit(); }
  // Box and Muller 1958.
  double normal() { return std::sqrt(-2 * std::log(1 - unit())) * std::cos(6.283185307179586 * unit()); }

 private:
  std::uint64_t state_;
};

// What happens to it beside noise: from `start_seconds` on it delivers `size_ratio` of what it would.
struct Drop {
  double start_seconds = 0;
  double size_ratio = 1;
};

class NoisyJob {
 public:
  NoisyJob(std::uint64_t seed, bool may_serve) : draws_(seed) {
    level_ = draws_.between(0.15, 0.55);
    white_ = draws_.between(0.01, 0.03);
    correlated_ = draws_.between(0.005, 0.02);
    start_up_ = draws_.between(3, 20);
    checkpoint_every_ = draws_.between(20, 90);
    checkpoint_minutes_ = draws_.between(0.3, 3);
    if (draws_.unit() < 0.5) evaluate_every_ = draws_.between(60, 240);
    evaluate_minutes_ = draws_.between(2, 12);
    evaluate_ratio_ = draws_.between(0.55, 1);
    serves_ = draws_.unit() < 0.1 && may_serve;
    if (serves_) white_ = draws_.between(0.08, 0.15);
    next_checkpoint_ = start_up_ + checkpoint_every_;
    next_evaluation_ = start_up_ + evaluate_every_ * 0.97;
  }

  // Of one GPU of eight that are alike. Minutes follow each other.
  MinutePoint minute(std::int64_t number, Drop drop = {}) {
    const auto now = static_cast<double>(number);
    slow_ += -slow_ / 180 + 0.02 * std::sqrt(2.0 / 180) * draws_.normal();
    fast_ = 0.9 * fast_ + correlated_ * std::sqrt(1 - 0.81) * draws_.normal();
    const double wild = draws_.unit() < 0.01 ? 4 : 1;
    double ratio = std::exp(slow_ + fast_ + wild * white_ * draws_.normal());
    ratio *= std::clamp(now + 1 - start_up_, 0.0, 1.0);
    if (!serves_) ratio *= works(now);
    const double after = std::clamp(now + 1 - drop.start_seconds / 60, 0.0, 1.0);
    if (drop.size_ratio != 1) ratio *= 1 - after + after * drop.size_ratio;
    MinutePoint out;
    out.start = units::Instant{kNoiseStart + number * kMinuteMilliseconds};
    out.allocated_seconds = 8 * 60;
    if (silent(now)) {
      out.absent = samples::AbsentReason::kGap;
      return out;
    }
    out.measured_seconds = out.allocated_seconds;
    out.ofu_ratio = out.tensor_ratio = level_ * ratio;
    return out;
  }
  double level() const { return level_; }

 private:
  // What checkpoints, evaluations and restarts leave of the minute.
  double works(double now) {
    double left_ratio = 1;
    if (now + 1 > next_checkpoint_) {
      left_ratio -= std::clamp(std::min(now + 1, next_checkpoint_ + checkpoint_minutes_) - std::max(now, next_checkpoint_), 0.0, 1.0);
      if (now + 1 > next_checkpoint_ + checkpoint_minutes_) next_checkpoint_ += checkpoint_every_ * draws_.between(0.95, 1.05);
    }
    if (evaluate_every_ > 0 && now >= next_evaluation_) {
      left_ratio *= evaluate_ratio_;
      if (now > next_evaluation_ + evaluate_minutes_) next_evaluation_ += evaluate_every_ * draws_.between(0.97, 1.03);
    }
    if (now >= restart_until_ && draws_.unit() < 1.0 / 1440) restart_until_ = now + draws_.between(3, 15);
    return now < restart_until_ ? 0 : left_ratio;
  }
  bool silent(double now) {
    if (now >= silent_until_ && draws_.unit() < 2.0 / 1440) silent_until_ = now + draws_.between(1, 5);
    return now < silent_until_;
  }

  Draws draws_;
  double level_ = 0, white_ = 0, correlated_ = 0, start_up_ = 0, checkpoint_every_ = 0, checkpoint_minutes_ = 0, evaluate_every_ = 0,
         evaluate_minutes_ = 0, evaluate_ratio_ = 1;
  bool serves_ = false;
  double next_checkpoint_ = 0, next_evaluation_ = 0, restart_until_ = -1, silent_until_ = -1, slow_ = 0, fast_ = 0;
};

}  // namespace flopsight::detect::test
