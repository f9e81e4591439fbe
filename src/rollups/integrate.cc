#include "rollups/integrate.h"

#include <algorithm>

#include "rollups/cadence.h"
#include "rollups/causes.h"
#include "rollups/pieces_internal.h"
#include "rollups/screen.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::HolderId;
using samples::Reading;

constexpr double kBusyTensorRatio = 0.01;

Portion& portion_of(GpuTime& gpu, std::optional<HolderId> holder) {
  for (Portion& portion : gpu.portions) {
    if (portion.holder == holder) return portion;
  }
  gpu.portions.push_back({});
  gpu.portions.back().holder = holder;
  return gpu.portions.back();
}

// One interval of one GPU, before it is shared out.
struct Interval {
  units::Instant start;
  const MeasuredPiece* piece = nullptr;  // what was measured in it; without one, `reason` says why not
  AbsentReason reason = AbsentReason::kNotSeen;
  const GpuScrape* scrape = nullptr;  // the scrape that holds here, if any, and the next one
  const GpuScrape* next = nullptr;
};

// Mean power of the interval: from the energy counter if it can be believed, which a reset (a fall), a jump over what
// the board can draw and a counter that stands still cannot; else the power reading.
std::optional<double> power_watts(const Interval& at, const GpuTime& gpu) {
  constexpr double kWattsMax = 5000;      // beyond any board
  constexpr double kOverLimitRatio = 1.5;  // short excursions are real
  const Reading& power = at.scrape->reading(Metric::kPower);
  if (at.next != nullptr && at.scrape->reading(Metric::kEnergy).present() &&
      at.next->reading(Metric::kEnergy).present()) {
    const double watts = (at.next->reading(Metric::kEnergy).value() -
                          at.scrape->reading(Metric::kEnergy).value()) /
                         (at.next->time - at.scrape->time).value;
    const double most = gpu.device != nullptr && gpu.device->board_power
                            ? gpu.device->board_power->value * kOverLimitRatio
                            : kWattsMax;
    if (watts > 0 && watts <= most) return watts;
  }
  if (power.present()) return power.value();
  return std::nullopt;
}

void add_surroundings(Surroundings& out, double seconds, const Interval& at, const GpuTime& gpu) {
  const GpuScrape& scrape = *at.scrape;
  const auto rate = [&](Metric metric) {
    return scrape.reading(metric).present() ? scrape.reading(metric).value() * seconds : 0.0;
  };
  if (scrape.reading(Metric::kDramActive).present()) {
    out.dram_active_seconds += rate(Metric::kDramActive);
    out.dram_known_seconds += seconds;
  }
  if (const auto watts = power_watts(at, gpu)) {
    out.energy_joules += *watts * seconds;
    out.energy_known_seconds += seconds;
  }
  out.pcie_tx_bytes += rate(Metric::kPcieTx);
  out.pcie_rx_bytes += rate(Metric::kPcieRx);
  out.nvlink_tx_bytes += rate(Metric::kNvlinkTx);
  out.nvlink_rx_bytes += rate(Metric::kNvlinkRx);
  if (scrape.reading(Metric::kEventReasons).present()) {
    const auto bits = static_cast<std::uint64_t>(scrape.reading(Metric::kEventReasons).value());
    for (std::size_t i = 0; i < kEventReasonCount; ++i) {
      if ((bits >> i & 1) != 0) out.event_seconds[i] += seconds;
    }
    out.event_known_seconds += seconds;
  }
}

// Adds `seconds` of one GPU share with what was measured in it.
void add_time(Totals& totals, double seconds, const Interval& at, const GpuTime& gpu) {
  const MeasuredPiece* piece = at.piece;
  totals.allocated_seconds += seconds;
  if (at.scrape != nullptr) add_surroundings(totals.surroundings, seconds, at, gpu);
  if (piece != nullptr && piece->tensor.present()) {
    totals.tensor_seconds += seconds * piece->tensor.value();
    totals.tensor_known_seconds += seconds;
  }
  if (piece != nullptr && piece->clock.present()) {
    totals.clock_hertz_seconds += seconds * piece->clock.value();
    totals.clock_known_seconds += seconds;
    totals.extremes.see_clock(piece->clock.value());
  }
  if (piece == nullptr || !piece->ofu.present()) {
    const AbsentReason why = piece == nullptr ? at.reason : piece->ofu.reason();
    totals.absent_seconds[static_cast<std::size_t>(why)] += seconds;
    return;
  }
  const double tensor = piece->tensor.value();
  totals.measured_seconds += seconds;
  totals.delivered_seconds += seconds * piece->ofu.value();
  totals.extremes.see_ofu(piece->ofu.value(), at.start);
  totals.tensor_measured_seconds += seconds * tensor;
  if (at.scrape != nullptr) {
    add_causes(totals.causes, {seconds, tensor, piece->ofu.value(), piece->sm_active}, *at.scrape, gpu.gpu, gpu.device);
  }
  if (piece->sm_active.present()) {
    totals.sm_active_seconds += seconds * piece->sm_active.value();
    totals.sm_known_seconds += seconds;
    totals.tensor_within_sm_known_seconds += seconds * tensor;
  }
  if (!piece->from_counters) {
    const double sensitivity = seconds * tensor / gpu.reference->clock.value;
    totals.clock_sensitivity_seconds2_per_hertz2 += sensitivity * sensitivity;
  }
}

