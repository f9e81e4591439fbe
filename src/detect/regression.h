#pragma once
// When a job began to deliver less than it did: change points in the logarithm of its OFU, online, minute by minute.
//
// Two one-sided CUSUM charts run side by side (Page, "Continuous inspection schemes", Biometrika 41, 1954; several charts for several sizes of
// change: Lorden, "Procedures for reacting to a change in distribution", Ann. Math. Statist. 42, 1971). A chart sums by how much the
// logarithm is below the baseline less an allowance k, never below 0, and calls where the sum exceeds h:
//   fast: minutes, k = 0.62 (falls to 54 % count), h = 0.72; a term is at most 0.24, so that three lost minutes, however deep, call nothing.
//         A drop of 2.5 times is called in the fourth minute that is wholly after it.
//   slow: medians of five minutes, k = 0.081 (half of the logarithm of a 15 % drop), h = 0.5, a term at most 0.12. A drop of 15 % is called
//         after 7 medians (35 to 40 minutes), no drop before 5 medians.
// The bound of a term is Huber's (Robust Statistics, 1981). Where the job itself is noisier, k and h grow with its scatter (median absolute
// deviation times 1.4826), so that a noisy job is not called more often but later, or never.
// Baseline: the median of the medians of the last 12 hours before the chart began to rise; six of them are needed for the fast chart,
// twelve for the slow one. A chart like the slow one, of rises, says when the job became faster: from when that has lasted for an hour, the baseline is
// of what came since, so that a fall back is one. The moment is the split of the last two hours in two with the least squares (Hinkley, Biometrika 57, 1970).
//
// What is no evidence: minutes that were not measured; pauses, in which OFU is under a tenth of the baseline (checkpoints, restarts: stall.h
// looks at those); jobs that pause more than a quarter of the time, are shared, or deliver under kLevelMin. Evaluations and slow checkpoints
// come again: a fall that looks like two or more of the last day (as deep, at least four minutes) is called only when it lasts longer than they did.
// The first two cannot be told from a fall before they end. A call of the fast chart is therefore marked as one that may be an evaluation, in a job
// of which less than 12 hours of work were seen, or that had a fall in the last day that ended by itself, until it has lasted
// kEvaluationMinutesMax minutes of work.
// Jobs with a daily load (inference) are compared with the same time of the day before, when the options say so: charts and baseline
// are of the difference, and the first day concludes nothing.
//
// Threads: one at a time; a detector is one job's.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "detect/recent.h"
#include "detect/series.h"
#include "units/units.h"

namespace flopsight::detect {

struct RegressionOptions {
  double fast_allowance_log_ratio = 0.62;  // all four in units of a natural logarithm
  double fast_threshold_log_ratio = 0.72;
  double slow_allowance_log_ratio = 0.081;
  double slow_threshold_log_ratio = 0.5;
  bool daily_load = false;
};

inline constexpr double kLevelMin = 0.02;  // OFU of a baseline
inline constexpr std::size_t kHistoryMinutes = 120;
inline constexpr int kEvaluationMinutesMax = 20;  // assumed: evaluations are not longer

struct Regression {
  units::Instant first;  // the moment
  units::Instant found;  // the minute with which it was called
  units::Instant last;   // the last minute that counts to it
  double before_ofu_ratio = 0;
  double after_ofu_ratio = 0;  // median since
  // Of a minute before and one after, drawn from the last two hours, the chance that the later one delivers less (Mann and Whitney 1947): 0.5
  // says nothing, 1 that all do.
  double confidence_ratio = 0;
  units::GpuHours cost;  // not delivered since, as time at the level before; pauses are not counted
  bool slow_chart = false;
  bool may_be_evaluation = false;  // it is called, and may yet end by itself

  double size_ratio() const { return after_ofu_ratio / before_ofu_ratio; }
};

class RegressionDetector {
 public:
  explicit RegressionDetector(RegressionOptions options = {});

  // The next minute; one that is not after the last is ignored. True when with it a regression is called, or an open one found to be deeper.
  bool add(const MinutePoint& point);
  // What is the matter now. It ends when three medians in a row are back above the middle between before and after.
  const std::optional<Regression>& open() const { return open_; }
  // OFU of the job when it works as it did; nothing while too little was seen.
  std::optional<double> baseline_ofu_ratio() const;
  // Up to kHistoryMinutes measured minutes, the last at the end.
  const Recent<KeptMinute>& history() const { return history_; }

 private:
  struct Block {
    std::int32_t number = 0;  // of five minutes since 1970: enough for 20,000 years
    float ofu_log_ratio = 0;  // less the season
  };
  static constexpr std::size_t kBlocksMax = 144;  // 12 hours
  static constexpr std::size_t kDipsMax = 32;
  struct Dip {
    units::Instant start;
    double depth_log_ratio = 0;  // mean below the baseline
    int minutes = 0;       // that worked
  };
  struct Chart {
    double sum_log_ratio = 0;
    units::Instant onset;
    std::int64_t onset_block = 0;
    bool add(double term, units::Instant at, std::int64_t block);
  };

  struct Higher {
    units::Instant onset;
    std::int64_t onset_block = 0;
    double middle_log_ratio = 0;  // between the level before and since
  };

  bool is_pause(double ofu_ratio) const;
  bool add_minute(const MinutePoint& point, double below);
  void see_dip(const MinutePoint& point, double below);
  bool had_dip_within_a_day(units::Instant now) const;
  bool looks_like_before() const;
  bool close_block();
  bool score_block(const Block& block);
  void begin_higher_level();
  bool waits_for_higher_level();
  void learn_season(double log_ofu);
  void see_recovery(double log_ofu);
  void set_baseline();
  std::optional<double> season_log(std::int64_t block) const;
  std::optional<double> reference_log(std::int64_t block) const;
  void call(units::Instant minute, const Chart& chart, bool slow_chart);
  bool mostly_works() const;
  void add_cost(const KeptMinute& minute);

  RegressionOptions options_;
  Recent<KeptMinute> history_{kHistoryMinutes};
  Recent<Block> blocks_{kBlocksMax};         // before the change, or since it while one is open
  Recent<Block> blocks_before_{kBlocksMax};  // while one is open: what it is measured by
  std::vector<double> in_block_;
  std::int64_t block_ = 0;
  std::optional<double> level_log_;
  double block_scatter_ = 0;
  double minute_scatter_ = 0;
  std::size_t blocks_seen_ = 0;  // that have a median, up to 12 hours of them
  Chart fast_, slow_, rise_;     // the last is of rises
  std::optional<Higher> higher_;  // it rose, and what came since is not the baseline yet
  Recent<Dip> dips_{kDipsMax};
  Dip dip_;
  RecentFlags<kHistoryMinutes> pauses_;  // which of the last minutes were some
  std::vector<std::optional<double>> day_;  // medians of the last day by time of day, with daily_load
  std::optional<units::Instant> last_seen_;
  std::optional<Regression> open_;
  double before_log_ = 0;  // its level before, less the season
  int recovered_blocks_ = 0;
};

}  // namespace flopsight::detect
