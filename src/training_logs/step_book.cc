#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "training_logs/merge_steps.h"
#include "training_logs/step_book_internal.h"

namespace flopsight::training_logs {
namespace {

// A step is closed when this many later ones were seen: ranks that write through pipes lag by a line or two.
constexpr std::size_t kOpenSteps = Limits::open_steps_max;
// The start of an attempt is judged by the median over so many steps, and not with fewer than the least.
constexpr std::size_t kJudgedSteps = 8;
constexpr std::size_t kJudgedStepsMin = 4;
// Further from that median than this factor, either way, is no ordinary step.
constexpr double kWarmUpFactor = 2;

// What a step's speed is judged by: the first that most of them have.
constexpr std::optional<double> Step::* kSpeeds[] = {
    &Step::step_seconds, &Step::flops_per_second_per_gpu, &Step::tokens_per_second_per_gpu, &Step::mfu_ratio,
    &Step::tokens_per_second, &Step::samples_per_second,
};

void fill(Step& into, const Step& from) {
  for (const auto figure : kStepFigures) {
    if (!(into.*figure)) into.*figure = from.*figure;
  }
  if (!into.time) {
    into.time = from.time;
    into.is_zone_assumed = from.is_zone_assumed;
  }
  if (!into.loss) into.loss = from.loss;
  if (!into.rank) into.rank = from.rank;
  if (!into.batch_samples) into.batch_samples = from.batch_samples;
}

}  // namespace

void StepBook::add_before(Step line) {
  if (before_) add(std::move(*before_));
  before_ = std::move(line);
}

void StepBook::add(Step line) {
  if (line.step) {
    if (before_) {
      const SourceLine source = before_->source;
      fill(line, *before_);
      line.source = source;
      before_.reset();
    }
    add_numbered(std::move(line));
    return;
  }
  // Without a number, every line is a step of its own.
  line.attempt = attempt_;
  judge(line);
  hold(std::move(line));
}

void StepBook::add_numbered(Step line) {
  const std::int64_t number = *line.step;
  auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.step == number; });
  bool restart = false;
  if (line.rank && (last_of_rank_.size() < Limits::ranks_max || last_of_rank_.count(*line.rank) > 0)) {
    const auto [last, inserted] = last_of_rank_.try_emplace(*line.rank, number);
    restart = !inserted && number < last->second;
    const bool late = !restart && found == open_.end() && !open_.empty() && number < open_.back().step;
    last->second = number;
    if (late) {
      ++excluded_[static_cast<std::size_t>(Exclusion::kLate)];
      return;
    }
  } else {
    restart = found == open_.end() && !open_.empty() && number < open_.back().step;
  }
  if (restart) {
    if (open_.size() == 1 && held_.empty() && !judged_) ++backwards_;
    begin_attempt();
    if (line.rank) last_of_rank_[*line.rank] = number;
    found = open_.end();
  }
  if (found == open_.end()) {
    open_.push_back({number, 0, {}});
    found = std::prev(open_.end());
  }
  ++found->lines;
  if (found->kept.size() < Limits::ranks_max) found->kept.push_back(std::move(line));
  while (open_.size() > kOpenSteps) {
    close(open_.front());
    open_.pop_front();
  }
}

void StepBook::begin_attempt() {
  close_all();
  release();
  judged_ = false;
  ++attempt_;
  last_of_rank_.clear();
}

void StepBook::begin_run() {
  if (before_) {
    Step line = std::move(*before_);
    before_.reset();
    add(std::move(line));
  }
  begin_attempt();
}

void StepBook::close(Open& open) {
  Step step = merge_steps(open.kept);
  step.attempt = attempt_;
  if (open.lines > open.kept.size()) step.ranks = static_cast<std::uint32_t>(std::min<std::uint64_t>(open.lines, UINT32_MAX));
  judge(step);
  hold(std::move(step));
}

void StepBook::close_all() {
  for (Open& open : open_) close(open);
  open_.clear();
}

// What no other step is needed for.
void StepBook::judge(Step& step) {
  bool negative = false;
  for (const auto figure : kStepFigures) {
    std::optional<double>& value = step.*figure;
    if (!value) continue;
    if (!std::isfinite(*value)) value.reset();
    if (value && *value < 0) {
      negative = true;
      value.reset();
    } else if (value && *value == 0) {
      printed_zero_ = true;  // a rate of nothing is no measurement: the framework does not know
      value.reset();
    }
  }
  const std::optional<double> peak = peak_ ? peak_ : step.peak_flops_per_second;
  const bool above = (step.mfu_ratio && *step.mfu_ratio > 1) ||
                     (peak && step.flops_per_second_per_gpu && *step.flops_per_second_per_gpu > *peak);
  if (negative) step.excluded = Exclusion::kNotYetKnown;
  if (above) step.excluded = Exclusion::kAbovePeak;
}

void StepBook::hold(Step step) {
  if (judged_ || !step.label.empty()) {
    keep(std::move(step));
    return;
  }
  held_.push_back(std::move(step));
  if (held_.size() >= std::max<std::size_t>(kJudgedSteps, std::min<std::size_t>(warm_up_steps_.value_or(0), 1000))) release();
}

void StepBook::release() {
  judged_ = true;
  if (warm_up_steps_) {
    for (std::size_t i = 0; i < held_.size() && i < *warm_up_steps_; ++i) {
      if (!held_[i].excluded) held_[i].excluded = Exclusion::kWarmUp;
    }
  } else if (held_.size() >= kJudgedStepsMin) {
    for (const auto speed : kSpeeds) {
      std::vector<double> values;
      for (const Step& step : held_) {
        if (step.*speed && !step.excluded) values.push_back(*(step.*speed));
      }
      if (values.size() < kJudgedStepsMin) continue;
      const double usual = *base::median(values);
      for (Step& step : held_) {
        const std::optional<double>& value = step.*speed;
        const bool far = !value || *value > usual * kWarmUpFactor || *value < usual / kWarmUpFactor;
        if (!far && !step.excluded) break;
        if (!step.excluded) step.excluded = Exclusion::kWarmUp;
      }
      break;
    }
  }
  for (Step& step : held_) keep(std::move(step));
  held_.clear();
}

void StepBook::keep(Step step) {
  ++total_;
  if (step.excluded) ++excluded_[static_cast<std::size_t>(*step.excluded)];
  if (++since_kept_ < stride_) {
    ++dropped_;
    return;
  }
  since_kept_ = 0;
  closed_.push_back(std::move(step));
  if (closed_.size() <= Limits::steps_max) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < closed_.size(); i += 2) {
    if (kept != i) closed_[kept] = std::move(closed_[i]);
    ++kept;
  }
  dropped_ += closed_.size() - kept;
  closed_.resize(kept);
  stride_ *= 2;
}

void StepBook::finish() {
  if (before_) {
    Step line = std::move(*before_);
    before_.reset();
    add(std::move(line));
  }
  close_all();
  release();
}

std::vector<Step> StepBook::take() {
  std::vector<Step> out = std::move(closed_);
  closed_.clear();
  return out;
}

SourceLine StepBook::resume_at(SourceLine end) const {
  SourceLine first = end;
  const auto see = [&](const Step& step) {
    if (step.source.offset_bytes < first.offset_bytes) first = step.source;
  };
  for (const Open& open : open_) {
    for (const Step& line : open.kept) see(line);
  }
  for (const Step& step : held_) see(step);
  if (before_) see(*before_);
  return first;
}

}  // namespace flopsight::training_logs