// The same time for all of its holders, split equally.
void add_shared(GpuTime& gpu, const std::vector<HolderId>& holders, bool bridged, double seconds,
                const Interval& at) {
  gpu.holders_at_once_max =
      std::max(gpu.holders_at_once_max, static_cast<std::uint32_t>(holders.size()));
  if (holders.empty()) {
    add_time(portion_of(gpu, std::nullopt).totals, seconds, at, gpu);
    return;
  }
  const double part = seconds / static_cast<double>(holders.size());
  for (const HolderId id : holders) {
    Portion& portion = portion_of(gpu, id);
    add_time(portion.totals, part, at, gpu);
    if (bridged) portion.bridged_seconds += part;
    if (holders.size() > 1 && at.piece != nullptr && at.piece->ofu.present()) {
      portion.shared_delivered_seconds += part * at.piece->ofu.value();
    }
  }
}

// Jobs files: who else says that this GPU is held, and which labelled jobs have ended.
class FileJobs {
 public:
  FileJobs(const samples::GpuIdentity& gpu, const jobs::JobTable& table, jobs::HolderTable& holders)
      : table_(table), holders_(holders), records_(table.holding(gpu)), label_(gpu_label(gpu)) {}

  bool empty() const { return table_.empty(); }

  // Points in time at which an answer can change.
  void add_cuts(const std::vector<HolderPiece>& pieces, std::vector<units::Instant>& cuts) const {
    const auto add = [&](const jobs::JobRecord* record) {
      if (record->start) cuts.push_back(*record->start);
      if (record->end) cuts.push_back(*record->end);
    };
    for (const jobs::JobRecord* record : records_) add(record);
    for (const HolderPiece& piece : pieces) {
      for (const HolderId id : piece.holders) {
        for (const jobs::JobRecord* record : table_.named(holders_.at(id).job)) add(record);
      }
    }
  }

  std::vector<HolderId> holders_at(units::Instant t, const std::vector<HolderId>& labelled,
                                   samples::QualityLog& quality) {
    std::vector<HolderId> out;
    for (const HolderId id : labelled) {
      if (ended_by(holders_.at(id), t)) {
        quality.add("holder_after_end", label_ + " " + holders_.at(id).job);
      } else {
        out.push_back(id);
      }
    }
    for (const jobs::JobRecord* record : records_) {
      if (!record->running_at(t)) continue;
      if (!labelled.empty() && !out.empty()) {
        const auto agrees = std::find_if(out.begin(), out.end(), [&](HolderId id) { return is_of(*record, holders_.at(id)); });
        if (agrees == out.end()) {
          quality.add("label_conflict", label_ + " " + record->job);
        } else {
          *agrees = holders_.intern(record->holder());  // which knows user, team and cluster, where labels often do not
        }
      } else if (labelled.empty() || out.empty()) {
        from_file_.push_back(holders_.intern(record->holder()));
      }
    }
    if (out.empty()) out.swap(from_file_);
    from_file_.clear();
    return out;
  }

