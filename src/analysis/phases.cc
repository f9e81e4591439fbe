#include "analysis/phases.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/median.h"

namespace flopsight::analysis {
namespace {

// Below this a job has no tensor work that could come and go.
constexpr double kOfuMin = 0.02;
// A slot is a pause as a whole from this share on, and one of typical training below.
constexpr double kWholePause = 0.5;
// Shares of a slot that are the usual unevenness of steps.
constexpr double kPauseMin = 0.05, kEvaluationMin = 0.15;
constexpr double kQuietLinks = 0.5;  // of what they carry typically for as much work: below, it is an evaluation
constexpr double kWorksMin = 0.1;    // of the typical OFU: from there on a job trains, however slowly (regression.h takes the same for a pause)
constexpr double kEvaluationWallSecondsMax = 20 * 60;  // of one that no training follows; a job that stays so is slower than it was
constexpr std::size_t kBurstsMin = 3;
constexpr double kLinksMin = 1e9;  // bytes a second of a GPU: below, there is nothing to miss

struct Slot {
  units::Instant start;
  double allocated_seconds = 0;
  bool known = false;
  double ofu_ratio = 0;
  double idle_ratio = 0;     // of SMs
  double stalled_ratio = 0;  // of that, where nothing runs or waits on silent links
  double links_bytes_per_second = 0, pcie_tx_bytes_per_second = 0;  // of one GPU
  // What it is made of.
  bool works = false;
  double pause_ratio = 0, evaluation_ratio = 0;
  double idle_beyond_usual_ratio = 0;  // a pause, unless it is an evaluation
  Phase pause = Phase::kSlowed;
};

Slot slot_of(const PhaseSlot& in) {
  const rollups::Totals& t = in.totals;
  Slot out;
  out.start = in.start;
  out.allocated_seconds = t.allocated_seconds;
  out.known = t.sm_known_seconds >= 0.5 * t.allocated_seconds && t.sm_known_seconds > 0;
  if (!out.known) return out;
  out.ofu_ratio = t.delivered_seconds / t.measured_seconds;
  out.idle_ratio = 1 - t.sm_active_seconds / t.sm_known_seconds;
  out.stalled_ratio = t.causes.stalled_seconds / t.sm_known_seconds;
  out.links_bytes_per_second = (t.surroundings.nvlink_tx_bytes + t.surroundings.nvlink_rx_bytes) / t.allocated_seconds;
  out.pcie_tx_bytes_per_second = t.surroundings.pcie_tx_bytes / t.allocated_seconds;
  return out;
}

struct Typical {
  double ofu_ratio = 0, idle_ratio = 0, links_bytes_per_second = 0, pcie_tx_bytes_per_second = 0;
};

std::optional<Typical> typical_of(const std::vector<Slot>& slots) {
  std::vector<double> ofu;
  for (const Slot& slot : slots) {
    if (slot.known) ofu.push_back(slot.ofu_ratio);
  }
  if (ofu.empty()) return std::nullopt;
  const auto tenth = ofu.begin() + static_cast<std::ptrdiff_t>(ofu.size() * 9 / 10);
  std::nth_element(ofu.begin(), tenth, ofu.end());
  const double good = *tenth;
  if (good < kOfuMin) return std::nullopt;
  std::vector<double> of_ofu, idle, links, pcie;
  for (const Slot& slot : slots) {
    if (!slot.known || slot.ofu_ratio < good / 2) continue;
    of_ofu.push_back(slot.ofu_ratio);
    idle.push_back(slot.idle_ratio);
    links.push_back(slot.links_bytes_per_second);
    pcie.push_back(slot.pcie_tx_bytes_per_second);
  }
  return Typical{*base::median(std::move(of_ofu)), *base::median(std::move(idle)), *base::median(std::move(links)),
                 *base::median(std::move(pcie))};
}

bool is_stalled(const Slot& slot) { return slot.stalled_ratio >= 0.5 * slot.idle_ratio; }

bool sends_checkpoint(const Slot& slot, const Typical& typical) {
  return slot.pcie_tx_bytes_per_second >= kCheckpointBytesPerSecond * slot.pause_ratio && slot.pcie_tx_bytes_per_second > 2 * typical.pcie_tx_bytes_per_second;
}

// How much of a slot is a pause, and how much an evaluation.
void divide(Slot& slot, const Typical& typical) {
  if (!slot.known) return;
  slot.works = slot.ofu_ratio >= kWorksMin * typical.ofu_ratio;
  const double room = 1 - typical.idle_ratio;
  slot.pause_ratio = room > 0 ? std::clamp((slot.idle_ratio - typical.idle_ratio) / room, 0.0, 1.0) : 0;
  if (slot.pause_ratio < kPauseMin) slot.pause_ratio = 0;
  slot.idle_beyond_usual_ratio = slot.pause_ratio;
  // Without tensor work nothing is evaluated.
  if (typical.links_bytes_per_second < kLinksMin || slot.ofu_ratio <= 0.2 * typical.ofu_ratio) return;
  const double links_ratio = slot.links_bytes_per_second / typical.links_bytes_per_second, work_ratio = 1 - slot.pause_ratio;
  if (work_ratio <= 0) return;
  // An evaluation leaves SMs idle in its own way: that is no pause of a training beside it, unless something else speaks for one.
  const bool own_idle = !is_stalled(slot) && !sends_checkpoint(slot, typical);
  if (slot.pause_ratio > 0 && own_idle && links_ratio < kQuietLinks * work_ratio) {
    slot.evaluation_ratio = 1;
    slot.pause_ratio = 0;
  } else if (work_ratio - links_ratio >= kEvaluationMin && slot.pause_ratio < kWholePause) {
    slot.evaluation_ratio = work_ratio - links_ratio;
  }
}

bool trains(const Slot& slot) { return slot.known && (slot.pause_ratio < kWholePause || slot.works); }

// What the pauses of slots [first, last] are, which are pauses as a whole and follow each other. `trained`: it did before them.
void name_run(std::vector<Slot>& slots, std::size_t first, std::size_t last, bool trained, bool trains_later, bool after_loss,
              const Typical& typical) {
  const auto sends = [&](const Slot& slot) { return sends_checkpoint(slot, typical); };
  bool restarting = after_loss;
  for (std::size_t i = first; i <= last; ++i) {
    Slot& slot = slots[i];
    if (!slot.known) continue;
    if (!trained) {
      slot.pause = Phase::kStartUp;
      continue;
    }
    const bool stalled = is_stalled(slot);
    restarting = restarting || stalled;
    if (!trains_later) {
      slot.pause = sends(slot) ? Phase::kCheckpoint : stalled ? Phase::kStalled : Phase::kIdleTail;
    } else if (stalled) {
      slot.pause = Phase::kStalled;
    } else if (restarting) {
      slot.pause = Phase::kRestart;
    } else {
      slot.pause = sends(slot) ? Phase::kCheckpoint : Phase::kSlowed;
    }
  }
}

class Course {
 public:
  Course(std::vector<Slot> slots, const Typical& typical, units::Seconds slot)
      : slots_(std::move(slots)), typical_(typical), slot_(slot) {}

