#include "detect/regression.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "detect/robust.h"

namespace flopsight::detect {
namespace {

constexpr std::int64_t kBlockMilliseconds = 5 * 60'000;
constexpr std::int64_t kBlocksPerDay = 288;
constexpr std::size_t kBlockMinutesMin = 3;
constexpr std::size_t kFastBlocksMin = 6;    // half an hour
constexpr std::size_t kSlowBlocksMin = 12;   // an hour
constexpr double kPauseRatio = 0.1;
constexpr double kPauseShareMax = 0.25;
constexpr double kFastTermMax = 0.24;
constexpr double kSlowTermMax = 0.12;
constexpr double kTermMin = -0.5;
constexpr double kScatterFloor = 0.02;
constexpr double kDipBelow = 0.36;       // 70 % of the baseline
constexpr double kDipAlike = 0.25;       // depths that differ by less
constexpr int kDipMinutesMin = 4;
constexpr int kDipMinutesMax = 60;
constexpr double kDipLastingFactor = 1.25;
constexpr int kRecoveryBlocks = 3;
constexpr std::size_t kHigherEndBlocks = 5;  // longer than an evaluation
constexpr std::int64_t kOnsetBlocksMax = 24;  // a chart that has risen for longer does not keep the baseline back

// The first of the values behind the split in two with the least squares. `margin` values at least on each side.
std::size_t best_split(const std::vector<double>& values, std::size_t margin) {
  double total = 0;
  for (const double value : values) total += value;
  double left = 0, best = -1;
  std::size_t at = values.size() - 1;
  const auto n = static_cast<double>(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    left += values[i - 1];
    if (i < margin || values.size() - i < margin) continue;
    const auto n_left = static_cast<double>(i);
    const double difference = left / n_left - (total - left) / (n - n_left);
    const double gain = difference > 0 ? n_left * (n - n_left) * difference * difference : 0;
    if (gain <= best) continue;
    best = gain;
    at = i;
  }
  return at;
}

// Of all pairs the share in which the later one is less; ties count half.
double pairs_below(const std::vector<double>& before, const std::vector<double>& after) {
  double below = 0;
  for (const double a : before) {
    for (const double b : after) below += b < a ? 1 : b == a ? 0.5 : 0;
  }
  const auto pairs = static_cast<double>(before.size() * after.size());
  return pairs > 0 ? below / pairs : 0.5;
}

}  // namespace

RegressionDetector::RegressionDetector(RegressionOptions options) : options_(options) {
  if (options_.daily_load) day_.resize(static_cast<std::size_t>(kBlocksPerDay));
}

bool RegressionDetector::Chart::add(double term, units::Instant at, std::int64_t block) {
  if (sum_log_ratio <= 0 && term > 0) {
    onset = at;
    onset_block = block;
  }
  sum_log_ratio = std::max(0.0, sum_log_ratio + term);
  return sum_log_ratio > 0;
}

std::optional<double> RegressionDetector::baseline_ofu_ratio() const {
  const std::optional<double> reference = reference_log(block_);
  if (!reference) return std::nullopt;
  return std::exp(*reference);
}

bool RegressionDetector::is_pause(double ofu_ratio) const {
  return ofu_ratio <= kPauseRatio * baseline_ofu_ratio().value_or(kLevelMin);
}

bool RegressionDetector::mostly_works() const {
  return static_cast<double>(pauses_.count()) <= kPauseShareMax * static_cast<double>(pauses_.size());
}

bool RegressionDetector::add(const MinutePoint& point) {
  if (last_seen_ && point.start <= *last_seen_) return false;
  last_seen_ = point.start;
  bool called = false;
  const std::int64_t block = point.start.unix_milliseconds / kBlockMilliseconds;
  if (block != block_) {
    called = close_block();
    block_ = block;
  }
  if (!point.ofu_ratio || point.shared) return called;
  const bool pause = is_pause(*point.ofu_ratio);
  pauses_.push_back(pause);
  if (!pause) {
    in_block_.push_back(std::log(*point.ofu_ratio));
    history_.push_back(KeptMinute(point));
    add_cost(history_.back());
  }
  if (pause) return called;
  const std::optional<double> reference = reference_log(block);
  const double log_ofu = std::log(*point.ofu_ratio);
  if (open_ || reference) see_dip(point, (open_ ? std::log(open_->before_ofu_ratio) : *reference) - log_ofu);
  return (reference && add_minute(point, *reference - log_ofu)) || called;
}

void RegressionDetector::add_cost(const KeptMinute& minute) {
  if (!open_) return;
  open_->last = minute.start();
  const double lost = (1 - minute.ofu_ratio() / open_->before_ofu_ratio) * minute.measured_seconds();
  open_->cost += units::gpu_hours(units::Seconds(std::max(0.0, lost)));
}

// The fast chart.
bool RegressionDetector::add_minute(const MinutePoint& point, double below) {
  const double scatter = std::max(minute_scatter_, block_scatter_);
  const double allowance = std::max(options_.fast_allowance_log_ratio, 4 * scatter);
  const double threshold = std::max(options_.fast_threshold_log_ratio, 4 * scatter);
  fast_.add(std::clamp(below - allowance, kTermMin, kFastTermMax), point.start, block_);
  if (fast_.sum_log_ratio <= threshold) return false;
  if (!mostly_works() || looks_like_before()) {
    fast_.sum_log_ratio = threshold;  // what is held back does not add up for when it is over
    return false;
  }
  call(point.start, fast_, false);
  return true;
}

// Pauses have no depth: a restart, or a checkpoint that begins and ends within a minute, does not speak for a fall.
void RegressionDetector::see_dip(const MinutePoint& point, double below) {
  if (below > kDipBelow) {
    if (dip_.minutes == 0) dip_ = Dip{point.start, 0, 0};
    dip_.depth_log_ratio += (below - dip_.depth_log_ratio) / (dip_.minutes + 1);
    ++dip_.minutes;
    if (open_ && dip_.minutes > kEvaluationMinutesMax) open_->may_be_evaluation = false;
    return;
  }
  if (dip_.minutes >= kDipMinutesMin && dip_.minutes <= kDipMinutesMax) {
    dips_.push_back(dip_);
  }
  dip_ = {};
}

bool RegressionDetector::looks_like_before() const {
  int alike = 0, longest = 0;
  for (const Dip& dip : dips_) {
    if (dip_.start - dip.start > units::Seconds(86'400)) continue;
    if (std::abs(dip.depth_log_ratio - dip_.depth_log_ratio) > kDipAlike) continue;
    ++alike;
    longest = std::max(longest, dip.minutes);
  }
  return alike >= 2 && dip_.minutes <= kDipLastingFactor * longest + 1;
}

bool RegressionDetector::had_dip_within_a_day(units::Instant now) const {
  return !dips_.empty() && now - dips_.back().start <= units::Seconds(86'400);
}

bool RegressionDetector::close_block() {
  std::vector<double> values;
  values.swap(in_block_);
  if (values.size() < kBlockMinutesMin) return false;
  const double log_ofu = *base::median(std::move(values));
  const std::optional<double> season = season_log(block_);
  bool called = false;
  if (season) {
    const Block block{static_cast<std::int32_t>(block_), static_cast<float>(log_ofu - *season)};
    called = score_block(block);
    if (open_ && !called) see_recovery(log_ofu - *season);
    blocks_.push_back(block);
    set_baseline();
  }
  blocks_seen_ = std::min(blocks_seen_ + 1, kBlocksMax);
  learn_season(log_ofu);
  return called;
}

// The season is without the level, or a level that changed today would be a change back tomorrow. While a chart rises it is not known which of
// both it is, and yesterday's season stays.
void RegressionDetector::learn_season(double log_ofu) {
  if (!options_.daily_load || open_) return;
  std::optional<double>& season = day_[static_cast<std::size_t>(block_ % kBlocksPerDay)];
  if (!season) season = log_ofu;
  else if (level_log_ && !higher_ && slow_.sum_log_ratio <= 0 && rise_.sum_log_ratio <= 0) season = log_ofu - *level_log_;
}

// The slow charts, of falls and of rises. What is behind the beginning of a chart's rise is not in the baseline that it is measured by.
bool RegressionDetector::score_block(const Block& block) {
  if (!level_log_ || blocks_.size() < kSlowBlocksMin) return false;
  // A scatter from few medians is uncertain: it is taken as larger.
  const double scatter_here = block_scatter_ * (1 + 6.0 / static_cast<double>(blocks_.size()));
  const double allowance = std::max(options_.slow_allowance_log_ratio, 2 * scatter_here);
  const double threshold = std::max(options_.slow_threshold_log_ratio, 15 * scatter_here);
  const units::Instant start{block.number * kBlockMilliseconds};
  if (!open_ && !higher_) {
    rise_.add(std::clamp(block.ofu_log_ratio - *level_log_ - allowance, kTermMin, kSlowTermMax), start, block.number);
    if (rise_.sum_log_ratio > threshold) begin_higher_level();
  }
  slow_.add(std::clamp(*level_log_ - block.ofu_log_ratio - allowance, kTermMin, kSlowTermMax), start, block.number);
  if (slow_.sum_log_ratio <= threshold) return false;
  if (!mostly_works() || history_.empty()) {
    slow_.sum_log_ratio = threshold;
    return false;
  }
  call(history_.back().start(), slow_, true);
  return true;
}

// The job became faster, and is measured by that once it lasted for an hour; until then by what it did before.
void RegressionDetector::begin_higher_level() {
  std::vector<double> since;
  for (const Block& block : blocks_) {
    if (block.number >= rise_.onset_block) since.push_back(block.ofu_log_ratio);
  }
  higher_ = Higher{rise_.onset, rise_.onset_block, (*level_log_ + base::median(std::move(since)).value_or(*level_log_)) / 2};
  rise_ = {};
}

// True while it is not yet known whether the higher level lasts.
bool RegressionDetector::waits_for_higher_level() {
  if (!higher_) return false;
  std::size_t above = 0, below_in_a_row = 0;
  for (const Block& block : blocks_) {
    if (block.number < higher_->onset_block) continue;
    const bool is_above = block.ofu_log_ratio > higher_->middle_log_ratio;
    above += is_above ? 1 : 0;
    below_in_a_row = is_above ? 0 : below_in_a_row + 1;
  }
  if (below_in_a_row >= kHigherEndBlocks) {
    higher_.reset();
    return false;
  }
  if (above < kSlowBlocksMin) return true;
  blocks_.drop_while([&](const Block& block) { return block.number < higher_->onset_block; });
  history_.drop_while([&](const KeptMinute& minute) { return minute.start() < higher_->onset; });
  higher_.reset();
  return false;
}

void RegressionDetector::see_recovery(double log_ofu) {
  const double middle = before_log_ + std::log(open_->size_ratio()) / 2;
  recovered_blocks_ = log_ofu > middle ? recovered_blocks_ + 1 : 0;
  if (recovered_blocks_ < kRecoveryBlocks) return;
  open_.reset();
  std::swap(blocks_, blocks_before_);
  blocks_before_.clear();
  fast_ = slow_ = rise_ = {};
  recovered_blocks_ = 0;
}

void RegressionDetector::set_baseline() {
  if (waits_for_higher_level()) return;
  std::vector<double> values;
  const auto rises = [&](const Chart& chart) { return chart.sum_log_ratio > 0 && block_ - chart.onset_block <= kOnsetBlocksMax; };
  const bool falling = rises(slow_), rising = falling || rises(rise_);
  const std::int64_t end = !rising ? block_ + 1 : falling ? slow_.onset_block : rise_.onset_block;
  for (const Block& block : blocks_) {
    if (block.number < end) values.push_back(block.ofu_log_ratio);
  }
  if (values.size() < kFastBlocksMin) {
    if (!rising) level_log_.reset();
    return;
  }
  level_log_ = base::median(values);
  block_scatter_ = std::max(kScatterFloor, robust_deviation(values, *level_log_));
  std::vector<double> minutes;
  for (const KeptMinute& minute : history_) {
    if (!open_ || minute.start() >= open_->found) minutes.push_back(std::log(minute.ofu_ratio()));
  }
  if (minutes.size() >= 30 && !rising && fast_.sum_log_ratio <= 0) {
    const double middle = *base::median(minutes);
    minute_scatter_ = robust_deviation(minutes, middle);
  }
}

// What the time of day alone makes of it: with a daily load the same five minutes of the day before.
std::optional<double> RegressionDetector::season_log(std::int64_t block) const {
  if (!options_.daily_load) return 0.0;
  return day_[static_cast<std::size_t>(block % kBlocksPerDay)];
}

std::optional<double> RegressionDetector::reference_log(std::int64_t block) const {
  const std::optional<double> season = season_log(block);
  if (!level_log_ || !season || *level_log_ + *season < std::log(kLevelMin)) return std::nullopt;
  return *level_log_ + *season;
}

void RegressionDetector::call(units::Instant minute, const Chart& chart, bool slow_chart) {
  const bool deeper = open_.has_value();
  // A further fall is looked for behind the first.
  if (deeper) history_.drop_while([&](const KeptMinute& each) { return each.start() < open_->found; });
  std::vector<double> logs;
  for (const KeptMinute& each : history_) logs.push_back(std::log(each.ofu_ratio()));
  // A checkpoint shortly before is as deep as what came after, and deeper: below the new level nothing counts.
  const std::size_t margin = slow_chart ? 10 : 3;
  const std::vector<double> latest(logs.end() - static_cast<std::ptrdiff_t>(std::min(logs.size(), margin + 1)), logs.end());
  const double floor = *base::median(latest);
  for (double& value : logs) value = std::max(value, floor);
  const std::size_t split = best_split(logs, margin);
  if (!deeper) {
    open_ = Regression{};
    open_->before_ofu_ratio = std::exp(*level_log_ + season_log(chart.onset_block).value_or(0));
    before_log_ = *level_log_;
    blocks_before_ = blocks_;
    while (!blocks_before_.empty() && blocks_before_.back().number >= chart.onset_block) blocks_before_.pop_back();
    open_->first = history_[split].start();
    open_->may_be_evaluation = !slow_chart && (blocks_seen_ < kBlocksMax || had_dip_within_a_day(minute));
  }
  open_->found = open_->last = minute;
  open_->slow_chart = slow_chart;
  std::vector<double> before, after;
  for (const KeptMinute& each : history_) {
    (each.start() < history_[split].start() ? before : after).push_back(each.ofu_ratio());
  }
  open_->after_ofu_ratio = *base::median(after);
  open_->confidence_ratio = pairs_below(before, after);
  if (!deeper) {
    open_->cost = {};
    for (const KeptMinute& each : history_) {
      if (each.start() >= open_->first) add_cost(each);
    }
  }
  // A new level is learned, so that a further fall is seen too.
  blocks_.clear();
  level_log_.reset();
  higher_.reset();
  fast_ = slow_ = rise_ = {};
  recovered_blocks_ = 0;
}

}  // namespace flopsight::detect