  // For a scrape of unknown time: the labels; else the one job that ever holds the GPU, or those without an end.
  std::vector<HolderId> holders_at_some_time(const std::vector<HolderId>& labelled) {
    if (!labelled.empty()) return labelled;
    std::vector<HolderId> out;
    for (const jobs::JobRecord* record : records_) {
      if (records_.size() == 1 || !record->end) out.push_back(holders_.intern(record->holder()));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  // Names are used again in other namespaces and clusters; a side that says none is of any.
  static bool is_of(const jobs::JobRecord& record, const samples::Holder& holder) {
    return record.job == holder.job && (record.name_space.empty() || holder.name_space.empty() ||
                                        record.name_space == holder.name_space);
  }

  // Every record of that name has ended by t: of those that hold this GPU, if there are any, as a requeued job goes
  // on elsewhere.
  bool ended_by(const samples::Holder& holder, units::Instant t) const {
    std::vector<const jobs::JobRecord*> named;
    for (const jobs::JobRecord* record : records_) {
      if (is_of(*record, holder)) named.push_back(record);
    }
    if (named.empty()) {
      named = table_.named(holder.job);
      std::erase_if(named, [&](const jobs::JobRecord* record) { return !is_of(*record, holder); });
    }
    return !named.empty() && std::all_of(named.begin(), named.end(), [&](const auto* record) {
      return record->end && *record->end <= t;
    });
  }

  const jobs::JobTable& table_;
  jobs::HolderTable& holders_;
  std::vector<const jobs::JobRecord*> records_;
  std::string label_;
  std::vector<HolderId> from_file_;
};

void integrate_instants(const samples::GpuTimeline& timeline, double weight,
                        const IntegrateOptions& options, const jobs::JobTable& table,
                        jobs::HolderTable& holders, GpuTime& out, samples::QualityLog& quality) {
  FileJobs file(timeline.gpu, table, holders);
  const double seconds = weight / static_cast<double>(timeline.scrapes.size());
  for (const GpuScrape& s : timeline.scrapes) {
    MeasuredPiece piece =
        gauge_piece(s, s.reading(Metric::kSmClock), timeline.tensor_calibrated, out);
    if (!s.saw(Metric::kTensorActive)) {
      const bool saw_nothing = std::none_of(s.readings.begin(), s.readings.end(), [](const Reading& r) {
        return r.present() || r.reason() != AbsentReason::kNotSeen;
      });
      piece.ofu = samples::Absent{saw_nothing ? AbsentReason::kNotSeen : AbsentReason::kNoTensorCounter};
    }
    std::vector<HolderId> who = s.holders;
    if (!file.empty()) {
      who = options.instant ? file.holders_at(*options.instant, s.holders, quality)
                            : file.holders_at_some_time(s.holders);
    }
    add_shared(out, who, false, seconds, {{}, &piece, AbsentReason::kNoTensorCounter, &s, nullptr});
    if (piece.ofu.present() && piece.ofu.value() > 1) quality.add("ofu_above_one", gpu_label(out.gpu));
  }
}

Frame frame_of(const samples::GpuTimeline& timeline, const IntegrateOptions& options) {
  std::vector<units::Instant> times;
  times.reserve(timeline.scrapes.size());
  for (const GpuScrape& s : timeline.scrapes) times.push_back(s.time);
  Frame frame;
  frame.gap_intervals = options.gap_intervals;
  frame.step_default = options.step_default;
  frame.steps = local_cadence(times, options.step_default);
  if (options.window) {
    frame.window = *options.window;
  } else if (!times.empty()) {
    frame.window = {times.front(), times.back() + frame.steps.back()};
  }
  return frame;
}

// How often each holder was given the GPU.
class EndCounter {
 public:
  explicit EndCounter(GpuTime& gpu) : gpu_(gpu) {}

  // The holders of one interval after another; each has its portion.
  void see(const std::vector<HolderId>& holders) {
    if (any_ && holders == before_) return;
    if (holders.empty()) portion_of(gpu_, std::nullopt).ends_total += 2;
    for (const HolderId id : holders) {
      if (std::find(before_.begin(), before_.end(), id) == before_.end()) portion_of(gpu_, id).ends_total += 2;
    }
    before_ = holders;
    any_ = true;
  }

 private:
  GpuTime& gpu_;
  std::vector<HolderId> before_;
  bool any_ = false;
};

// Lays both views over each other and adds every elementary interval.
void sweep(const std::vector<MeasuredPiece>& measured, const std::vector<HolderPiece>& held,
           FileJobs& file, double weight, GpuTime& out, samples::QualityLog& quality) {
  std::vector<units::Instant> cuts;
  cuts.reserve(2 * (measured.size() + held.size()));
  for (const auto& piece : measured) cuts.insert(cuts.end(), {piece.start, piece.end});
  for (const auto& piece : held) cuts.insert(cuts.end(), {piece.start, piece.end});
  if (!file.empty()) file.add_cuts(held, cuts);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::size_t m = 0, h = 0;
  EndCounter ends(out);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const units::Instant start = cuts[i], end = cuts[i + 1];
    while (h < held.size() && held[h].end <= start) ++h;
    if (h == held.size()) break;
    if (held[h].start > start) continue;  // before the window
    while (m < measured.size() && measured[m].end <= start) ++m;
    const MeasuredPiece* piece =
        m < measured.size() && measured[m].start <= start ? &measured[m] : nullptr;
    // Where other metrics go on and no tensor activity holds, its counter is what is missing.
    const AbsentReason why = held[h].seen                     ? AbsentReason::kNoTensorCounter
                             : h == 0 || h + 1 == held.size() ? AbsentReason::kNotSeen
                                                              : AbsentReason::kGap;
    const auto who = file.empty() ? held[h].holders : file.holders_at(start, held[h].holders, quality);
    add_shared(out, who, held[h].bridged, (end - start).value * weight,
               {start, piece, why, held[h].scrape, held[h].next});
    ends.see(who);
  }
}

}  // namespace