  void run(Phases& out) {
    for (Slot& slot : slots_) divide(slot, typical_);
    drop_endless_evaluation();
    name_pauses();
    if (works_in_bursts()) {
      out.absent_reason = "works_in_bursts";
      return;
    }
    find_failures(out);
    add_up(out);
    join(out);
  }

 private:
  bool is_loss_before(std::size_t i) const {
    return i > 0 && (slots_[i].start - slots_[i - 1].start).value > slot_.value * 1.5;
  }

  // What no training follows, and lasts, is how the job is now.
  void drop_endless_evaluation() {
    std::size_t end = slots_.size();
    while (end > 0 && !trains(slots_[end - 1])) --end;
    std::size_t first = end;
    while (first > 0 && (slots_[first - 1].evaluation_ratio >= 0.5 || !slots_[first - 1].known)) --first;
    if (first == end || (slots_[end - 1].start - slots_[first].start).value < kEvaluationWallSecondsMax) return;
    for (std::size_t i = first; i < end; ++i) {
      slots_[i].evaluation_ratio = 0;
      slots_[i].pause_ratio = slots_[i].idle_beyond_usual_ratio;
    }
  }

  // Like a notebook: it stands for longer than it works, again and again, without GPUs that wait for one another. Nothing of that is a failure.
  bool works_in_bursts() const {
    if (typical_.links_bytes_per_second >= kLinksMin) return false;
    std::size_t bursts = 0, works = 0, stands = 0, waiting = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      if (!slot.known) continue;
      if (trains(slot)) {
        bursts += waiting > 0 && works > 0 ? 1 : 0;
        stands += works > 0 ? waiting : 0;
        waiting = 0;
        ++works;
      } else if (slot.pause != Phase::kCheckpoint) {
        ++waiting;
      }
    }
    return bursts >= kBurstsMin && stands > works;
  }

  void name_pauses() {
    std::size_t last_training = slots_.size();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (trains(slots_[i])) last_training = i;
    }
    bool trained = false, lost = false;
    for (std::size_t i = 0; i < slots_.size();) {
      lost = trained && is_loss_before(i);
      if (trains(slots_[i])) {
        name_part(i, trained, i == last_training, lost);
        trained = true;
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      bool lost_within = lost;
      while (end < slots_.size() && !trains(slots_[end])) {
        lost_within = lost_within || (trained && is_loss_before(end));
        ++end;
      }
      const bool trains_later = last_training != slots_.size() && i < last_training;
      name_run(slots_, i, end - 1, trained, trains_later, lost_within, typical_);
      i = end;
    }
  }

