#pragma once
// Lines to steps: one value a step over ranks, attempts told apart, and what cannot be believed marked.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "training_logs/report.h"

namespace flopsight::training_logs {

class StepBook {
 public:
  StepBook(std::optional<double> peak_flops_per_second, std::optional<std::uint32_t> warm_up_steps)
      : peak_(peak_flops_per_second), warm_up_steps_(warm_up_steps) {}

  void add(Step line);
  // The line belongs to the next numbered one.
  void add_before(Step line);
  // The text goes on in the middle of an attempt: its first steps are not its start.
  void start_in_the_middle() { judged_ = true; }
  // What comes now is of another run: what is open is closed, and a new attempt begins.
  void begin_run();
  void finish();

  std::vector<Step> take();
  const std::vector<Step>& closed() const { return closed_; }
  // The first line that an unclosed step needs, or `end`.
  SourceLine resume_at(SourceLine end) const;

  std::uint64_t total() const { return total_; }
  std::uint64_t dropped() const { return dropped_; }
  bool empty() const { return total_ == 0 && open_.empty() && held_.empty() && !before_; }
  // Whether something came since this attempt began.
  bool has_steps_since(std::uint32_t attempt) const { return attempt_ > attempt || !open_.empty() || !held_.empty() || judged_; }
  std::uint32_t attempt() const { return attempt_; }
  std::uint64_t attempts() const { return total_ == 0 && open_.empty() && held_.empty() ? 0 : attempt_ + 1ULL; }
  std::uint64_t count(Exclusion exclusion) const { return excluded_[static_cast<std::size_t>(exclusion)]; }
  // Nearly every step was lower than the one before it: the newest is first.
  bool runs_backwards() const { return backwards_ >= kBackwardsLeast && backwards_ * 2 >= total_; }
  bool printed_zero() const { return printed_zero_; }

 private:
  static constexpr std::uint64_t kBackwardsLeast = 3;

  struct Open {
    std::int64_t step = 0;
    std::uint64_t lines = 0;
    std::vector<Step> kept;
  };

  void add_numbered(Step line);
  void begin_attempt();
  void close(Open& open);
  void close_all();
  void judge(Step& step);
  void hold(Step step);
  void release();
  void keep(Step step);

  std::optional<double> peak_;
  std::optional<std::uint32_t> warm_up_steps_;
  std::deque<Open> open_;  // ascending numbers
  std::map<std::int64_t, std::int64_t> last_of_rank_;
  std::optional<Step> before_;
  std::vector<Step> held_;  // the first of an attempt, not judged yet
  bool judged_ = false;
  std::uint32_t attempt_ = 0;
  std::vector<Step> closed_;
  std::uint64_t total_ = 0, dropped_ = 0, stride_ = 1, since_kept_ = 0;
  std::array<std::uint64_t, kExclusionCount> excluded_{};
  std::uint64_t backwards_ = 0;  // attempts of one step that ended at a lower one
  bool printed_zero_ = false;
};

}  // namespace flopsight::training_logs