Totals GpuTime::sum() const {
  Totals totals;
  for (const Portion& portion : portions) totals.merge(portion.totals);
  return totals;
}

namespace {

// The tensor activity during each clock reading: of the same scrape, or, where clocks are scraped apart, the last within one and a half of its own steps. By the
// scrapes before alone, so that a slot that is closed while it comes in says the same as the whole.
class TensorBeside {
 public:
  Reading of(const GpuScrape& s) {
    const Reading& own = s.reading(Metric::kTensorActive);
    if (s.saw(Metric::kTensorActive)) {
      if (own.present()) {
        if (last_ != nullptr) step_ = s.time - last_->time;
        last_ = &s;
      } else {
        last_ = nullptr;  // what follows a reading that is none is not known
      }
      return own;
    }
    if (last_ == nullptr || !step_ || (s.time - last_->time).value > 1.5 * step_->value) return own;
    return last_->reading(Metric::kTensorActive);
  }

 private:
  const GpuScrape* last_ = nullptr;
  std::optional<units::Seconds> step_;
};

}  // namespace

ClockSpread clock_spread(std::span<const GpuScrape> scrapes, const std::optional<units::Window>& window) {
  ClockSpread spread;
  std::optional<double> before;
  TensorBeside beside;
  for (const GpuScrape& s : scrapes) {
    const Reading tensor = beside.of(s), &clock = s.reading(Metric::kSmClock);
    if (!tensor.present() || !clock.present() || tensor.value() < kBusyTensorRatio) continue;
    const double hertz = clock.value();
    if (!window || window->contains(s.time)) {
      ++spread.count;
      spread.sum_hertz += hertz;
      spread.sum_hertz2 += hertz * hertz;
      if (before) {
        ++spread.difference_count;
        spread.difference_sum_hertz2 += (hertz - *before) * (hertz - *before);
      }
    }
    before = hertz;
  }
  return spread;
}

GpuTime integrate(const samples::GpuTimeline& timeline, const catalog::Device* device,
                  std::optional<model::ReferenceClock> reference, double weight,
                  const IntegrateOptions& options, const jobs::JobTable& jobs,
                  jobs::HolderTable& holders, samples::QualityLog& quality) {
  GpuTime out;
  out.gpu = timeline.gpu;
  out.device = device;
  out.reference = reference;
  out.spread = clock_spread(timeline.scrapes, std::nullopt);
  if (!timeline.has_times) {
    if (!timeline.scrapes.empty()) {
      integrate_instants(timeline, weight, options, jobs, holders, out, quality);
    }
    return out;
  }
  const Frame frame = frame_of(timeline, options);
  if (!frame.steps.empty()) out.step_seconds = frame.steps[frame.steps.size() / 2].value * weight;
  const std::vector<MeasuredPiece> measured = measured_pieces(timeline, frame, out, quality);
  const std::vector<HolderPiece> held =
      holder_pieces(timeline, frame, options.bridge_intervals, quality);
  std::uint64_t above_one = 0;
  for (const MeasuredPiece& piece : measured) above_one += piece.ofu.present() && piece.ofu.value() > 1;
  quality.add("ofu_above_one", gpu_label(out.gpu), above_one);
  FileJobs file(timeline.gpu, jobs, holders);
  sweep(measured, held, file, weight, out, quality);
  return out;
}

}  // namespace flopsight::rollups