  // A part of a slot belongs to the pause beside it, if there is one; else it is one by itself.
  void name_part(std::size_t i, bool trained, bool is_last, bool lost) {
    Slot& slot = slots_[i];
    if (slot.pause_ratio == 0) return;
    const bool sends = sends_checkpoint(slot, typical_);
    if (!trained) {
      slot.pause = Phase::kStartUp;
    } else if (lost) {
      slot.pause = Phase::kRestart;
    } else if (i > 0 && !is_loss_before(i) && !trains(slots_[i - 1]) && slots_[i - 1].known) {
      slot.pause = slots_[i - 1].pause == Phase::kStalled ? Phase::kRestart : slots_[i - 1].pause;
    } else if (sends) {
      slot.pause = Phase::kCheckpoint;
    } else if (is_stalled(slot)) {
      slot.pause = is_last ? Phase::kIdleTail : Phase::kStalled;
    } else {
      slot.pause = Phase::kSlowed;
    }
  }

  void find_failures(Phases& out) const {
    std::optional<Phases::Failure> open;
    double since_checkpoint = 0;
    bool seen = false, trained = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      // A job of which some GPUs stand while others work has not failed.
      const bool stops = (slot.known && !trains(slot) && (slot.pause == Phase::kStalled || slot.pause == Phase::kRestart)) || is_loss_before(i);
      if (trained && stops && !open) {
        const bool began_before = i > 0 && !is_loss_before(i) && slots_[i - 1].known && slots_[i - 1].pause_ratio > 0 && slots_[i - 1].pause == Phase::kStalled;
        open = Phases::Failure{slots_[began_before ? i - 1 : i].start, {}, since_checkpoint, seen};
      }
      if (!trains(slot)) {
        if (slot.known && slot.pause == Phase::kCheckpoint) {
          since_checkpoint = 0;
          seen = true;
        }
        continue;
      }
      if (open) {
        open->training_again = slot.start;
        out.failures.push_back(*open);
        open.reset();
        since_checkpoint = 0;
        seen = false;
      }
      trained = true;
      if (slot.pause_ratio > 0 && slot.pause == Phase::kCheckpoint) {
        since_checkpoint = 0;
        seen = true;
      }
      since_checkpoint += slot_.value * (1 - slot.pause_ratio);
    }
  }

  void add_up(Phases& out) const {
    const auto add = [&](Phase phase, double seconds) { out.gpu_seconds[static_cast<std::size_t>(phase)] += seconds; };
    bool in_checkpoint = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      if (is_loss_before(i)) out.away_wall_seconds += (slot.start - slots_[i - 1].start).value - slot_.value;
      if (!slot.known) {
        add(Phase::kUnmeasured, slot.allocated_seconds);
        in_checkpoint = false;
        continue;
      }
      add(slot.pause, slot.allocated_seconds * slot.pause_ratio);
      add(Phase::kEvaluation, slot.allocated_seconds * slot.evaluation_ratio);
      add(trains(slot) ? Phase::kTraining : slot.pause,
          slot.allocated_seconds * (1 - slot.pause_ratio - slot.evaluation_ratio));
      const bool checkpoint = slot.pause_ratio > 0 && slot.pause == Phase::kCheckpoint;
      if (checkpoint) out.checkpoint_wall_seconds += slot_.value * slot.pause_ratio;
      // One that crosses the edge of a slot is one.
      if (checkpoint && !in_checkpoint) ++out.checkpoint_count;
      in_checkpoint = checkpoint;
    }
    out.wall_seconds = (slots_.back().start - slots_.front().start).value + slot_.value;
  }

  static Phase most(const Slot& slot) {
    if (!slot.known) return Phase::kUnmeasured;
    if (slot.pause_ratio >= kWholePause) return slot.pause;
    return slot.evaluation_ratio >= 0.5 ? Phase::kEvaluation : Phase::kTraining;
  }

  void join(Phases& out) const {
    for (const Slot& slot : slots_) {
      const units::Instant end = slot.start + slot_;
      const Phase phase = most(slot);
      if (!out.spans.empty() && out.spans.back().phase == phase && out.spans.back().end == slot.start) {
        out.spans.back().end = end;
      } else {
        out.spans.push_back({phase, slot.start, end});
      }
    }
  }

  std::vector<Slot> slots_;
  Typical typical_;
  units::Seconds slot_;
};

}  // namespace

std::string_view phase_name(Phase phase) {
  constexpr std::string_view kNames[kPhaseCount] = {"start_up", "training", "evaluation", "checkpoint", "restart",
                                                    "stalled",  "slowed",   "idle_tail",  "unmeasured"};
  return kNames[static_cast<std::size_t>(phase)];
}

Phases phases_of(std::span<const PhaseSlot> in, units::Seconds slot) {
  Phases out;
  std::vector<Slot> slots;
  for (const PhaseSlot& one : in) {
    if (one.totals.allocated_seconds > 0) slots.push_back(slot_of(one));
  }
  if (slots.empty()) {
    out.absent_reason = "not_seen";
    return out;
  }
  const bool any_known = std::any_of(slots.begin(), slots.end(), [](const Slot& one) { return one.known; });
  const std::optional<Typical> typical = typical_of(slots);
  if (!typical) {
    out.absent_reason = any_known ? "no_training_seen" : "no_sm_activity";
    return out;
  }
  Course(std::move(slots), *typical, slot).run(out);
  return out;
}

}  // namespace flopsight::analysis
